package lock

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

func systemStatfs(path string) (FileSystem, error) {
	volume, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err != nil {
		return FileSystem{}, err
	}
	system := FileSystem{Remote: windows.GetDriveType(volume) == windows.DRIVE_REMOTE}
	if system.Remote {
		system.Name = "network drive"
	}
	err = windows.GetDiskFreeSpaceEx(volume, &system.Free, nil, nil)
	return system, err
}
