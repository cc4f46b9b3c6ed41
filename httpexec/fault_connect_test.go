package httpexec

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// unsent checks a fault that needs no server, or comes before a request gets to one: for each method nothing is written.
func (f faulty) unsent(t *testing.T, url string) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(f.name+"/"+method, func(t *testing.T) {
			e := sending(t, method, url, f.change)
			f.compare(t, execute(t, e), f.i)
		})
	}
}

// nobody is where nobody listens: no test is given so low a port, as it may be that of a listener that was closed.
const nobody = "http://127.0.0.1:1/"

func TestFaultsBeforeTheConnection(t *testing.T) {
	for _, f := range []struct {
		faulty
		url string
	}{
		{faulty{name: "refused", class: "connect", exit: 7, message: "connect to 127.0.0.1:", i: "retry"}, nobody},
		{faulty{name: "no socket", class: "connect", exit: 7, message: "/none: no such file or directory", i: "retry",
			change: func(e *sender) { e.Network.UnixSocket = filepath.Join(t.TempDir(), "none") }}, nobody},
		{faulty{name: "all addresses refused", class: "connect", exit: 7, message: "connection refused", i: "retry", change: func(e *sender) {
			e.Network.Resolve = []string{must(e.Request.URL).Host + ":127.0.0.1,127.0.0.2"}
		}}, nobody},
		{faulty{name: "proxy refused", class: "connect", exit: 7, message: "connect to the proxy 127.0.0.1:", i: "retry",
			change: func(e *sender) { e.Network.Proxy = nobody }}, "http://service.example/"},
	} {
		f.unsent(t, f.url)
	}
}

// names answers every question about a name with a code of DNS.
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
		{name: "no such proxy", change: proxied(noSuchName), class: "dns", exit: 5, message: "no such host: proxy.example", i: "retry 3"},
		{name: "no answer", change: with(serverFailure),
			class: "dns", exit: 6, message: "look up the host: server misbehaving: service.example", i: "retry"},
		{name: "no answer for the proxy", change: proxied(serverFailure),
			class: "dns", exit: 5, message: "server misbehaving: proxy.example", i: "retry"},
	} {
		f.unsent(t, "http://service.example/")
	}
}

// A request that cannot be sent is known before anything is connected to.
func TestFaultsOfTheRequest(t *testing.T) {
	header := func(line string) func(*sender) {
		return func(e *sender) { e.Request.Header = []string{line} }
	}
	tests := []struct {
		faulty
		url string
	}{
		{faulty{name: "garbage", exit: 3, message: "the URL cannot be requested"}, "http://[::1"},
		{faulty{name: "garbage after a password", exit: 3, message: "the URL cannot be requested: it is malformed"}, "http://me:sec/ret@host/"},
		{faulty{name: "no host", exit: 3, message: "it names no host"}, "http:///path"},
		{faulty{name: "no port", exit: 3, message: "70000 is no port"}, "http://host:70000/"},
		{faulty{name: "beyond ASCII", exit: 3, message: "xn--"}, "http://b\u00fccher.example/"},
		{faulty{name: "another scheme", exit: 1, message: `"ftp" is neither http nor https`}, "ftp://host/"},
		{faulty{name: "a header's name", exit: 3, message: `header 1 has a name that is none: "a b"`, change: header("a b: c")}, "http://host/"},
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

func TestMethodThatIsNone(t *testing.T) {
	o := execute(t, sending(t, "GET /", "http://host/", nil))
	faulty{class: "url", exit: 3, message: `"GET /" is no method`}.compare(t, o, "stop")
}

// What is wrong on this machine stays so.
func TestFaultsOfThisMachine(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	ok(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	missing := filepath.Join(t.TempDir(), "missing")
	options := func(n request.Network) func(*sender) { return func(e *sender) { *e.Network = n } }
	for _, f := range []faulty{
		{name: "no file of authorities", change: options(request.Network{CACert: missing}), exit: 77, message: "no such file"},
		{name: "no authority in the file", change: options(request.Network{CACert: garbage}), exit: 77, message: "no certificate in PEM form"},
		{name: "no certificate of ours", change: options(request.Network{Cert: missing}), exit: 58, message: "no such file"},
		{name: "no certificate in the file", change: options(request.Network{Cert: garbage}), exit: 58, message: "PEM"},
		{name: "a key alone", change: options(request.Network{Key: garbage}), exit: 58, message: "there is a key but no certificate"},
	} {
		f.class, f.i = task.ErrorLocal, "stop"
		f.unsent(t, "https://host/")
	}
}

// brokenBody fails on its way.
type brokenBody struct{ sized }

// sized is a body's size.
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
	e := sending(t, "PUT", s.url("http"), func(e *sender) { e.carry(brokenBody{sized{1 << 20}}) })
	faulty{class: "local", exit: 26, message: "read the request's body: input/output error", wire: 1}.compare(t, execute(t, e), "stop")
}

// A file may be cut between two attempts.
func TestBodyThatHasShrunk(t *testing.T) {
	s := serve(t, func(c *wire) { _, _ = io.Copy(io.Discard, c.reader) })
	shrunk := struct {
		io.ReaderAt
		sized
	}{strings.NewReader("short"), sized{100}}
	e := sending(t, "PUT", s.url("http"), func(e *sender) { e.carry(shrunk) })
	faulty{class: "local", exit: 26, message: "read the request's body: it is shorter than it was", wire: 1}.compare(t, execute(t, e), "stop")
}

func TestReplyThatCannotBeKept(t *testing.T) {
	for method, follows := range map[string]string{"GET": "stop", "POST": "ambiguous"} {
		s := serve(t, func(c *wire) {
			c.request()
			c.send("%s", largeCut)
			c.stall()
		})
		e := sending(t, method, s.url("http"), func(e *sender) {
			e.Temporary = func() (*os.File, error) { return nil, syscall.ENOSPC }
		})
		faulty{class: "local", exit: 23, message: "keep the reply: no space left on device", wire: 1}.compare(t, execute(t, e), follows)
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
		{name: "socks refuses", script: socks("\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"), class: "connect", exit: 97, message: through},
		{name: "socks late", script: socks(""), class: "timeout", exit: 28, message: through + "timed out after 5s"},
	} {
		f.proxied(t, "socks5h://", 0)
	}
}

// proxied checks a fault of a proxy. It reads its own requests, and not one for the host.
func (f faulty) proxied(t *testing.T, scheme string, asked int) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(f.name+"/"+method, func(t *testing.T) {
			s := serve(t, f.script)
			e := sending(t, method, "https://service.example/", func(e *sender) { e.Network.Proxy = scheme + s.address() })
			o := e.Execute(f.context(t, s, e), e.task(), runner.Call{Number: 1})
			s.saw(asked)
			f.compare(t, o, "retry")
		})
	}
}

// timesUpAfter ends the attempt's time where nothing was sent, and waits for the client to go.
func (c *wire) timesUpAfter(sent string) {
	if sent == "" {
		c.server.timeUp()
	}
	_, _ = io.Copy(io.Discard, c.reader)
}

// Where an attempt stayed is seen in its phases.
func TestPhasesOfAFault(t *testing.T) {
	refused := execute(t, sending(t, "GET", nobody, nil)).Reply.Phases
	if refused.Connect <= 0 || refused.FirstByte != 0 {
		t.Errorf("refused: %+v", refused)
	}
	s := serve(t, closes(""))
	closed := execute(t, sending(t, "GET", s.url("http"), nil)).Reply.Phases
	if closed.Connect <= 0 || closed.FirstByte <= 0 {
		t.Errorf("closed: %+v", closed)
	}
}
