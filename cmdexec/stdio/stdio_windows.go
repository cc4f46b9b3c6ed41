package stdio

import (
	"errors"
	"os"
	"time"
)

// reopen is not possible.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// showsReads says that the system does not show whether a stream was read: none of the next three is called.
const showsReads = false

func stateOf(*os.File) streamState { return streamState{} }

type activity struct{}

func watchActivity(*os.File) activity { return activity{} }
func (activity) end(*os.File) int     { return 0 }

// peek is not possible.
func peek(*os.File) []byte { return nil }

// ReaderGone is false: the system does not tell.
func ReaderGone(*os.File) bool { return false }

// Writable is true: the system does not tell.
func Writable(*os.File, time.Duration) bool { return true }

// inodeOf is 0: the system does not tell in one call.
func inodeOf(os.FileInfo) uint64 { return 0 }

// drain does nothing: pipes have no read deadline on Windows, so a capture ends with the last writer.
func (c *capture) drain([]byte) {}

// kill is not possible by number.
func kill(int) {}
