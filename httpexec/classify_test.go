package httpexec

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// unsent checks a fault before the request: nothing is written, whatever the method.
func (f faulty) unsent(t *testing.T, url string) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(f.name+"/"+method, func(t *testing.T) {
			e := newSender(t, method, url, f.change)
			f.compare(t, execute(t, e), f.i)
		})
	}
}

// nobody is a URL where nothing listens. Its port is so low that the system never gives it to a listener of a test.
const nobody = "http://127.0.0.1:1/"

func TestFaultsBeforeTheConnection(t *testing.T) {
	for _, f := range []struct {
		faulty
		url string
	}{
		{faulty{name: "refused", class: "connect", exit: 7, message: "connect to 127.0.0.1:", i: "retry"}, nobody},
		{faulty{name: "no socket", class: "connect", exit: 7, message: "/none: no such file or directory", i: "retry",
			change: func(e *sender) { e.Network.UnixSocket = filepath.Join(t.TempDir(), "none") }}, nobody},
		{faulty{name: "all addresses refused", class: "connect", exit: 7, message: "connection refused", i: "retry",
			change: func(e *sender) {
				e.Network.Resolve = []string{parseURL(e.Request.URL).Host + ":127.0.0.1,127.0.0.2"}
			}}, nobody},
		{faulty{name: "proxy refused", class: "connect", exit: 7, message: "connect to the proxy 127.0.0.1:", i: "retry",
			change: func(e *sender) { e.Network.Proxy = nobody }}, "http://service.example/"},
	} {
		f.unsent(t, f.url)
	}
}

// names returns a resolver that answers every question with an error code of DNS.
func names(code byte) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			for {
				length := make([]byte, 2) // net.Pipe is no packet connection, so the questions come as over TCP
				if _, err := io.ReadFull(server, length); err != nil {
					return
				}
				question := make([]byte, int(length[0])<<8|int(length[1]))
				if _, err := io.ReadFull(server, question); err != nil {
					return
				}
				question[2] |= 0x80
				question[3] = question[3]&0xf0 | code
				_, _ = server.Write(append(length, question...))
			}
		}()
		return client, nil
	}}
}

func TestFaultsOfNames(t *testing.T) {
	const (
		serverFailure = 2
		noSuchName    = 3
	)
	proxied := func(code byte) func(*sender) {
		return func(e *sender) { e.resolver, e.Network.Proxy = names(code), "proxy.example:1" }
	}
	with := func(code byte) func(*sender) { return func(e *sender) { e.resolver = names(code) } }
	for _, f := range []faulty{
		{name: "no such host", change: with(noSuchName),
			class: "dns", exit: 6, message: "look up the host: no such host: service.example", i: "retry 3"},
		{name: "no such proxy", change: proxied(noSuchName), class: "dns", exit: 5, message: "no such host: proxy.example",
			i: "retry 3"},
		{name: "no answer", change: with(serverFailure),
			class: "dns", exit: 6, message: "look up the host: server misbehaving: service.example", i: "retry"},
		{name: "no answer for the proxy", change: proxied(serverFailure),
			class: "dns", exit: 5, message: "server misbehaving: proxy.example", i: "retry"},
	} {
		f.unsent(t, "http://service.example/")
	}
}

// An invalid request is refused before a connection is made.
func TestFaultsOfTheRequest(t *testing.T) {
	header := func(line string) func(*sender) {
		return func(e *sender) { e.Request.Header = []string{line} }
	}
	tests := []struct {
		faulty
		url string
	}{
		{faulty{name: "garbage", exit: 3, message: "the URL cannot be requested"}, "http://[::1"},
		{faulty{name: "garbage after a password", exit: 3, message: "the URL cannot be requested: it is malformed"},
			"http://me:sec/ret@host/"},
		{faulty{name: "no host", exit: 3, message: "it names no host"}, "http:///path"},
		{faulty{name: "no port", exit: 3, message: "invalid port 70000"}, "http://host:70000/"},
		{faulty{name: "beyond ASCII", exit: 3, message: "xn--"}, "http://b\u00fccher.example/"},
		{faulty{name: "another scheme", exit: 1, message: `"ftp" is neither http nor https`}, "ftp://host/"},
		{faulty{name: "a header's name", exit: 3, message: `header 1 has a name that is none: "a b"`,
			change: header("a b: c")}, "http://host/"},
		{faulty{name: "a header's value", exit: 3, message: "the header A holds a control character",
			change: header("A: b\r\nC: d")}, "http://host/"},
		{faulty{name: "a proxy", exit: 5, message: "the proxy cannot be used",
			change: func(e *sender) { e.Network.Proxy = "ftp://p" }}, "http://host/"},
	}
	for _, tt := range tests {
		tt.class, tt.i = task.ErrorURL, "stop"
		tt.unsent(t, tt.url)
	}
}

func TestInvalidMethod(t *testing.T) {
	o := execute(t, newSender(t, "GET /", "http://host/", nil))
	faulty{class: "url", exit: 3, message: `invalid method "GET /"`}.compare(t, o, "stop")
}

// Errors of this machine are not retried.
func TestFaultsOfThisMachine(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	testkit.Must(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	missing := filepath.Join(t.TempDir(), "missing")
	options := func(n request.Network) func(*sender) { return func(e *sender) { *e.Network = n } }
	for _, f := range []faulty{
		{name: "no file of authorities", change: options(request.Network{CACert: missing}), exit: 77,
			message: "no such file"},
		{name: "no authority in the file", change: options(request.Network{CACert: garbage}), exit: 77,
			message: "no certificate in PEM form"},
		{name: "no certificate of ours", change: options(request.Network{Cert: missing}), exit: 58, message: "no such file"},
		{name: "no certificate in the file", change: options(request.Network{Cert: garbage}), exit: 58, message: "PEM"},
		{name: "a key alone", change: options(request.Network{Key: garbage}), exit: 58,
			message: "there is a key but no certificate"},
	} {
		f.class, f.i = task.ErrorLocal, "stop"
		f.unsent(t, "https://host/")
	}
}

// brokenBody cannot be read to its end.
type brokenBody struct{ sized }

// sized is the size of a body.
type sized struct{ size int64 }

func (s sized) Size() int64 { return s.size }

func (b brokenBody) ReadAt(p []byte, offset int64) (int, error) {
	if offset > 0 {
		return 0, syscall.EIO
	}
	return len(p), nil
}

func TestBodyThatCannotBeRead(t *testing.T) {
	s := serve(t, func(c *wire) { _, _ = io.Copy(io.Discard, c.reader) })
	e := newSender(t, "PUT", s.url("http"), func(e *sender) { e.setBody(brokenBody{sized{1 << 20}}) })
	want := faulty{class: "local", exit: 26, message: "read the request's body: input/output error", wire: 1}
	want.compare(t, execute(t, e), "stop")
}

// A file may become shorter between two attempts.
func TestBodyThatHasShrunk(t *testing.T) {
	s := serve(t, func(c *wire) { _, _ = io.Copy(io.Discard, c.reader) })
	shrunk := struct {
		io.ReaderAt
		sized
	}{strings.NewReader("short"), sized{100}}
	e := newSender(t, "PUT", s.url("http"), func(e *sender) { e.setBody(shrunk) })
	want := faulty{class: "local", exit: 26, message: "read the request's body: it is shorter than it was", wire: 1}
	want.compare(t, execute(t, e), "stop")
}

func TestReplyThatCannotBeKept(t *testing.T) {
	for method, follows := range map[string]string{"GET": "stop", "POST": "ambiguous"} {
		s := serve(t, func(c *wire) {
			c.request()
			c.send("%s", largeCut)
			c.stall()
		})
		e := newSender(t, method, s.url("http"), func(e *sender) {
			e.Temporary = func() (*os.File, error) { return nil, syscall.ENOSPC }
		})
		want := faulty{class: "local", exit: 23, message: "keep the reply: no space left on device", wire: 1}
		want.compare(t, execute(t, e), follows)
	}
}

func TestFaultsOfProxies(t *testing.T) {
	socks := func(reply string) script {
		return func(c *wire) {
			_, _ = c.reader.Discard(3) // version, and one method
			c.send("\x05\x00")
			_, _ = c.reader.Peek(1)
			c.send("%s", reply)
			c.timesUpAfter(reply)
		}
	}
	const through = "connect through the proxy: "
	for _, f := range []faulty{
		{name: "refuses", script: replies("HTTP/1.1 403 No\r\n\r\n"),
			class: "connect", exit: 56, message: through + "the proxy refuses with status 403 Forbidden"},
		{name: "closes", script: closes(""), class: "connect", exit: 56, message: through + "the connection was closed"},
		{name: "resets", script: resets(""), class: "connect", exit: 56, message: through + "connection reset by peer"},
		{name: "garbage", script: replies("nonsense\r\n"), class: "connect", exit: 56, message: through},
		{name: "late", script: stalls(""), class: "timeout", exit: 28, message: through + "timed out after 5s"},
	} {
		f.proxied(t, "", 1)
	}
	for _, f := range []faulty{
		{name: "socks refuses", script: socks("\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"), class: "connect", exit: 97,
			message: through},
		{name: "socks late", script: socks(""), class: "timeout", exit: 28, message: through + "timed out after 5s"},
	} {
		f.proxied(t, "socks5h://", 0)
	}
}

// proxied checks a fault of a proxy. The server counts the requests to the proxy; there is none to the host.
func (f faulty) proxied(t *testing.T, scheme string, asked int) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(f.name+"/"+method, func(t *testing.T) {
			s := serve(t, f.script)
			e := newSender(t, method, "https://service.example/", func(e *sender) { e.Network.Proxy = scheme + s.address() })
			o := e.Execute(f.context(t, s, e), e.task(), runner.Call{Number: 1})
			s.saw(asked)
			f.compare(t, o, "retry")
		})
	}
}

// timesUpAfter ends the attempt's time if nothing was sent, and waits until the client has closed the connection.
func (c *wire) timesUpAfter(sent string) {
	if sent == "" {
		c.server.timeUp()
	}
	_, _ = io.Copy(io.Discard, c.reader)
}

// The phases show where an attempt failed.
func TestPhasesOfAFault(t *testing.T) {
	refused := execute(t, newSender(t, "GET", nobody, nil)).Reply.Phases
	if refused.Connect <= 0 || refused.FirstByte != 0 {
		t.Errorf("refused: got phases %+v, want a time to connect and none to the first byte", refused)
	}
	s := serve(t, closes(""))
	closed := execute(t, newSender(t, "GET", s.url("http"), nil)).Reply.Phases
	if closed.Connect <= 0 || closed.FirstByte <= 0 {
		t.Errorf("closed: got phases %+v, want a time to connect and one to the first byte", closed)
	}
}

// faulty is one fault: what the server does, the outcome for idempotent and for other requests, and how many requests
// reach the server.
type faulty struct {
	name    string
	script  script
	change  func(*sender)
	class   task.ErrorClass
	exit    int
	message string
	i, n    string // as in TestDefault
	wire    int
	until   stage // what server.reached stands for
}

// check runs the fault for a GET and for a POST with a body, each against a server of its own.
func (f faulty) check(t *testing.T, scheme string, config *tls.Config) {
	for method, want := range map[string]string{"GET": f.i, "POST": f.n} {
		t.Run(f.name+"/"+method, func(t *testing.T) {
			var s *server
			if config == nil {
				s = serve(t, f.script)
			} else {
				s = serveTLS(t, config, f.script)
			}
			e := newSender(t, method, s.url(scheme), f.change)
			if method == "POST" {
				e.setBody(data("a=b"))
			}
			o := e.Execute(f.context(t, s, e), e.task(), runner.Call{Number: 1})
			s.saw(f.wire)
			f.compare(t, o, want)
			if s.accepted > 1 {
				t.Errorf("got %d connections, want at most 1", s.accepted)
			}
		})
	}
}

// orAmbiguous sets what most faults after the request have in common.
func (f faulty) orAmbiguous() faulty {
	if f.i == "" {
		f.i, f.n = "retry", "ambiguous"
	}
	f.wire = 1
	return f
}

// context returns a context that the script can end as a timeout does. It also tells the script when the client has
// received the first byte of the reply, or so much of the body that it is written to a file.
func (f faulty) context(t *testing.T, s *server, e *sender) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	s.timeUp = func() { cancel(fmt.Errorf("%w after 5s", runner.ErrTimeout)) }
	switch f.until {
	case stageHeader:
		return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { close(s.reached) }})
	case stageBody:
		file := e.Temporary
		e.Temporary = func() (*os.File, error) {
			close(s.reached)
			return file()
		}
	}
	return ctx
}

func (f faulty) compare(t *testing.T, o task.Outcome, follows string) {
	t.Helper()
	if o.Error != f.class || o.Exit != f.exit || !strings.Contains(o.Message, f.message) || f.message == "" {
		t.Errorf("got %q, exit %d, %q, want %q, exit %d, %q", o.Error, o.Exit, o.Message, f.class, f.exit, f.message)
	}
	if strings.Contains(o.Message, "\n") {
		t.Errorf("got message %q, want one line", o.Message)
	}
	if got := describe(o.Reply.Default); got != follows {
		t.Errorf("got %s (%+v), want %s", got, o.Reply.Default, follows)
	}
	if o.Reply.Written != f.wire {
		t.Errorf("got %d requests are said to be written, want %d", o.Reply.Written, f.wire)
	}
}

// largeCut is the beginning of a body that is larger than what stays in memory.
var largeCut = "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + strings.Repeat("x", 2<<20)

func TestFaultsAfterTheRequest(t *testing.T) {
	const (
		lost  = "wait for the reply: the connection was closed"
		reset = "connection reset by peer"
		late  = "timed out after 5s"
	)
	for _, f := range []faulty{
		{name: "closed without a byte", script: closes(""), class: "reset", exit: 52, message: lost},
		{name: "reset", script: resets(""), class: "reset", exit: 56, message: reset},
		{name: "no reply in time", script: stalls(""), class: "timeout", exit: 28, message: "wait for the reply: " + late},

		{name: "header cut", script: closes(cutHeader),
			class: "reset", exit: 56, message: "read the reply's header: the connection was closed"},
		{name: "status line cut", script: closes("HTTP/1.1 2"),
			class: "reset", exit: 56, message: "read the reply's header: the connection was closed"},
		{name: "header reset", script: resets(cutHeader), until: stageHeader, class: "reset", exit: 56,
			message: "header: " + reset},
		{name: "header late", script: stalls(cutHeader), until: stageHeader,
			class: "timeout", exit: 28, message: "read the reply's header: " + late},

		{name: "body cut", script: closes(cutReply), class: "truncated", exit: 18,
			message: "read the reply: the connection was closed"},
		{name: "chunks cut", script: closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
			class: "truncated", exit: 18, message: "read the reply: "},
		{name: "last chunk missing", script: closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
			class: "truncated", exit: 18, message: "read the reply: "},
		{name: "chunks that are none", script: replies("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
			class: "truncated", exit: 56, message: "read the reply: "},
		{name: "body reset", script: resets(largeCut), until: stageBody, class: "truncated", exit: 56,
			message: "read the reply: " + reset},
		{name: "body late", script: stalls(largeCut), until: stageBody, class: "timeout", exit: 28,
			message: "read the reply: " + late},
		{name: "error's body cut", script: closes("HTTP/1.1 429 Slow\r\nContent-Length: 50\r\n\r\nhello"),
			exit: 22, message: "status 429 Too Many Requests, and its body was cut", i: "retry", n: "retry"},

		{name: "garbage", script: replies("SSH-2.0-OpenSSH_9.2\r\n"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "garbage in the header", script: replies("HTTP/1.1 200 OK\r\nno header\r\n\r\n"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "two lengths", script: replies("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "a status that is none", script: replies("HTTP/1.1 abc\r\n\r\n"),
			class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "a status that nobody has", script: closes("HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n"),
			class: "protocol", exit: 8, message: "read the reply's header: the reply is not HTTP", i: "retry 2", n: "ambiguous"},
		{name: "a header without end",
			script: closes("HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxHeader/6) + "\r\n"),
			class:  "protocol", exit: 56, message: "read the reply's header: it has no end within 300 KiB", i: "retry 2",
			n: "ambiguous"},
		{name: "speaks first", script: func(c *wire) {
			c.send("220 mail.example ESMTP\r\n")
			c.request()
			c.stall()
		}, class: "protocol", exit: 8, message: "the reply is not HTTP", i: "retry 2", n: "ambiguous"},
	} {
		f.orAmbiguous().check(t, "http", nil)
	}
}

func TestFaultsOfHTTP2(t *testing.T) {
	config := newAuthority(t).server(nil, "h2")
	answer := func(do func(c *wire, stream uint32)) script {
		return http2(func(c *wire, stream uint32) bool {
			do(c, stream)
			return false
		})
	}
	for _, f := range []faulty{
		{name: "stream refused", script: answer(func(c *wire, s uint32) { c.resetStream(s, codeRefusedStream) }),
			class: "reset", exit: 92, message: "wait for the reply: the server refused the request (REFUSED_STREAM)", i: "retry",
			n: "retry"},
		{name: "stream reset", script: answer(func(c *wire, s uint32) { c.resetStream(s, codeInternal) }),
			class: "reset", exit: 92, message: "wait for the reply: HTTP/2 stream reset with code 2"},
		{name: "GOAWAY before the stream", script: answer(func(c *wire, s uint32) { c.goAway(0, codeNone) }),
			class: "reset", exit: 16, message: "GOAWAY"},
		{name: "GOAWAY with an error", script: answer(func(c *wire, s uint32) { c.goAway(0, codeEnhanceCalm) }),
			class: "reset", exit: 16, message: "GOAWAY"},
		{name: "GOAWAY after the stream, and closed", script: http2(func(c *wire, s uint32) bool {
			c.goAway(s, codeNone)
			return true
		}), class: "reset", exit: 16, message: "GOAWAY"},
		{name: "closed", script: http2(func(*wire, uint32) bool { return true }),
			class: "reset", exit: 52, message: "wait for the reply: the connection was closed"},
		{name: "reset", script: http2(func(c *wire, _ uint32) bool {
			c.reset()
			return true
		}), class: "reset", exit: 56, message: "wait for the reply: connection reset by peer"},
		{name: "no reply in time", script: answer(func(c *wire, _ uint32) { c.server.timeUp() }),
			class: "timeout", exit: 28, message: "wait for the reply: timed out after 5s"},
		{name: "body reset", script: answer(func(c *wire, s uint32) {
			c.frame(frameHeaders, flagEndHeaders, s, status200)
			c.frame(frameData, 0, s, "hel")
			c.resetStream(s, codeInternal)
		}), class: "truncated", exit: 92, message: "read the reply: HTTP/2 stream reset with code 2"},
		{name: "body cut", script: http2(func(c *wire, s uint32) bool {
			c.frame(frameHeaders, flagEndHeaders, s, status200)
			c.frame(frameData, 0, s, "hel")
			return true
		}), class: "truncated", exit: 18, message: "read the reply: the connection was closed"},
		{name: "garbage", script: answer(func(c *wire, _ uint32) { c.send("HTTP/1.1 400 Bad Request\r\n\r\n") }),
			class: "reset", exit: 16, message: "wait for the reply: http2: "},
	} {
		f.change = func(e *sender) { e.Network.Insecure = true }
		f.orAmbiguous().check(t, "https", config)
	}
}

// moved returns a redirect.
func moved(status, location string) string {
	return "HTTP/1.1 " + status + " Moved\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n"
}

func following(most int, body Body) func(*sender) {
	return func(e *sender) {
		e.Network.MaxRedirects = most
		if body != nil {
			e.setBody(body)
		}
	}
}

func TestRedirectLoop(t *testing.T) {
	again := closes(moved("302", "/again"))
	s := serve(t, again, again, again)
	o := execute(t, newSender(t, "GET", s.url("http"), following(2, nil)))
	s.saw(3)
	want := faulty{class: "redirects", exit: 47, message: "2 redirects were followed, and there is another", wire: 3}
	want.compare(t, o, "stop")
	if o.Reply.Status != 302 {
		t.Errorf("got status %d, want 302", o.Reply.Status)
	}
}

func TestRedirectToAnInvalidURL(t *testing.T) {
	for location, exit := range map[string]int{"gopher://host/": 1, "http://[": 3, "http://host:99999/": 3} {
		s := serve(t, closes(moved("302", location)))
		o := execute(t, newSender(t, "GET", s.url("http"), following(2, nil)))
		s.saw(1)
		faulty{class: "redirects", exit: exit, message: "the redirect is not followed", wire: 1}.compare(t, o, "stop")
	}
}

// A failure after a redirect concerns another request. If the redirect says that the first request was processed, it is
// ambiguous; if it asks for the same request elsewhere, it is not.
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
			e := newSender(t, tt.method, s.url("http"), following(2, body))
			e.Request.MethodGiven = tt.bare
			o := execute(t, e)
			s.saw(1)
			if tt.then == "" && o.Reply.Status != 0 {
				t.Errorf("got status %d, want 0: that of the redirect does not count", o.Reply.Status)
			}
			if got := describe(o.Reply.Default); got != tt.want || o.Reply.Written != wire {
				t.Errorf("got %s, %d requests, want %s, %d: %+v", got, o.Reply.Written, tt.want, wire, o)
			}
		})
	}
}

// The connect timeout ends an attempt before anything of the request is sent.
func TestConnectTimeout(t *testing.T) {
	s := serve(t, func(c *wire) { _, _ = io.Copy(io.Discard, c.reader) }) // never answers the handshake
	o := execute(t, newSender(t, "POST", s.url("https"),
		func(e *sender) { e.Network.ConnectTimeout = 20 * time.Millisecond }))
	faulty{class: "timeout", exit: 28, message: "timed out after 20ms"}.compare(t, o, "retry")
}

// The connect timeout does not end a request after the connection is made.
func TestConnectTimeoutEndsWithTheConnection(t *testing.T) {
	a := newAuthority(t)
	answer := http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders|flagEndStream, stream, status200)
		return false
	})
	for protocol, do := range map[string]script{"http/1.1": replies(okReply), "h2": answer} {
		s := serveTLS(t, a.server(nil, protocol), do)
		e := newSender(t, "POST", s.url("https"), func(e *sender) {
			e.Network.ConnectTimeout, e.Network.CACert = patience, a.file
		})
		o := execute(t, e)
		s.saw(1)
		if o.Exit != 0 {
			t.Errorf("%s: got %+v, want exit 0", protocol, o)
		}
	}
}

func TestFaultsOfTLS(t *testing.T) {
	a := newAuthority(t)
	hello := func(c *wire) { // reads the client's whole first record
		head := make([]byte, 5)
		_, _ = io.ReadFull(c.reader, head)
		_, _ = io.CopyN(io.Discard, c.reader, int64(head[3])<<8|int64(head[4]))
	}
	const passing = "TLS handshake: "
	for _, f := range []faulty{
		{name: "closed", script: hello, message: passing + "the connection was closed", i: "retry"},
		{name: "cut", script: func(c *wire) {
			hello(c)
			c.send("\x16\x03\x03\x00\x7a\x02\x00")
		}, message: passing + "the connection was closed", i: "retry"},
		{name: "reset", script: func(c *wire) {
			hello(c)
			c.reset()
		}, message: passing + "connection reset by peer", i: "retry"},
		{name: "late", script: func(c *wire) {
			hello(c)
			c.server.timeUp()
			_, _ = io.Copy(io.Discard, c.reader)
		}, class: "timeout", exit: 28, message: passing + "timed out after 5s", i: "retry"},
		{name: "no TLS", script: func(c *wire) {
			hello(c)
			c.send("HTTP/1.1 400 Bad Request\r\n\r\n")
			_, _ = io.Copy(io.Discard, c.reader)
		}, message: passing + "the server does not speak TLS", i: "stop"},
	} {
		f.n = f.i
		if f.class == "" {
			f.class, f.exit = "tls", 35
		}
		f.change = func(e *sender) { e.Network.CACert = a.file }
		f.check(t, "https", nil)
	}
}

func TestRefusalsOfTLS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	alert := a.server(nil)
	alert.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("refused") }
	wantsClient := a.server(nil)
	wantsClient.ClientAuth, wantsClient.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	handshake := func(c *wire) { _, _ = io.Copy(io.Discard, c.reader) }
	old := a.server(nil)
	old.MaxVersion = tls.VersionTLS11 //nolint:gosec // this is the point
	tests := []struct {
		faulty
		config *tls.Config
	}{
		{faulty{name: "unknown authority", exit: 60, message: "unknown authority"}, stranger.server(nil)},
		{faulty{name: "expired", exit: 60, message: "expired"},
			a.server(func(c *certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		{faulty{name: "another host's", exit: 60, message: "127.0.0.1"},
			a.server(func(c *certificate) { c.IPAddresses[0][15] = 9 })},
		{faulty{name: "alert", exit: 35, message: "remote error"}, alert},
		{faulty{name: "too old", exit: 35, message: "TLS handshake: "}, old},
	}
	for _, tt := range tests {
		tt.class, tt.script, tt.i, tt.n = "tls", handshake, "stop", "stop"
		tt.change = func(e *sender) { e.Network.CACert = a.file }
		tt.check(t, "https", tt.config)
	}
}

// In TLS 1.3 a server refuses a client after the client has begun to write.
func TestClientWithoutACertificate(t *testing.T) {
	a := newAuthority(t)
	config := a.server(nil)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	s := serveTLS(t, config, func(c *wire) { _, _ = c.reader.ReadByte() })
	o := execute(t, newSender(t, "POST", s.url("https"), func(e *sender) { e.Network.CACert = a.file }))
	if o.Error != task.ErrorTLS || describe(o.Reply.Default) != "stop" ||
		!strings.Contains(o.Message, "certificate required") {
		t.Errorf("got %+v, %+v, want a TLS error that is not retried", o, o.Reply)
	}
}
