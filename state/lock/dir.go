// Package lock decides where a journal lies and who may use it: its directory, the files in it, and the locks that the
// kernel drops when a process dies.
package lock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/state"
)

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

// Locate is Dir, and says why the directory is used. It returns ErrForeignHome for a default in the home of another
// user.
func Locate(explicit string, getenv func(string) string) (place Place, err error) {
	switch {
	case explicit != "":
		dir, err := filepath.Abs(explicit)
		return Place{dir, "--state"}, err
	case getenv("RETRY_STATE_DIR") != "":
		dir, err := filepath.Abs(getenv("RETRY_STATE_DIR"))
		return Place{dir, "RETRY_STATE_DIR"}, err
	case filepath.IsAbs(getenv("XDG_STATE_HOME")): // the XDG specification has relative ones ignored
		place = Place{filepath.Join(getenv("XDG_STATE_HOME"), "retry"), "XDG_STATE_HOME"}
	default:
		if place, err = homePlace(getenv); err != nil {
			return place, err
		}
	}
	return place, checkHome(place)
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

// CreateDir makes the directory, private from the moment it exists. It refuses a network file system, and a directory
// that another user could have prepared.
func CreateDir(dir string) error {
	above, _, err := Nearest(dir)
	if err != nil {
		return err
	}
	if system, err := statfs(above); err == nil { // where the system does not tell, the directory is used
		if err := system.Check(above); err != nil {
			return err
		}
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

// makeDir makes a directory and those above it. An acknowledged task must survive a power loss, and so must the path to
// it.
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

// CreateFiles creates the named files, empty and of mode 0600: SQLite would create its own under the umask. It only
// checks a file that exists: closing a second descriptor of it would drop SQLite's locks.
func CreateFiles(dir string, names ...string) error {
	created := false
	for _, name := range names {
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case err == nil:
			created = true
			err = f.Close()
		case errors.Is(err, fs.ErrExist):
			err = CheckFile(path)
		}
		if err != nil {
			return err
		}
	}
	if created {
		return SyncDir(dir)
	}
	return nil
}

// CheckFile refuses what others could have put in place of a file of the journal.
func CheckFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return state.NewFault(state.ErrOwner, "move it away, or use another directory with --state",
			"%s is not a regular file", path)
	}
	return CheckOwner(path, info)
}

// maxWait is how long a process waits for the directory.
const maxWait = 5 * time.Second

// errHeld says that another process holds a lock of the directory.
var errHeld = errors.New("held")

// Shared locks the directory beside others that open a journal in it. While the lock is held nobody sets the journal
// aside, so that all files that are opened belong to one journal.
func Shared(ctx context.Context, dir string) (unlock func(), err error) {
	return lockDir(ctx, dir, false)
}

// Exclusive locks the directory against everybody who opens a journal in it: the journal is about to be set aside.
func Exclusive(ctx context.Context, dir string) (unlock func(), err error) {
	return lockDir(ctx, dir, true)
}

func lockDir(ctx context.Context, dir string, exclusive bool) (unlock func(), err error) {
	f, err := openForLock(dir)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = f.Close() }
	deadline := time.Now().Add(maxWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := tryLock(f, exclusive)
		switch {
		case err == nil, !errors.Is(err, errHeld) && !exclusive: // a file system without such locks still has a journal
			return unlock, nil
		case !errors.Is(err, errHeld):
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case time.Now().After(deadline):
			err = state.NewFault(state.ErrLocked, "retry doctor --state "+dir+" names the process that holds it",
				"another process is opening the journal, or setting it aside")
		default:
			time.Sleep(pause)
			continue
		}
		unlock()
		return nil, err
	}
}

// Held reports whether another process keeps everybody from opening a journal in the directory.
func Held(dir string) bool {
	f, err := openForLock(dir)
	if err != nil {
		return false // without the right to read it nobody locks it
	}
	defer func() { _ = f.Close() }()
	return errors.Is(tryLock(f, false), errHeld)
}

// FileSystem is what the system tells of a file system.
type FileSystem struct {
	Name     string // of a remote one
	Remote   bool   // it is on another machine
	FUSE     bool   // a program serves it, which may reach over a network
	ReadOnly bool
	NoInodes bool   // no file can be made, whatever is free
	Free     uint64 // bytes
}

// Statfs returns what the system tells of the file system that the path is on.
func Statfs(path string) (FileSystem, error) { return statfs(path) }

// statfs is replaced by tests: none can mount a network file system.
var statfs = systemStatfs

// Check refuses a network file system; path is on it. SQLite's WAL needs memory that all processes share, which two
// machines do not.
func (s FileSystem) Check(path string) error {
	if !s.Remote {
		return nil
	}
	return state.NewFault(state.ErrNetwork, "use a directory on a local disk, with --state or RETRY_STATE_DIR",
		"%s is on a network file system (%s), where SQLite cannot share a journal", path, s.Name)
}

// ReadOnlyHint says what to do about a directory that cannot be written: SQLite does not tell a read-only file system
// from read-only files.
func ReadOnlyHint(dir string) string {
	if system, err := statfs(dir); err == nil && !system.ReadOnly {
		return "chmod u+w " + dir + " and what is in it, or use another directory with --state"
	}
	return "mount the file system of " + dir + " writable, or use another directory with --state"
}
