//go:build unix && !linux && !darwin && !freebsd

package lock

import "errors"

func systemStatfs(string) (FileSystem, error) {
	return FileSystem{}, errors.ErrUnsupported
}
