package state

import (
	"errors"
	"io/fs"
	"path/filepath"
)

func homeDir(getenv func(string) string) (string, error) {
	if local := getenv("LOCALAPPDATA"); filepath.IsAbs(local) {
		return filepath.Join(local, "retry"), nil
	}
	return "", errors.New("LOCALAPPDATA is not set\nhint: set RETRY_STATE_DIR or give --state DIR")
}

// checkOwner accepts everything: a profile's directory is private by its access list.
func checkOwner(string, fs.FileInfo) error { return nil }
