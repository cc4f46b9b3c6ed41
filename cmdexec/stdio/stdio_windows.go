package stdio

import (
	"errors"
	"os"
	"time"
)

// reopen is not possible.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func stateOf(*os.File) streamState { return streamState{} }

// readWatch knows nothing: the system does not tell.
type readWatch struct{ stream *os.File }

func watchReads(f *os.File) *readWatch { return &readWatch{f} }

func (w *readWatch) begin() streamState                { return stateOf(w.stream) }
func (*readWatch) seen(streamState) (read, known bool) { return false, false }
func (*readWatch) wait(func(os.FileInfo) bool)         {}
func (*readWatch) shared() bool                        { return false }
func (*readWatch) end()                                {}

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
