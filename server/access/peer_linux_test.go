package access

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
)

// Another user that could open the socket (somebody changed its mode) is refused by what the kernel says of it.
func TestPeerOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can connect as another user")
	}
	path := serveSocket(t)
	testkit.Must(t, os.Chmod(path, 0o666))
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		testkit.Must(t, os.Chmod(dir, 0o755))
	}
	client := over(func() (net.Conn, error) {
		return dialAs(nobody, func() (net.Conn, error) { return net.Dial("unix", path) })
	})
	status, body := ask(t, client, http.MethodGet, "http://localhost/", "")
	if status != 403 || !strings.Contains(body, "the user 65534 may not use this socket") {
		t.Errorf("got %d %q, want 403", status, body)
	}
}

// nobody is another user than root.
const nobody = 65534

// dialAs connects as a user. The thread that has become that user ends with its goroutine.
func dialAs(uid int, dial func() (net.Conn, error)) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			err = errno
			return
		}
		c, err = dial()
	}()
	<-done
	return c, err
}
