//go:build unix

package cmdexec

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Writable reports whether f takes some bytes without waiting for a reader, and waits that long for it.
func Writable(f *os.File, wait time.Duration) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true // closed: let the write say so
	}
	writable := true
	_ = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(poll, int(wait.Milliseconds()))
		writable = n > 0 || (err != nil && err != unix.EINTR)
	})
	return writable
}
