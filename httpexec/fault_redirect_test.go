package httpexec

import (
	"io"
	"testing"
	"time"
)

// moved is a redirect as a whole reply.
func moved(status, location string) string {
	return "HTTP/1.1 " + status + " Moved\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n"
}

func following(most int, body Body) func(*sender) {
	return func(e *sender) {
		e.Network.MaxRedirects = most
		if body != nil {
			e.carry(body)
		}
	}
}

func TestRedirectLoop(t *testing.T) {
	again := closes(moved("302", "/again"))
	s := serve(t, again, again, again)
	o := execute(t, sending(t, "GET", s.url("http"), following(2, nil)))
	s.saw(3)
	faulty{class: "redirects", exit: 47, message: "2 redirects were followed, and there is another", wire: 3}.compare(t, o, "stop")
	if o.Reply.Status != 302 {
		t.Errorf("status %d", o.Reply.Status)
	}
}

func TestRedirectToNowhere(t *testing.T) {
	for location, exit := range map[string]int{"gopher://host/": 1, "http://[": 3, "http://host:99999/": 3} {
		s := serve(t, closes(moved("302", location)))
		o := execute(t, sending(t, "GET", s.url("http"), following(2, nil)))
		s.saw(1)
		faulty{class: "redirects", exit: exit, message: "the redirect is not followed", wire: 1}.compare(t, o, "stop")
	}
}

// What comes after a redirect is about another request. One that was answered has taken effect, if the first server had it so; one that was
// only sent on has not.
func TestFaultsAfterARedirect(t *testing.T) {
	busy := "HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
	tests := []struct {
		name, method, status string
		then                 string // a reply, or nothing for a port where nobody listens
		want                 string
		bare                 bool // the method was given with -X, and there is no body
	}{
		{"GET, refused", "GET", "302", "", "retry", false},
		{"POST, answered, refused", "POST", "303", "", "ambiguous", false},
		{"POST, answered, busy", "POST", "302", busy, "ambiguous", false},
		{"POST, answered, not there", "POST", "303", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "ambiguous", false},
		{"POST, sent on, not there", "POST", "307", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "stop", false},
		{"POST, sent on, refused", "POST", "307", "", "retry", false},
		{"POST, sent on, busy", "POST", "308", busy, "retry", false},
		{"-X POST without a body, answered, busy", "POST", "303", busy, "ambiguous", true},
		{"-X POST without a body, moved, busy", "POST", "302", busy, "ambiguous", true},
		{"-X POST without a body, moved, refused", "POST", "301", "", "ambiguous", true},
		{"-X POST without a body, sent on, busy", "POST", "307", busy, "retry", true},
		{"-X PATCH without a body, answered, busy", "PATCH", "303", busy, "ambiguous", true},
		{"-X PATCH without a body, sent on, busy", "PATCH", "302", busy, "retry", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			location, wire := nobody, 1
			if tt.then != "" {
				there := serve(t, closes(tt.then))
				location, wire = there.url("http"), 2
			}
			var body Body
			if !tt.bare {
				body = data("a=b")
			}
			s := serve(t, closes(moved(tt.status, location)))
			e := sending(t, tt.method, s.url("http"), following(2, body))
			e.Request.MethodGiven = tt.bare
			o := execute(t, e)
			s.saw(1)
			if tt.then == "" && o.Reply.Status != 0 {
				t.Errorf("status %d of the redirect, and there was no reply", o.Reply.Status)
			}
			if got := describe(o.Reply.Default); got != tt.want || o.Reply.Written != wire {
				t.Errorf("%s, %d requests; want %s, %d: %+v", got, o.Reply.Written, tt.want, wire, o)
			}
		})
	}
}

// The connection has a time of its own. What it ends has not been sent.
func TestConnectTimeout(t *testing.T) {
	s := serve(t, func(c *wire) { _, _ = io.Copy(io.Discard, c.reader) }) // never answers the handshake
	o := execute(t, sending(t, "POST", s.url("https"), func(e *sender) { e.Network.ConnectTimeout = 20 * time.Millisecond }))
	faulty{class: "timeout", exit: 28, message: "timed out after 20ms"}.compare(t, o, "retry")
}

// It is over when the connection stands: its context is cancelled then, and the request goes on.
func TestConnectTimeoutEndsWithTheConnection(t *testing.T) {
	a := newAuthority(t)
	answer := http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders|flagEndStream, stream, status200)
		return false
	})
	for protocol, do := range map[string]script{"http/1.1": replies(okReply), "h2": answer} {
		s := serveTLS(t, a.server(nil, protocol), do)
		e := sending(t, "POST", s.url("https"), func(e *sender) { e.Network.ConnectTimeout, e.Network.CACert = patience, a.file })
		o := execute(t, e)
		s.saw(1)
		if o.Exit != 0 {
			t.Errorf("%s: %+v", protocol, o)
		}
	}
}
