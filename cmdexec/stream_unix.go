//go:build unix

package cmdexec

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/task"
)

func streamOf(f *os.File) (s stream) {
	raw, err := f.SyscallConn()
	if err != nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(poll, 0)
		s.available, _ = unix.IoctlGetInt(int(fd), bytesAvailable)
		nothing := poll[0].Revents&unix.POLLIN != 0 && s.available == 0 // but the end can be read: the writer has shut its side down
		s.ended = poll[0].Revents&unix.POLLHUP != 0 || nothing
	})
	return s
}

// readerGone reports whether f is a pipe that nobody reads any more, and nobody ever will.
func readerGone(f *os.File) bool {
	if kindOf(f) != kindStream {
		return false
	}
	raw, err := f.SyscallConn()
	gone := false
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			_, _ = unix.Poll(poll, 0)
			gone = poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		})
	}
	return gone
}

// diedOfPipe reports whether a process ended because it wrote to such a pipe, or says so as shells do.
func diedOfPipe(o task.Outcome) bool {
	return o.Signal == "SIGPIPE" || (o.Error == task.ErrorNone && o.Exit == task.ExitSignalBase+int(unix.SIGPIPE))
}
