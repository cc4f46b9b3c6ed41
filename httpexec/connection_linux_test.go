package httpexec

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
)

// Where the buffers of a connection are small, the server has a part of a body of some KiB when it replies. Then it
// gets the rest, too, or the request is no success.
func TestReplyBeforeTheEndOfASmallBody(t *testing.T) {
	const size = 60_000
	small := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 536))
		})
		return errors.Join(failed, err)
	}}
	for name, want := range map[string]struct {
		then  func(*wire)
		exit  int
		whole bool
	}{
		"it reads on": {readSlowly, 0, true}, "it closes": {(*wire).reset, 55, false},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := small.Listen(t.Context(), "tcp", "127.0.0.1:0")
			testkit.Must(t, err)
			s := serveOn(t, listener, nil, []script{func(c *wire) {
				if c.header(new(bytes.Buffer)) != nil {
					c.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					want.then(c)
				}
			}})
			e := newSender(t, "PUT", s.url("http"), func(*sender) {})
			e.Request.Body = aPart(strings.Repeat("x", size))
			o := execute(t, e)
			s.stop()
			if whole := s.surplus == size; o.Exit != want.exit || whole != want.whole {
				t.Errorf("got %+v, and the server got %d bytes, want exit %d, all of them %v",
					o, s.surplus, want.exit, want.whole)
			}
		})
	}
}
