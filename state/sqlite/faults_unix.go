//go:build unix

package sqlite

import (
	"errors"
	"syscall"
)

// systemKind reads an error number, which SQLite's errors hand through.
func systemKind(err error) error {
	var errno syscall.Errno
	if number, ok := sqliteErrno(err); ok {
		errno = number
	} else if !errors.As(err, &errno) {
		return nil
	}
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return ErrFull
	case syscall.EFBIG:
		return ErrFileLimit
	case syscall.EROFS:
		return ErrReadOnly
	case syscall.EMFILE, syscall.ENFILE:
		return ErrNoFiles
	case syscall.EACCES, syscall.EPERM:
		return ErrForbidden
	}
	return nil
}
