//go:build unix

package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/10f93571/retry/state"
)

func homePlace(getenv func(string) string) (Place, error) {
	switch {
	case filepath.IsAbs(getenv("HOME")):
		return Place{filepath.Join(getenv("HOME"), ".local", "state", "retry"), "HOME"}, nil
	case os.Geteuid() == 0:
		return Place{"/var/lib/retry", "root without a home"}, nil
	}
	return Place{}, errors.New("HOME is not set\nhint: set RETRY_STATE_DIR or give --state DIR")
}

// checkHome refuses a default place that somebody else owns, as under sudo with the caller's HOME: what root makes there would
// lock that user out of a journal of their own.
func checkHome(place Place) error {
	path, info, err := Nearest(place.Dir)
	if err != nil {
		return nil // whoever makes the directory says it better
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid() {
		return nil
	}
	return state.NewFault(state.ErrForeignHome, "sudo -H sets the home; or name a directory of your own with --state or RETRY_STATE_DIR",
		"%s leads to %s, which belongs to user %d, not to you (%d)", place.Source, path, stat.Uid, os.Geteuid())
}

// CheckOwner refuses what belongs to another user or what others may write: they could make a resume run anything.
func CheckOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(stat.Uid) != os.Geteuid():
		return state.NewFault(state.ErrOwner, "chown it, or use a directory of your own with --state",
			"%s belongs to user %d, not to you (%d)", path, stat.Uid, os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return state.NewFault(state.ErrMode, "chmod go-w "+path, "%s may be written by others (mode %04o)", path, info.Mode().Perm())
	}
	return nil
}

// SyncDir makes the names in a directory survive a power loss. Some file systems cannot, and need not be asked.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
