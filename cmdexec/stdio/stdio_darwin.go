package stdio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	bytesAvailable = 0x4004667f // FIONREAD of <sys/filio.h>
	getTermios     = unix.TIOCGETA
	peerShutDown   = 0 // only the end of a pipe is told
)

// reopen is not possible: a file opened through /dev/fd shares the offset.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// setTaken does nothing: the system keeps no note with an open stream.
func setTaken(*os.File, bool) {}

func isTaken(*os.File) bool { return false }

// isLocked is false: a file cannot be opened again anyway.
func isLocked(*os.File) bool { return false }

// hasName is false: the system does not tell in one call.
func hasName(*os.File) bool { return false }

// wasReset is false: the system does not tell in one call.
func wasReset(*os.File) bool { return false }

// readWatch knows nothing: kqueue does not report what came and was read at once.
type readWatch struct{ stream *os.File }

func watchReads(f *os.File) *readWatch { return &readWatch{f} }

func (w *readWatch) begin() streamState                { return stateOf(w.stream) }
func (*readWatch) seen(streamState) (read, known bool) { return false, false }
func (*readWatch) wait(func(os.FileInfo) bool)         {}
func (*readWatch) shared() bool                        { return false }
func (*readWatch) end()                                {}
