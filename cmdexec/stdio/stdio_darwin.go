package stdio

import (
	"errors"
	"os"
)

const bytesAvailable = 0x4004667f // FIONREAD of <sys/filio.h>

// reopen is not possible: a file opened through /dev/fd shares the offset.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// activity is not counted: kqueue does not report what came and was read at once.
type activity struct{}

func watchActivity(*os.File) activity { return activity{} }
func (activity) end(*os.File) int     { return 0 }

// peek is not possible.
func peek(*os.File) []byte { return nil }
