package conn

import (
	"errors"

	"golang.org/x/sys/windows"

	"github.com/10f93571/retry/state"
)

// systemKind returns the kind of a system error.
func systemKind(err error) error {
	switch {
	case errors.Is(err, windows.ERROR_DISK_FULL), errors.Is(err, windows.ERROR_HANDLE_DISK_FULL):
		return state.ErrFull
	case errors.Is(err, windows.ERROR_WRITE_PROTECT):
		return state.ErrReadOnly
	case errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES):
		return state.ErrNoFiles
	}
	return nil
}
