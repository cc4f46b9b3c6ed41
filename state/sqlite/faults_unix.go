//go:build unix

package sqlite

import (
	"errors"
	"syscall"

	"github.com/10f93571/retry/state"
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
		return state.ErrFull
	case syscall.EFBIG:
		return state.ErrFileLimit
	case syscall.EROFS:
		return state.ErrReadOnly
	case syscall.EMFILE, syscall.ENFILE:
		return state.ErrNoFiles
	case syscall.EACCES, syscall.EPERM:
		return state.ErrForbidden
	}
	return nil
}
