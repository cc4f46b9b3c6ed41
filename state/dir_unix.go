//go:build unix

package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func homeDir(getenv func(string) string) (string, error) {
	switch {
	case filepath.IsAbs(getenv("HOME")):
		return filepath.Join(getenv("HOME"), ".local", "state", "retry"), nil
	case os.Geteuid() == 0:
		return "/var/lib/retry", nil
	}
	return "", errors.New("HOME is not set\nhint: set RETRY_STATE_DIR or give --state DIR")
}

// checkOwner refuses what belongs to another user or what others may write: they could make a resume run anything.
func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to you (%d)\nhint: chown it, or use a directory of your own with --state", path, stat.Uid, os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s may be written by others (mode %04o)\nhint: chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}
