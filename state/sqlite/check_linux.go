package sqlite

import (
	"golang.org/x/sys/unix"
)

// attribute names the attribute that keeps a file from being written, or a directory from being changed; empty where it has none. It
// opens nothing: closing a file of the journal would drop SQLite's locks.
func attribute(path string) string {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &stat); err != nil {
		return ""
	}
	switch {
	case stat.Attributes&unix.STATX_ATTR_IMMUTABLE != 0:
		return "immutable"
	case stat.Attributes&unix.STATX_ATTR_APPEND != 0:
		return "append-only"
	}
	return ""
}
