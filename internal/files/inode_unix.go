//go:build unix

package files

import (
	"os"
	"syscall"
)

// Inode returns the number that a file has in its file system; 0 where the system does not tell it.
func Inode(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// IsRemoved reports whether an open file has no name any more.
func IsRemoved(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && stat.Nlink == 0
}
