//go:build !linux

package cmdexec

import (
	"errors"
	"os"
)

// reopen is not possible: /dev/fd shares the offset here.
func reopen(*os.File) (*os.File, error) {
	return nil, errors.ErrUnsupported
}
