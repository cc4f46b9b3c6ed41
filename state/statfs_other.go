//go:build unix && !linux && !darwin && !freebsd

package state

import "errors"

func systemStatfs(string) (fileSystem, error) {
	return fileSystem{}, errors.ErrUnsupported
}
