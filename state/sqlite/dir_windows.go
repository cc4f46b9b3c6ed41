package sqlite

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

// checkOwner accepts everything: a profile's directory is private by its access list.
func checkOwner(string, fs.FileInfo) error { return nil }

// syncDir does nothing: the file system keeps names by itself, and a directory cannot be flushed.
func syncDir(string) error { return nil }
