package cli

import (
	"errors"
	"os"
	"syscall"
)

var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// raise fails: nothing dies of a signal on Windows.
func raise(syscall.Signal) error { return errors.ErrUnsupported }
