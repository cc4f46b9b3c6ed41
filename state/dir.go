// Package state is the journal: tasks and attempts in a SQLite file, written so that a killed run can be picked up. It
// decides where the file lies, who may use it, and which transitions of a task can be written.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	databaseName = "journal.db"
	ownersName   = "owners.lock"
)

// Dir returns the directory of the journal: explicit, $RETRY_STATE_DIR, $XDG_STATE_HOME/retry, ~/.local/state/retry, or
// /var/lib/retry for root without a home.
func Dir(explicit string, getenv func(string) string) (string, error) {
	switch {
	case explicit != "":
		return filepath.Abs(explicit)
	case getenv("RETRY_STATE_DIR") != "":
		return filepath.Abs(getenv("RETRY_STATE_DIR"))
	case filepath.IsAbs(getenv("XDG_STATE_HOME")): // the XDG specification has relative ones ignored
		return filepath.Join(getenv("XDG_STATE_HOME"), "retry"), nil
	}
	return homeDir(getenv)
}

// prepare makes the directory and the empty files in it, all private from the moment they exist, since SQLite would create
// them under the umask. It refuses what somebody else could have put there.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := checkOwner(dir, info); err != nil {
		return err
	}
	for _, name := range []string{databaseName, ownersName} {
		if err := preparePrivate(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// preparePrivate makes an empty file of mode 0600, or checks the one that is there. It never opens an existing one: closing
// a second descriptor would drop SQLite's locks.
func preparePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file\nhint: move it away, or use another directory with --state", path)
	}
	return checkOwner(path, info)
}
