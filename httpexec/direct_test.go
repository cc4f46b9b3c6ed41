package httpexec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// A worker sends small requests over connections of its own, without net/http's. They are used again only after a reply
// that has ended, with nothing behind it, and which does not close the connection.
func TestWhenADirectConnectionIsUsedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		reply string
		again bool
	}{
		"no body":          {noContent, true},
		"whole":            {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		"chunked":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
		"after interim":    {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		"closed":           {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false},
		"closed, HTTP/1.0": {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		"more behind it":   {noContent + noContent, false},
		"too long to read": {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", replyLimit+1,
			strings.Repeat("x", replyLimit)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.again {
				s := serve(t, each(tt.reply, noContent))
				e := deliver(t, s.url("http"), nil)
				if o := execute(t, e); o.Exit != 0 || o.Reply.Status == 103 {
					t.Errorf("got %+v, %+v, want a success", o, o.Reply)
				}
				delivered(t, execute(t, e), 204, 1)
				return
			}
			over := make(chan struct{})
			s := serve(t, func(c *wire) {
				c.request()
				c.send("%s", tt.reply)
				<-over // the server itself does not close it
			}, each(noContent))
			defer close(over)
			e := deliver(t, s.url("http"), nil)
			if o := execute(t, e); o.Exit != 0 || e.Delivery.Pool.Idle() != 0 {
				t.Errorf("got %+v and %d connections kept, want a success and none", o, e.Delivery.Pool.Idle())
			}
			delivered(t, execute(t, e), 204, 1)
		})
	}
}

// A header without an end takes no more memory than any other, and is told as such: the server was reached.
func TestTheHeaderOfADirectReplyIsBounded(t *testing.T) {
	for size, want := range map[int]task.ErrorClass{
		maxHeader / 2: task.ErrorNone, maxHeader + 100<<10: task.ErrorProtocol,
	} {
		s := serve(t, func(c *wire) {
			c.request()
			c.send("HTTP/1.1 200 OK\r\nX: %s\r\nContent-Length: 0\r\n\r\n", strings.Repeat("x", size))
		})
		e := deliver(t, s.url("http"), nil)
		if o := execute(t, e); o.Error != want || o.Reply.Written != 1 {
			t.Errorf("a header of %d bytes: got %+v, %+v, want error %q", size, o, o.Reply, want)
		}
	}
}

// The wait for the first byte of a reply is measured as over other connections.
func TestTheWaitForADirectReplyIsMeasured(t *testing.T) {
	const late = 20 * time.Millisecond
	s := serve(t, func(c *wire) {
		c.request()
		time.Sleep(late)
		c.send(noContent)
	})
	o := execute(t, deliver(t, s.url("http"), nil))
	if got := o.Reply.Phases.FirstByte; got < late || got > o.Duration {
		t.Errorf("got %v of %v, want at least %v", got, o.Duration, late)
	}
}

// What a direct connection cannot do goes over one of net/http.
func TestWhatIsNotSentDirectly(t *testing.T) {
	proxy := serve(t, each(noContent))
	e := deliver(t, "http://192.0.2.1/", func(e *sender) { e.Network.Proxy = proxy.url("http") })
	delivered(t, execute(t, e), 204, 1)

	const packed = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xca\xcf\x06\x04\x00\x00\xff\xff" +
		"\x47\xdd\xdc\x79\x02\x00\x00\x00" // "ok"
	s := serve(t, each(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s",
		len(packed), packed)))
	e = deliver(t, s.url("http"), func(e *sender) { e.Network.Compressed = true })
	o := execute(t, e)
	if o.Reply.Body != "ok" {
		t.Errorf("got %+v and %q, want it unpacked", o, o.Reply.Body)
	}
	s.saw(1)
}
