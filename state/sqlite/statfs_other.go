//go:build unix && !linux && !darwin && !freebsd

package sqlite

import "errors"

func systemStatfs(string) (fileSystem, error) {
	return fileSystem{}, errors.ErrUnsupported
}
