package testkit

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Nobody is another user than the one that runs the tests.
const Nobody = 65534

// NeedsRoot skips a test that becomes another user where it cannot.
func NeedsRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
}

// DialAsNobody connects as another user. The thread that has become that user ends with its goroutine.
func DialAsNobody(dial func() (net.Conn, error)) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), Nobody, ^uintptr(0)); errno != 0 {
			err = errno
			return
		}
		c, err = dial()
	}()
	<-done
	return c, err
}
