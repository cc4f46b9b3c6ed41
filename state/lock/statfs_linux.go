package lock

import (
	"golang.org/x/sys/unix"
)

// remote names the usual network file systems by the type that statfs gives.
var remote = map[uint32]string{
	unix.NFS_SUPER_MAGIC:  "nfs",
	unix.CIFS_SUPER_MAGIC: "cifs",
	unix.SMB2_SUPER_MAGIC: "smb",
	unix.V9FS_MAGIC:       "9p",
}

func systemStatfs(path string) (FileSystem, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return FileSystem{}, err
	}
	name := remote[uint32(stat.Type)]
	return FileSystem{
		Name: name, Remote: name != "", FUSE: uint32(stat.Type) == unix.FUSE_SUPER_MAGIC,
		ReadOnly: stat.Flags&unix.ST_RDONLY != 0,
		Free:     stat.Bavail * uint64(stat.Bsize), NoInodes: stat.Files > 0 && stat.Ffree == 0,
	}, nil
}
