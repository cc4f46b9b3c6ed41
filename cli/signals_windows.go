package cli

import (
	"errors"
	"syscall"
)

var forwarded = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}

var inheritable []syscall.Signal

// raise fails: nothing dies of a signal on Windows.
func raise(syscall.Signal) error { return errors.ErrUnsupported }
