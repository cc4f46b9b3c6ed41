package lock

import (
	"errors"
	"io/fs"
	"path/filepath"
)

func homePlace(getenv func(string) string) (Place, error) {
	if local := getenv("LOCALAPPDATA"); filepath.IsAbs(local) {
		return Place{filepath.Join(local, "retry"), "LOCALAPPDATA"}, nil
	}
	return Place{}, errors.New("LOCALAPPDATA is not set\nhint: set RETRY_STATE_DIR or give --state DIR")
}

// checkHome accepts everything: a profile is its user's.
func checkHome(Place) error { return nil }

// CheckOwner accepts everything: a profile's directory is private by its access list.
func CheckOwner(string, fs.FileInfo) error { return nil }

// SyncDir does nothing: the file system keeps names by itself, and a directory cannot be flushed.
func SyncDir(string) error { return nil }
