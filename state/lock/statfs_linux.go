package lock

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func systemStatfs(path string) (FileSystem, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return FileSystem{}, err
	}
	system := FileSystem{
		ReadOnly: stat.Flags&unix.ST_RDONLY != 0,
		Free:     stat.Bavail * uint64(stat.Bsize), Inodes: stat.Ffree, Counted: stat.Files > 0,
	}
	magic, fuse := uint32(stat.Type), ""
	if magic == fuseMagic {
		fuse = mountType(path)
		system.Unsure = fuse != "fuseblk" // which is a disk
	}
	system.Memory = magic == tmpfsMagic || magic == ramfsMagic
	system.Name, system.Remote = isRemote(magic, fuse)
	return system, nil
}

// mountType returns the type of the mount that holds the path, such as fuse.sshfs; empty where it is not listed.
func mountType(path string) string {
	var stat unix.Stat_t
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || unix.Stat(path, &stat) != nil {
		return ""
	}
	return typeOfDevice(string(list), unix.Major(stat.Dev), unix.Minor(stat.Dev))
}

// typeOfDevice finds a device in a list of mounts: "36 35 98:0 /mnt1 /mnt2 rw shared:1 - fuse.sshfs name options".
func typeOfDevice(mountinfo string, major, minor uint32) string {
	device := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		fields, name := strings.Fields(before), strings.Fields(after)
		if len(fields) > 2 && len(name) > 0 && fields[2] == device {
			return name[0]
		}
	}
	return ""
}
