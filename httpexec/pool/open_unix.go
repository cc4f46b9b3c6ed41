//go:build unix

package pool

import (
	"errors"
	"syscall"
)

// isOpen reports whether the other end has neither closed a connection nor sent anything. The goroutine of net/http
// that reads the connection may not have run since.
func isOpen(c syscall.RawConn) bool {
	if c == nil {
		return true
	}
	open := true
	err := c.Control(func(fd uintptr) {
		var first [1]byte
		_, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK) // the socket does not block
		open = errors.Is(err, syscall.EAGAIN)
	})
	return open && err == nil
}
