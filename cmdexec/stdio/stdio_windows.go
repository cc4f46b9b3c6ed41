package stdio

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// reopen is not possible.
func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func stateOf(*os.File) streamState { return streamState{} }

// WatchWriter knows nothing: the system does not tell.
func WatchWriter(*os.File) (gone func() time.Time, isStream bool) { return nil, false }

// isShut is false for the same reason.
func isShut(*os.File) bool { return false }

// wasReset is false: the system does not tell in one call.
func wasReset(*os.File) bool { return false }

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

// readable is true for the same reason.
func readable(*os.File, time.Duration) bool { return true }

// IsForWriting is false: nothing is named by a descriptor.
func IsForWriting(int) bool { return false }

// isNonblocking is false: there is no such mode.
func isNonblocking(*os.File) bool { return false }

func setBlocking(*os.File) {}

// setTaken does nothing: the system keeps no note with an open stream.
func setTaken(*os.File, bool) {}

func isTaken(*os.File) bool { return false }

// isLocked is false: a file cannot be opened again anyway.
func isLocked(*os.File) bool { return false }

// hasName is false: the system does not tell in one call.
func hasName(*os.File) bool { return false }

// isNull takes every device for the null device: the system does not tell.
func isNull(info os.FileInfo) bool { return info.Mode()&os.ModeDevice != 0 }

// IsTerminal reports whether a file is a console.
func IsTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// hasMessages is false: there are no such sockets.
func hasMessages(*os.File) bool { return false }

func receive(*os.File, []byte) (int, error) { return 0, io.EOF }

// drain does nothing: pipes have no read deadline on Windows, so a capture ends with the last writer.
func (c *capture) drain([]byte) {}

// kill is not possible by number.
func kill(int) {}
