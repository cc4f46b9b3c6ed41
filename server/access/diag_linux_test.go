package access

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
)

// onLoopback starts a server without tokens, and returns its port.
func onLoopback(t *testing.T, address string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine has no such address: %v", err)
	}
	if err := CheckLoopback(l.Addr()); err != nil {
		t.Skipf("this system does not tell who calls: %v", err)
	}
	server := NewServer(New(Config{}).Handler(whoAmI))
	go func() { _ = server.Serve(Bound(l, 10)) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// Over loopback, our own user may call without a token. Another one may not, whatever the family of either socket is.
func TestLoopbackIsForItsOwnUser(t *testing.T) {
	tests := []struct {
		name, listen string
		dial         func(port int) (net.Conn, error)
	}{
		{"IPv4", "127.0.0.1:0", dialHost("127.0.0.1")}, {"IPv6", "[::1]:0", dialHost("::1")},
		{"IPv4 to a socket of both", "[::]:0", dialHost("127.0.0.1")}, {"mapped", "127.0.0.1:0", dialMapped},
		{"mapped to a socket of both", "[::]:0", dialMapped},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port := onLoopback(t, tt.listen)
			dial := func() (net.Conn, error) { return tt.dial(port) }
			status, body := ask(t, over(dial), http.MethodGet, "http://localhost/", "")
			if status != 200 || body != "local write 0 <nil>" {
				t.Errorf("our own user: got %d %q, want scope write", status, body)
			}
			testkit.NeedsRoot(t)
			other := over(func() (net.Conn, error) { return testkit.DialAsNobody(dial) })
			status, body = ask(t, other, http.MethodGet, "http://localhost/", "")
			if status != 401 || !strings.Contains(body, "the user 65534 is not that of the server") {
				t.Errorf("another user: got %d %q, want 401", status, body)
			}
		})
	}
}

func dialHost(host string) func(port int) (net.Conn, error) {
	return func(port int) (net.Conn, error) { return net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(port))) }
}

// dialMapped reaches 127.0.0.1 from a socket of IPv6.
func dialMapped(port int) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "mapped")
	defer func() { _ = file.Close() }()
	to := unix.SockaddrInet6{Port: port, Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
	if err := unix.Connect(fd, &to); err != nil {
		return nil, err
	}
	return net.FileConn(file)
}

// pair is a connection over loopback whose client is another user's, as the server has it.
func pair(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	testkit.NeedsRoot(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer func() { _ = l.Close() }()
	if err := CheckLoopback(l.Addr()); err != nil {
		t.Skipf("this system does not tell who calls: %v", err)
	}
	c, err := testkit.DialAsNobody(func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	testkit.Must(t, err)
	s, err := l.Accept()
	testkit.Must(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		_ = s.Close()
	})
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// The kernel says uid 0 of a socket that its process has closed: whoever sends a request and goes must not be root.
func TestAClientThatHasGoneIsNobody(t *testing.T) {
	for name, leave := range map[string]func(c *net.TCPConn){
		"closed": func(c *net.TCPConn) { _ = c.Close() },
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
	} {
		client, server := pair(t)
		leave(client)
		_, _ = io.ReadAll(server)
		if uid, err := uidOfClient(server); err == nil {
			t.Errorf("%s: got uid %d, want an error", name, uid)
		}
	}
	client, server := pair(t)
	testkit.Must(t, client.CloseWrite())
	_, _ = io.ReadAll(server)
	if uid, err := uidOfClient(server); err != nil || uid != testkit.Nobody {
		t.Errorf("half closed: got uid %d, %v, want %d", uid, err, testkit.Nobody)
	}
}

// Where the client has reset its connection, and another user has the same port now, that one's socket is not taken for
// the client's.
func TestAPortThatChangedHands(t *testing.T) {
	client, server := pair(t)
	from, to := client.LocalAddr().(*net.TCPAddr), client.RemoteAddr().(*net.TCPAddr)
	_ = client.SetLinger(0)
	_ = client.Close()
	l, err := net.ListenTCP("tcp", to)
	testkit.Must(t, err)
	defer func() { _ = l.Close() }()
	next, err := net.DialTCP("tcp", from, to)
	if err != nil {
		t.Skipf("somebody else has the port: %v", err)
	}
	defer func() { _ = next.Close() }()
	if uid, err := uidOfClient(server); err == nil {
		t.Errorf("got uid %d, want an error", uid)
	}
}

// The answer of the kernel is kept with the connection.
func TestAConnectionIsLookedUpOnce(t *testing.T) {
	client, server := pair(t)
	p := peerOf(ConnContext(t.Context(), server))
	for range 2 {
		if uid, err := p.uid(); err != nil || uid != testkit.Nobody {
			t.Errorf("got uid %d, %v, want %d", uid, err, testkit.Nobody)
		}
		_ = client.Close() // there is nothing to be found from now on
	}
}

// A connection of another network namespace is not looked up among those of our own.
func TestAnotherNetworkIsNotLookedInto(t *testing.T) {
	_, server := pair(t)
	done := make(chan string)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- ""
			return
		}
		if uid, err := uidOfClient(server); err == nil {
			done <- fmt.Sprintf("got uid %d, want an error", uid)
		}
		close(done)
	}()
	if got := <-done; got != "" {
		t.Error(got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	testkit.Must(t, l.Close())
	if err := CheckLoopback(l.Addr()); err == nil {
		t.Error("got no error for a socket that is not there, want one")
	}
}

// In a user namespace, one uid stands for all users that it does not map: whoever has that may be anybody.
func TestOneUIDStandsForMany(t *testing.T) {
	if os.Getenv("TEST_UNMAPPED") != "" {
		fmt.Println("unmapped:", isUnmapped(65534), isUnmapped(0))
		return
	}
	if isUnmapped(65534) {
		t.Skip("the tests run in a user namespace")
	}
	for name, tt := range map[string]struct {
		flags uintptr
		want  string
	}{
		"outside": {0, "unmapped: false false"},
		"inside":  {syscall.CLONE_NEWUSER, "unmapped: true false"},
	} {
		c := exec.Command(os.Args[0], "-test.run", "^TestOneUIDStandsForMany$")
		c.Env = append(os.Environ(), "TEST_UNMAPPED=1")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: tt.flags}
		if tt.flags != 0 {
			c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		}
		out, err := c.Output()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
			t.Skipf("no user namespaces: %v", err)
		}
		if err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: got %q, %v, want %q", name, out, err, tt.want)
		}
	}
}
