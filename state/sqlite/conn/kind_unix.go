//go:build unix

package conn

import (
	"errors"
	"syscall"

	"github.com/10f93571/retry/state"
)

// systemKind returns the kind of a system error, or of the one inside an error of SQLite.
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
