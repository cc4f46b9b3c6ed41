// Package lock manages the directory of a journal: its location, the permissions of its files, and the kernel locks
// that say which process owns what.
package lock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/state"
)

// Place is the directory of the journal, and why it is used.
type Place struct {
	Dir    string
	Source string // what named it: a flag, a variable or a default
}

// Locate returns the directory of the journal: explicit, $RETRY_STATE_DIR, $XDG_STATE_HOME/retry, ~/.local/state/retry,
// or /var/lib/retry for root without a home. It refuses a default in the home of another user with ErrForeignHome.
func Locate(explicit string, getenv func(string) string) (place Place, err error) {
	switch {
	case explicit != "":
		dir, err := filepath.Abs(explicit)
		return Place{dir, "--state"}, err
	case getenv("RETRY_STATE_DIR") != "":
		dir, err := filepath.Abs(getenv("RETRY_STATE_DIR"))
		return Place{dir, "RETRY_STATE_DIR"}, err
	case filepath.IsAbs(getenv("XDG_STATE_HOME")): // the XDG specification says to ignore a relative path
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

// CreateDir creates the directory with mode 0700. It refuses a network file system, and a directory that another user
// could have prepared. It syncs the directories that it creates: an acknowledged task must survive a power loss.
func CreateDir(dir string) error {
	above, info, err := Nearest(dir)
	if err != nil {
		return err
	}
	if system, err := Statfs(above); err == nil { // if the system does not tell, the directory is used
		if err := system.Check(above); err != nil {
			return err
		}
	}
	if above != dir || !info.IsDir() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for path := dir; path != above; {
			path = filepath.Dir(path)
			if err := files.SyncDir(path); err != nil {
				return err
			}
		}
	}
	if info, err = os.Stat(dir); err != nil {
		return err
	}
	return CheckOwner(dir, info)
}

// CreateFiles creates the named files, empty and with mode 0600; SQLite would use the umask. It only checks a file that
// exists, and does not open it: closing a second descriptor would drop SQLite's locks.
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
		return files.SyncDir(dir)
	}
	return nil
}

// CheckFile refuses a file of the journal that another user could have put there.
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

// Shared locks the directory while a process opens the journal, so that no other process sets it aside meanwhile.
func Shared(ctx context.Context, dir string) (unlock func(), err error) {
	return lockDir(ctx, dir, false)
}

// Exclusive locks the directory while a process sets the journal aside, so that no other process opens it meanwhile.
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
		case err == nil, !errors.Is(err, errHeld) && !exclusive: // a file system without such locks can hold a journal
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

// Held reports whether another process holds the exclusive lock of the directory.
func Held(dir string) bool {
	f, err := openForLock(dir)
	if err != nil {
		return false // it cannot be locked without the right to read it
	}
	defer func() { _ = f.Close() }()
	return errors.Is(tryLock(f, false), errHeld)
}

// FileSystem is what the system tells of a file system.
type FileSystem struct {
	Name     string // of a remote one
	Remote   bool   // it is on another machine
	FUSE     bool   // a program serves it, possibly from another machine
	ReadOnly bool
	NoInodes bool   // no file can be created
	Free     uint64 // bytes
}

// Statfs returns what the system tells of the file system of a path. Tests replace it.
var Statfs = systemStatfs

// Check refuses a network file system; path is on it. SQLite's WAL needs memory that all its processes share.
func (s FileSystem) Check(path string) error {
	if !s.Remote {
		return nil
	}
	return state.NewFault(state.ErrNetwork, "use a directory on a local disk, with --state or RETRY_STATE_DIR",
		"%s is on a network file system (%s), where SQLite cannot share a journal", path, s.Name)
}

// ReadOnlyHint says what to do about a directory that cannot be written. SQLite reports read-only files and a read-only
// file system by the same code.
func ReadOnlyHint(dir string) string {
	if system, err := Statfs(dir); err == nil && !system.ReadOnly {
		return "chmod u+w " + dir + " and what is in it, or use another directory with --state"
	}
	return "mount the file system of " + dir + " writable, or use another directory with --state"
}
