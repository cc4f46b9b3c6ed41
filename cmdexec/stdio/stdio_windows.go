package stdio

import (
	"errors"
	"os"
	"time"
)

// reopen is not possible.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// stateOf shows nothing, so that every stream counts as read.
func stateOf(*os.File) streamState { return streamState{} }

// ReaderGone is false: the system does not tell.
func ReaderGone(*os.File) bool { return false }

// Writable is true: the system does not tell.
func Writable(*os.File, time.Duration) bool { return true }

// drain does nothing: pipes have no read deadline on Windows, so a capture ends with the last writer.
func (c *capture) drain([]byte) {}
