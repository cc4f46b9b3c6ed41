//go:build unix

package access

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate refuses a file that belongs to another user than us and root, or that others may read or change.
func checkPrivate(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, so that others may use it\nhint: chmod 600 %s", path, mode, path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user %d\nhint: chown %d %s", path, stat.Uid, os.Geteuid(), path)
	}
	return nil
}
