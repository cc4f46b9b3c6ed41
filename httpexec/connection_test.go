package httpexec

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func TestExecuteOverTLS(t *testing.T) {
	a := newAuthority(t)
	wantsClient := a.server(nil)
	wantsClient.ClientAuth, wantsClient.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	client := a.client()
	http2Reply := http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, status200)
		c.frame(frameData, flagEndStream, stream, "hello")
		return false
	})
	tests := []struct {
		name   string
		config *tls.Config
		script script
		change func(*sender)
	}{
		{"believed", a.server(nil), replies(okReply), nil},
		{"anybody", a.server(nil), replies(okReply), func(e *sender) { e.Network.CACert, e.Network.Insecure = "", true }},
		{"a client's certificate", wantsClient, replies(okReply), func(e *sender) { e.Network.Cert = client }},
		{"HTTP/2", a.server(nil, "h2"), http2Reply, nil},
		{"HTTP/1.1 asked for", a.server(nil, "h2", "http/1.1"), replies(okReply), func(e *sender) { e.Network.HTTP1 = true }},
		{"another host's address", a.server(func(c *certificate) { c.IPAddresses = nil }), replies(okReply), func(e *sender) {
			u := parseURL(e.Request.URL)
			e.Network.Resolve = []string{"service.example:" + u.Port() + ":127.0.0.1"}
			e.Request.URL = "https://Service.example:" + u.Port() + "/"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serveTLS(t, tt.config, tt.script)
			e := newSender(t, "GET", s.url("https"), func(e *sender) { e.Network.CACert = a.file })
			if tt.change != nil {
				tt.change(e)
			}
			o := execute(t, e)
			s.saw(1)
			if o.Exit != 0 || o.Reply.Body != "hello" || o.Reply.Written != 1 || o.Reply.Phases.TLS <= 0 {
				t.Errorf("got %+v, %+v, want exit 0 and body hello", o, o.Reply)
			}
		})
	}
}

func TestExecuteOverAUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	s := serveOn(t, listener, nil, []script{replies(okReply)})
	o := execute(t, newSender(t, "GET", "http://anything.invalid/", func(e *sender) {
		e.Network.UnixSocket = path
		e.Network.Proxy = "http://nowhere.invalid"
	}))
	s.saw(1)
	if o.Exit != 0 || o.Reply.Body != "hello" {
		t.Errorf("got %+v, want exit 0 and body hello", o)
	}
}

func TestExecuteThroughAProxy(t *testing.T) {
	s := serve(t, replies(okReply))
	o := execute(t, newSender(t, "GET", "http://service.example/path",
		func(e *sender) { e.Network.Proxy = "me:pw@" + s.address() }))
	s.saw(1)
	if o.Exit != 0 || !strings.HasPrefix(s.requests[0], "GET http://service.example/path HTTP/1.1\r\n") ||
		!strings.Contains(s.requests[0], "Proxy-Authorization: Basic bWU6cHc=\r\n") {
		t.Errorf("got %+v, requests %q, want a request with the proxy's password", o, s.requests)
	}
}

func TestExecuteThroughATunnel(t *testing.T) {
	a := newAuthority(t)
	http2Reply := http2(func(c *wire, stream uint32) bool {
		c.frame(frameHeaders, flagEndHeaders, stream, status200)
		c.frame(frameData, flagEndStream, stream, "hello")
		return false
	})
	for _, scheme := range []string{"http", "https"} {
		for _, reply := range []struct {
			protocol string
			script   script
		}{{"http/1.1", replies(okReply)}, {"h2", http2Reply}} {
			s := serveTLS(t, a.server(nil, reply.protocol), reply.script)
			var config *tls.Config
			if scheme == "https" {
				config = a.server(nil, "h2", "http/1.1") // a tunnel is asked for with HTTP/1.1
			}
			proxy := serveTLS(t, config, tunnels(s))
			o := execute(t, newSender(t, "GET", "https://service.example/path", func(e *sender) {
				e.Network.Proxy, e.Network.CACert = scheme+"://"+proxy.address(), a.file
			}))
			proxy.saw(1)
			s.saw(1)
			asked := strings.HasPrefix(strings.Join(proxy.requests, ""), "CONNECT service.example:443 HTTP/1.1\r\n")
			if o.Exit != 0 || o.Reply.Body != "hello" || o.Reply.Written != 1 || !asked {
				t.Errorf("%s, %s: got %+v, requests %q, want a CONNECT and body hello", scheme, reply.protocol, o, proxy.requests)
			}
		}
	}
}

// tunnels makes a tunnel to a server. Where the server closes its connection, the proxy ends its own as it should be.
func tunnels(s *server) script {
	return func(c *wire) {
		c.request()
		c.send("HTTP/1.1 200 Connected\r\n\r\n")
		to, err := net.Dial("tcp", s.address())
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		go func() {
			_, _ = io.Copy(c.Conn, to)
			_ = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		_, _ = io.Copy(to, c.reader)
	}
}

// drops sends a reply and ends the connection without a close_notify of TLS.
func drops(reply string) script {
	return func(c *wire) {
		c.request()
		c.send("%s", reply)
		_ = c.raw.(*net.TCPConn).CloseWrite()
		c.stall()
	}
}

// Over TLS, a body that ends with the connection is whole only if the server says so with a close_notify. An HTTPS
// proxy may end its own TLS well although the server did not.
func TestEndOfTheConnectionOverTLS(t *testing.T) {
	const toItsEnd = "HTTP/1.0 200 OK\r\n\r\nhello"
	ways := map[string]func(*sender, *authority, *server) *server{
		"direct":      func(*sender, *authority, *server) *server { return nil },
		"with header": func(e *sender, _ *authority, _ *server) *server { e.Request.Include = true; return nil },
		"through a proxy": func(e *sender, _ *authority, s *server) *server {
			proxy := serve(t, tunnels(s))
			e.Network.Proxy = proxy.address()
			return proxy
		},
		"through an HTTPS proxy": func(e *sender, a *authority, s *server) *server {
			proxy := serveTLS(t, a.server(nil, "h2", "http/1.1"), tunnels(s))
			e.Network.Proxy = "https://" + proxy.address()
			return proxy
		},
		"of an HTTPS proxy": func(e *sender, _ *authority, s *server) *server {
			e.Network.Proxy, e.Request.URL = "https://"+s.address(), "http://service.example/"
			return nil
		},
	}
	ends := []struct {
		name  string
		reply script
		exit  int
	}{
		{"close_notify", closes(toItsEnd), 0},
		{"none", drops(toItsEnd), 18},
		{"none, HTTP/1.1", drops("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"), 18},
		{"none, of a known size", drops("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"), 0},
		{"none, in chunks", drops("HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"5\r\nhello\r\n0\r\n\r\n"), 0},
	}
	a := newAuthority(t)
	for way, change := range ways {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, end := range ends {
				config := a.server(nil)
				config.MaxVersion = version
				s := serveTLS(t, config, end.reply)
				e := newSender(t, "GET", s.url("https"), func(e *sender) { e.Network.CACert = a.file })
				proxy := change(e, a, s)
				o := execute(t, e)
				if proxy != nil {
					proxy.saw(1)
				}
				s.saw(1)
				cut := o.Error == task.ErrorTruncated && describe(o.Reply.Default) == "retry"
				if o.Exit != end.exit || cut != (end.exit != 0) || o.Reply.Body != "hello" {
					t.Errorf("%s, %s, end %s: got %+v, %+v, want exit %d", way, tls.VersionName(version), end.name, o, o.Reply,
						end.exit)
				}
			}
		}
	}
}

// talker is a connection that notes whether it was read before it was written to.
type talker struct {
	net.Conn
	written, early bool
}

func (c *talker) Read([]byte) (int, error) {
	c.early = c.early || !c.written
	return 0, errors.New("nothing to read")
}

func (c *talker) Write(p []byte) (int, error) {
	c.written = true
	return len(p), nil
}

func (c *talker) Close() error { return nil }

func TestConnReadsAfterItHasWritten(t *testing.T) {
	for name, then := range map[string]func(net.Conn){
		"written": func(c net.Conn) { _, _ = c.Write([]byte("GET")) },
		"closed":  func(c net.Conn) { _ = c.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			raw := &talker{}
			c := (&tracer{}).wrap(raw)
			go func() { _, _ = c.Read(nil) }()
			synctest.Wait()
			if raw.early {
				t.Errorf("%s: got a read before the write, want it after", name)
			}
			then(c)
			synctest.Wait() // the reader ends, or the bubble complains
		})
	}
}

// A server may refuse a body, reply and close without reading it. The reply is received in each order of these events.
func TestEarlyReplyAndClosed(t *testing.T) {
	for range 20 {
		s := serve(t, func(c *wire) {
			c.header(&bytes.Buffer{})
			c.send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nless")
		})
		o := execute(t, newSender(t, "POST", s.url("http"), func(e *sender) { e.setBody(data(strings.Repeat("x", 1<<20))) }))
		if o.Exit != 22 || o.Reply.Status != 413 {
			t.Fatalf("got %+v, %+v, want exit 22 and status 413", o, o.Reply)
		}
	}
}

// A server may reply with success before it has read the body. It gets all of it, or the request is no success: over
// TLS net/http cuts the request, and nothing shows in time what the reply is.
func TestReplyBeforeTheEndOfTheRequest(t *testing.T) {
	const size = 16 << 20
	for _, tt := range []struct {
		name    string
		overTLS bool
		status  string
		then    func(c *wire) // after the reply
		exit    int
		whole   bool
	}{
		{name: "it reads on", status: "201 Created", then: readSlowly, whole: true},
		{name: "it reads on after a status of 3xx", status: "300 Multiple Choices", then: readSlowly, whole: true},
		{name: "it reads on over TLS", overTLS: true, status: "200 OK", then: readSlowly, exit: 55},
		{name: "it closes", status: "200 OK", then: (*wire).reset, exit: 55},
		{name: "it says more than one thing", status: "103 Early Hints\r\n\r\nHTTP/1.1 200 OK", then: readSlowly, whole: true},
		{name: "it closes, and says so", status: "200 OK\r\nConnection: close", then: func(*wire) {}},
		{name: "it refuses", status: "413 Content Too Large", then: readSlowly, exit: 22},
	} {
		t.Run(tt.name, func(t *testing.T) {
			do := func(c *wire) {
				if c.header(new(bytes.Buffer)) != nil {
					c.send("HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok", tt.status)
					tt.then(c)
				}
			}
			a := newAuthority(t)
			s, scheme := serve(t, do), "http"
			if tt.overTLS {
				s, scheme = serveTLS(t, a.server(nil), do), "https"
			}
			e := newSender(t, "PUT", s.url(scheme), func(e *sender) { e.Network.CACert = a.file })
			e.Request.Body = aPart(strings.Repeat("x", size))
			o := execute(t, e)
			s.stop()
			if got := s.surplus == size; o.Exit != tt.exit || got != tt.whole {
				t.Errorf("got %+v, and the server got %d bytes, want exit %d, all of them %v", o, s.surplus, tt.exit, tt.whole)
			}
		})
	}
}

// Over HTTP/2 the end of the reply is the end of the request, too.
func TestReplyBeforeTheEndOfTheRequestOverHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	e := newSender(t, "PUT", s.URL, func(e *sender) { e.Network.Insecure = true })
	e.Request.Body = aPart(strings.Repeat("x", 16<<20))
	if o := execute(t, e); o.Exit != 55 || o.Reply.Status != 200 {
		t.Errorf("got %+v, %+v, want exit 55", o, o.Reply)
	}
}

// readSlowly reads when net/http would have cut the request.
func readSlowly(c *wire) {
	time.Sleep(200 * time.Millisecond)
	c.stall()
}

// Without a reply, it is an error of the connection.
func TestResetInTheMiddleOfABody(t *testing.T) {
	s := serve(t, func(c *wire) {
		c.header(&bytes.Buffer{})
		c.reset()
	})
	o := execute(t, newSender(t, "POST", s.url("http"), func(e *sender) { e.setBody(data(strings.Repeat("x", 16<<20))) }))
	waiting := strings.HasPrefix(o.Message, "wait for the reply: ")
	if o.Error != task.ErrorReset || describe(o.Reply.Default) != "ambiguous" || o.Reply.Written != 1 || !waiting {
		t.Errorf("got %+v, %+v, want a reset, ambiguous", o, o.Reply)
	}
}

// broken is a connection whose writes fail after a number of good ones, and that has nothing to read.
type broken struct {
	net.Conn
	good int
}

func (c *broken) Read([]byte) (int, error) { return 0, io.EOF }

func (c *broken) Write(p []byte) (int, error) {
	if c.good--; c.good < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// A write fails before the request has begun. After that it reports success, and reading returns its error.
func TestConnFailsOnce(t *testing.T) {
	tests := []struct {
		good                           int
		handshake, first, second, read error
	}{
		{0, syscall.EPIPE, syscall.EPIPE, syscall.EPIPE, io.EOF},
		{1, nil, syscall.EPIPE, syscall.EPIPE, io.EOF},
		{2, nil, nil, nil, syscall.EPIPE},
		{3, nil, nil, nil, io.EOF},
	}
	for _, tt := range tests {
		c := (&tracer{}).wrap(&broken{good: tt.good})
		write := func() error {
			_, err := c.Write([]byte("text"))
			return err
		}
		handshake := write()
		c.startRequest()
		first, second := write(), write()
		_, read := c.Read(nil)
		got, want := []error{handshake, first, second, read}, []error{tt.handshake, tt.first, tt.second, tt.read}
		if !slices.Equal(got, want) {
			t.Errorf("after %d good writes: got %v, want %v", tt.good, got, want)
		}
	}
}

// If a connection breaks before anything was written, the server has not received the request.
func TestBrokenBeforeTheRequest(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		connected := make(chan struct{})
		s := serve(t, func(c *wire) {
			<-connected
			c.reset()
			close(c.server.reached)
		})
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{ConnectDone: func(string, string, error) {
			close(connected)
			<-s.reached
		}})
		e := newSender(t, method, s.url("http"), nil)
		o := e.Execute(ctx, e.task(), runner.Call{Number: 1})
		s.saw(0)
		faulty{class: "reset", exit: 55, message: "send the request: "}.compare(t, o, "retry")
	}
}

// The bytes of the handshake do not count as a part of the request.
func TestBrokenAfterTheHandshake(t *testing.T) {
	a := newAuthority(t)
	for _, method := range []string{"GET", "POST"} {
		s := serveTLS(t, a.server(nil), func(c *wire) {
			testkit.Must(c.server, c.Conn.(*tls.Conn).Handshake())
			c.reset()
			close(c.server.reached)
		})
		ctx := httptrace.WithClientTrace(t.Context(),
			&httptrace.ClientTrace{TLSHandshakeDone: func(tls.ConnectionState, error) { <-s.reached }})
		e := newSender(t, method, s.url("https"), func(e *sender) { e.Network.CACert = a.file })
		o := e.Execute(ctx, e.task(), runner.Call{Number: 1})
		s.saw(0)
		faulty{class: "reset", exit: 55, message: "send the request: "}.compare(t, o, "retry")
	}
}
