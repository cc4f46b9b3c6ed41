//go:build darwin || freebsd

package lock

import (
	"golang.org/x/sys/unix"
)

func systemStatfs(path string) (FileSystem, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return FileSystem{}, err
	}
	return FileSystem{
		Name: unix.ByteSliceToString(stat.Fstypename[:]), Remote: uint64(stat.Flags)&unix.MNT_LOCAL == 0,
		ReadOnly: uint64(stat.Flags)&unix.MNT_RDONLY != 0,
		Free:     uint64(stat.Bavail) * uint64(stat.Bsize), NoInodes: stat.Files > 0 && stat.Ffree == 0,
	}, nil
}
