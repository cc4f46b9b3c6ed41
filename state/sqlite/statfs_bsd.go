//go:build darwin || freebsd

package sqlite

import (
	"golang.org/x/sys/unix"
)

func systemStatfs(path string) (fileSystem, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return fileSystem{}, err
	}
	return fileSystem{
		name: unix.ByteSliceToString(stat.Fstypename[:]), remote: uint64(stat.Flags)&unix.MNT_LOCAL == 0,
		readOnly: uint64(stat.Flags)&unix.MNT_RDONLY != 0,
		free:     uint64(stat.Bavail) * uint64(stat.Bsize), inodes: uint64(stat.Ffree), counted: stat.Files > 0,
	}, nil
}
