package httpexec

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// What a server sends before the body is shown as it came, over TLS too, as curl shows it.
func TestHeadIsShownAsItCame(t *testing.T) {
	const odd = "HTTP/1.1 200 Sure thing\r\nx-LAST: 1\r\nA-first:  two  \r\nContent-Length: 5\r\n\r\n"
	const upgradeReply = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"
	a := newAuthority(t)
	for name, tt := range map[string]struct {
		reply, head, body string
		change            func(*client)
	}{
		"a reply":          {odd + "hello", odd, "hello", nil},
		"an interim reply": {"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + odd + "hello", "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + odd, "hello", nil},
		"lines without CR": {"HTTP/1.0 200 OK\nx: y\n\nhello\n\nworld", "HTTP/1.0 200 OK\nx: y\n\n", "hello\n\nworld", nil},
		"no header at all": {"HTTP/1.0 200 OK\r\n\r\nhello", "HTTP/1.0 200 OK\r\n\r\n", "hello", nil},
		"an error":         {failedReply, failedReply[:len(failedReply)-4], "oops", nil},
		"an upgrade":       {upgradeReply, upgradeReply, "", nil},
		"a hidden error":   {failedReply, failedReply[:len(failedReply)-4], "", func(c *client) { request.Of(c.task).HideFail = true }},
		"HEAD":             {odd, odd, "", func(c *client) { c.Request.Method = "HEAD" }},
		"a long header":    {"HTTP/1.1 200 OK\r\nLong: " + strings.Repeat("x", 100_000) + "\r\n" + odd[26:] + "hello", "HTTP/1.1 200 OK\r\nLong: " + strings.Repeat("x", 100_000) + "\r\n" + odd[26:], "hello", nil},
	} {
		for _, scheme := range []string{"http", "https"} {
			var s *server
			if scheme == "http" {
				s = serve(t, closes(tt.reply))
			} else {
				s = serveTLS(t, a.server(nil), closes(tt.reply))
			}
			path := ""
			c := asking(t, s.url(scheme), func(c *client) {
				request.Of(c.task).Include = true
				c.Network.CACert = a.file
				if tt.change != nil {
					tt.change(c)
				}
				if scheme == "https" {
					path = c.into("file")
				}
			})
			c.attempt()
			s.saw(1)
			ok(t, c.comes(task.Succeeded))
			if path != "" {
				holds(t, path, tt.head+tt.body, "file")
				continue
			}
			if got := c.out.String(); got != tt.head+tt.body {
				t.Errorf("%s: %.200q\nwant %.200q", name, got, tt.head+tt.body)
			}
		}
	}
}

// HTTP/2 has no text to be shown.
func TestHeadOverHTTP2(t *testing.T) {
	a := newAuthority(t)
	s := serveTLS(t, a.server(nil, "h2"), http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, status200+"\x0f\x13\x03\"a\"\x00\x03x-b\x01c\x00\x03x-b\x01d")
		c.frame(frameData, flagEndStream, stream, "hello")
		return false
	}))
	c := asking(t, s.url("https"), func(c *client) { c.Network.CACert, request.Of(c.task).Include = a.file, true })
	c.attempt()
	ok(t, c.comes(task.Succeeded))
	c.saw("HTTP/2 200 \r\netag: \"a\"\r\nx-b: c\r\nx-b: d\r\n\r\nhello", "")
}

// Each redirect has its header shown, and no body. Of a download in parts it is the last one's.
func TestHeadsOfSeveralReplies(t *testing.T) {
	there := serve(t, closes(begun(tagged)), closes(rest("bytes 5-11/12", tagged, ", world")))
	redirect := "HTTP/1.1 302 Found\r\nLocation: " + there.url("http") + "\r\nContent-Length: 4\r\n\r\n"
	s := serve(t, closes(redirect+"body"), closes(redirect+"body"))
	c := asking(t, s.url("http"), func(c *client) { c.Network.MaxRedirects, request.Of(c.task).Include = 5, true })
	c.attempt()
	ok(t, c.comes(task.Pending))
	c.attempt()
	ok(t, c.comes(task.Succeeded))
	c.saw(redirect+"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-11/12\r\n"+tagged+"Content-Length: 7\r\n\r\n"+full, "")
}

// A download whose end alone was missing is shown with the header that it had.
func TestHeadOfWhatWasWholeAlready(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\n" + tagged + "Transfer-Encoding: chunked\r\n\r\n"
	s := serve(t, closes(head+"5\r\nhello\r\n"), closes("HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\n\r\n"))
	c := asking(t, s.url("http"), func(c *client) { request.Of(c.task).Include = true })
	c.attempt()
	ok(t, c.comes(task.Pending))
	if o := c.attempt(); o.Exit != 0 || o.Reply.Status != 200 {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
	ok(t, c.comes(task.Succeeded))
	c.saw(head+"hello", "")
}

// A proxy's own reply is none of the server's.
func TestHeadThroughATunnel(t *testing.T) {
	a := newAuthority(t)
	s := serveTLS(t, a.server(nil), replies(okReply))
	p := serve(t, func(c *wire) {
		c.request()
		there, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = there.Close() }()
		c.send("HTTP/1.1 200 Connected\r\nVia: me\r\n\r\n")
		go func() { _, _ = io.Copy(there, c.reader) }()
		_, _ = io.Copy(c, there)
	})
	c := asking(t, s.url("https"), func(c *client) {
		c.Network.CACert, c.Network.Proxy, request.Of(c.task).Include = a.file, "http://"+p.address(), true
	})
	c.attempt()
	ok(t, c.comes(task.Succeeded))
	c.saw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "")
}
