package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

func systemStatfs(path string) (fileSystem, error) {
	volume, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err != nil {
		return fileSystem{}, err
	}
	system := fileSystem{remote: windows.GetDriveType(volume) == windows.DRIVE_REMOTE}
	if system.remote {
		system.name = "network drive"
	}
	err = windows.GetDiskFreeSpaceEx(volume, &system.free, nil, nil)
	return system, err
}
