// Package lock decides where a journal lies and who may use it: its directory, the files in it, and the locks that the kernel drops when
// a process dies.
package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/state"
)

// OwnersFile is the file in the directory that holds the locks of owners.
const OwnersFile = "owners.lock"

// Place is where the journal lies, and why there.
type Place struct {
	Dir    string
	Source string // what named it: a flag, a variable or a default
}

// Dir returns the directory of the journal: explicit, $RETRY_STATE_DIR, $XDG_STATE_HOME/retry, ~/.local/state/retry, or
// /var/lib/retry for root without a home.
func Dir(explicit string, getenv func(string) string) (string, error) {
	place, err := Locate(explicit, getenv)
	return place.Dir, err
}

// Locate is Dir, and says what led there. It returns ErrForeignHome for a default in a home of somebody else.
func Locate(explicit string, getenv func(string) string) (Place, error) {
	switch {
	case explicit != "":
		dir, err := filepath.Abs(explicit)
		return Place{dir, "--state"}, err
	case getenv("RETRY_STATE_DIR") != "":
		dir, err := filepath.Abs(getenv("RETRY_STATE_DIR"))
		return Place{dir, "RETRY_STATE_DIR"}, err
	}
	place, err := defaultPlace(getenv)
	if err == nil {
		err = checkHome(place)
	}
	return place, err
}

func defaultPlace(getenv func(string) string) (Place, error) {
	if home := getenv("XDG_STATE_HOME"); filepath.IsAbs(home) { // the XDG specification has relative ones ignored
		return Place{filepath.Join(home, "retry"), "XDG_STATE_HOME"}, nil
	}
	return homePlace(getenv)
}

// Nearest returns the path, or the closest directory above it, that exists.
func Nearest(path string) (string, fs.FileInfo, error) {
	for {
		info, err := os.Stat(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
			return path, info, err
		}
		path = filepath.Dir(path)
	}
}

// CreateDir makes the directory, private from the moment it exists. It refuses what somebody else could have put there.
func CreateDir(dir string) error {
	if err := CheckLocal(dir); err != nil {
		return err
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return CheckOwner(dir, info)
}

// CreateFiles creates the named files, empty and private: SQLite would create its own under the umask. It checks those that exist.
func CreateFiles(dir string, names ...string) error {
	anew := false
	for _, name := range names {
		made, err := preparePrivate(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		anew = anew || made
	}
	if anew {
		return SyncDir(dir)
	}
	return nil
}

// makeDir makes a directory and those above it. An acknowledged task must survive a power loss, and so must the way to it.
func makeDir(dir string) error {
	above, info, err := Nearest(dir)
	if err != nil || above == dir && info.IsDir() {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for path := dir; path != above; {
		path = filepath.Dir(path)
		if err := SyncDir(path); err != nil {
			return err
		}
	}
	return nil
}

// preparePrivate makes an empty file of mode 0600, or checks the one that is there. It never opens an existing one: closing
// a second descriptor would drop SQLite's locks.
func preparePrivate(path string) (made bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return true, f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	return false, CheckFile(path)
}

// CheckFile refuses what others could have put in place of a file of the journal.
func CheckFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return state.NewFault(state.ErrOwner, "move it away, or use another directory with --state", "%s is not a regular file", path)
	}
	return CheckOwner(path, info)
}
