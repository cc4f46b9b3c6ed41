package httpexec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/pool"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/httpexec/webhook"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// deliver returns a sender of a worker: a POST with a key, safe to repeat.
func deliver(t *testing.T, url string, change func(*sender)) *sender {
	t.Helper()
	e := newSender(t, "POST", url, nil)
	e.Executor.Delivery = &Delivery{Pool: pool.New(64)}
	e.key = "order-1"
	e.Request.Keyed = true
	e.Request.Body = aPart("hello")
	t.Cleanup(e.Delivery.Pool.Close)
	if change != nil {
		change(e)
	}
	return e
}

// each answers the requests of one connection one after another, and then closes it.
func each(replies ...string) script {
	return func(c *wire) {
		for _, reply := range replies {
			if c.request() == "" {
				return
			}
			c.send("%s", reply)
		}
	}
}

func delivered(t *testing.T, o task.Outcome, status, written int) {
	t.Helper()
	if o.Reply == nil || o.Reply.Status != status || o.Reply.Written != written {
		t.Errorf("got %+v, %+v, want status %d and %d written", o, o.Reply, status, written)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	s := serve(t, each(noContent, okReply, noContent))
	e := deliver(t, s.url("http"), nil)
	for _, status := range []int{204, 200, 204} {
		delivered(t, execute(t, e), status, 1)
	}
	s.saw(3)
}

// A request that is not safe to repeat never uses a connection that another one has left.
func TestUnsafeRequestsHaveFreshConnections(t *testing.T) {
	s := serve(t, func(c *wire) {
		each(noContent)(c)
		c.stall()
	}, each(noContent, noContent))
	e := deliver(t, s.url("http"), func(e *sender) { e.Request.Keyed = false })
	for range 2 {
		delivered(t, execute(t, e), 204, 1)
	}
	e.Request.Keyed = true // it may use the one that was left
	delivered(t, execute(t, e), 204, 1)
	e.Delivery.Pool.Close()
	s.saw(3)
}

// The server closes a kept connection between two requests: the second one has a fresh connection.
func TestKeptConnectionIsClosedByTheServer(t *testing.T) {
	for name, end := range map[string]func(c *wire){
		"closed": func(c *wire) { _ = c.Close() },
		"reset":  (*wire).reset,
		"chatty": func(c *wire) { c.send("HTTP/1.1 408 Request Timeout\r\n\r\n"); _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			s := serve(t, func(c *wire) {
				each(noContent)(c)
				<-c.server.reached
				end(c)
				close(ended)
			}, each(noContent))
			e := deliver(t, s.url("http"), nil)
			delivered(t, execute(t, e), 204, 1)
			close(s.reached)
			<-ended
			delivered(t, execute(t, e), 204, 1)
			s.saw(2)
		})
	}
}

// Where not a byte of a request could be written to a kept connection, it goes over a fresh one.
func TestKeptConnectionTakesNothing(t *testing.T) {
	s := serve(t, func(c *wire) {
		each(noContent)(c)
		<-c.server.reached
	}, each(noContent))
	e := deliver(t, s.url("http"), nil)
	delivered(t, execute(t, e), 204, 1)
	c := e.Delivery.Pool.Get(pool.Key{Scheme: "http", Address: s.address(), Direct: true})
	testkit.Must(t, c.Of.(*conn).Conn.(*net.TCPConn).CloseWrite())
	e.Delivery.Pool.Put(c, true)
	delivered(t, execute(t, e), 204, 1)
	close(s.reached)
	s.saw(2)
}

// A kept connection that ends after the request was written has lost it, as a fresh one would have.
func TestKeptConnectionBreaks(t *testing.T) {
	for name, end := range map[string]script{
		"closed": func(c *wire) { c.request() },
		"reset":  func(c *wire) { c.request(); c.reset() },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(c *wire) {
				each(noContent)(c)
				end(c)
			})
			e := deliver(t, s.url("http"), nil)
			delivered(t, execute(t, e), 204, 1)
			o := execute(t, e)
			delivered(t, o, 0, 1)
			if o.Error != task.ErrorReset || o.Reply.Default.Event != string(EventLost) || describe(o.Reply.Default) != "retry" {
				t.Errorf("got %+v, %+v, want a lost reply, retried", o, o.Reply)
			}
			s.saw(2)
		})
	}
}

// A server that stalls is left when the attempt's time is up, and the connection is not used again.
func TestKeptConnectionStalls(t *testing.T) {
	s := serve(t, func(c *wire) {
		each(noContent)(c)
		stalls("")(c)
	}, each(noContent))
	e := deliver(t, s.url("http"), nil)
	ctx := faulty{}.context(t, s, e)
	delivered(t, e.Execute(ctx, e.task(), runner.Call{Number: 1}), 204, 1)
	o := e.Execute(ctx, e.task(), runner.Call{Number: 2})
	if o.Error != task.ErrorTimeout || o.Reply.Written != 1 || describe(o.Reply.Default) != "retry" {
		t.Errorf("got %+v, %+v, want a timeout", o, o.Reply)
	}
	delivered(t, execute(t, e), 204, 1)
	s.saw(3)
}

// control judges the addresses of a host.
type control func(host string) func(network, address string, c syscall.RawConn) error

// refuse refuses an address, and notes all, with the hosts that they are of.
func refuse(asked *[]string, refused string) control {
	return func(of string) func(string, string, syscall.RawConn) error {
		return func(_, address string, _ syscall.RawConn) error {
			*asked = append(*asked, of+" "+address)
			if host, _, _ := net.SplitHostPort(address); host == refused {
				return fmt.Errorf("%s is a loopback address", host)
			}
			return nil
		}
	}
}

// guard makes the request one that came through the API.
func (e *sender) guard(by control) { e.Request.Guarded, e.Delivery.Control = true, by }

// resolves returns a resolver that knows one address for each name.
func resolves(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			for length := make([]byte, 2); ; {
				if _, err := io.ReadFull(server, length); err != nil {
					return
				}
				question := make([]byte, int(length[0])<<8|int(length[1]))
				if _, err := io.ReadFull(server, question); err != nil {
					return
				}
				end := 12 + bytes.IndexByte(question[12:], 0) + 5
				reply := append(bytes.Clone(question[:end]), "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04"...)
				reply = append(reply, net.ParseIP(address).To4()...)
				reply[2], reply[3] = 0x81, 0x80
				copy(reply[6:12], "\x00\x01\x00\x00\x00\x00")
				if question[end-3] != 1 { // not for an IPv4 address
					reply = reply[:end]
					reply[7] = 0
				}
				_, _ = server.Write(append([]byte{0, byte(len(reply))}, reply...))
			}
		}()
		return client, nil
	}}
}

func checkRefused(t *testing.T, o task.Outcome, written int, message string) {
	t.Helper()
	if o.Error != task.ErrorRefused || o.Exit != exitConnect || o.Message != message || o.Reply.Written != written ||
		describe(o.Reply.Default) != "stop" || o.Reply.Default.Event != string(EventRefused) {
		t.Errorf("got %+v, %+v, want %q, refused for ever, and %d written", o, o.Reply, message, written)
	}
}

// What came through the API is judged by the address that its name has, and no connection is made.
func TestGuardedTargets(t *testing.T) {
	const refused = "the target is refused: 127.0.0.1 is a loopback address"
	for _, url := range []string{"http://127.0.0.1:%s/", "http://inner.example:%s/", "https://inner.example:%s/",
		"http://[::ffff:127.0.0.1]:%s/"} {
		s := serve(t)
		_, port, _ := net.SplitHostPort(s.address())
		var asked []string
		e := deliver(t, fmt.Sprintf(url, port), func(e *sender) {
			e.guard(refuse(&asked, "127.0.0.1"))
			e.resolver = resolves("127.0.0.1")
			e.Lookup = func(string) (string, bool) { return "http://" + s.address(), true } // a proxy
		})
		checkRefused(t, execute(t, e), 0, refused)
		s.saw(0)
		if want := parseURL(e.Request.URL).Hostname() + " 127.0.0.1:" + port; len(asked) != 1 || asked[0] != want {
			t.Errorf("got asked for %q, want %q once", asked, want)
		}
	}
}

// A request of this machine's user leaves a connection to an address that one of the API must not have.
func TestGuardedRequestsTakeNoOther(t *testing.T) {
	s := serve(t, each(noContent, noContent))
	var asked []string
	e := deliver(t, s.url("http"), nil)
	delivered(t, execute(t, e), 204, 1)
	e.guard(refuse(&asked, "127.0.0.1"))
	checkRefused(t, execute(t, e), 0, "the target is refused: 127.0.0.1 is a loopback address")
	e.Request.Guarded = false
	delivered(t, execute(t, e), 204, 1)
	s.saw(2)
}

func TestRedirectToARefusedTarget(t *testing.T) {
	inner := serve(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := serve(t, replies("HTTP/1.1 %d Go\r\nLocation: http://inner.example:%d/\r\nContent-Length: 0\r\n\r\n", status,
			inner.listener.Addr().(*net.TCPAddr).Port))
		var asked []string
		e := deliver(t, s.url("http"), func(e *sender) {
			e.guard(refuse(&asked, "127.0.0.2"))
			e.resolver = resolves("127.0.0.2")
			e.Network.MaxRedirects = 5
			e.Request.Idempotent = true
		})
		o := execute(t, e)
		e.Delivery.Pool.Close()
		checkRefused(t, o, 1, "the target is refused: 127.0.0.2 is a loopback address")
		s.saw(1)
		if len(asked) != 2 || !strings.HasPrefix(asked[1], "inner.example 127.0.0.2:") {
			t.Errorf("%d: got asked for %q, want both addresses", status, asked)
		}
	}
	inner.saw(0)
}

// Only a worker sends what came through the API, and never what names a file, a socket or a proxy.
func TestGuardedRequestsNameNothingHere(t *testing.T) {
	path, no := t.TempDir()+"/x", ""
	testkit.Write(t, path, "X: secret")
	for name, change := range map[string]func(*sender){
		"no guard":     func(e *sender) { e.Delivery.Control = nil },
		"no worker":    func(e *sender) { e.Executor.Delivery = nil },
		"socket":       func(e *sender) { e.Network.UnixSocket = path },
		"proxy":        func(e *sender) { e.Network.Proxy = "http://127.0.0.1:1" },
		"no proxy":     func(e *sender) { e.Network.NoProxy = &no },
		"resolve":      func(e *sender) { e.Network.Resolve = []string{"a:1:127.0.0.1"} },
		"certificate":  func(e *sender) { e.Network.CACert = path },
		"netrc":        func(e *sender) { e.Request.Netrc = path },
		"cookies":      func(e *sender) { e.Request.CookieJar = path },
		"output":       func(e *sender) { e.Request.Output = path },
		"headers":      func(e *sender) { e.Request.Header = []string{"@" + path} },
		"file":         func(e *sender) { e.Request.Body = []request.Part{{File: path}} },
		"stdin":        func(e *sender) { e.setBody(data("x")) },
		"variable":     func(e *sender) { e.Request.Header = []string{"X: {env:HOME}"} },
		"blob outside": func(e *sender) { e.Request.Body = []request.Part{{Blob: "../../etc/passwd"}} },
	} {
		s := serve(t)
		var asked []string
		e := deliver(t, s.url("http"), func(e *sender) { e.guard(refuse(&asked, "")) })
		e.Delivery.Blob = func(string) (io.ReadCloser, int64, error) { return nil, 0, errors.New("asked for") }
		e.Lookup = func(string) (string, bool) { return "secret", true }
		change(e)
		o := execute(t, e)
		if o.Error != task.ErrorLocal || describe(o.Reply.Default) != "stop" || strings.Contains(o.Message, "asked for") {
			t.Errorf("%s: got %+v, want an error of this machine", name, o)
		}
		s.saw(0)
	}
}

func TestDeliveredHeaders(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	s := serve(t, each(noContent, noContent, noContent))
	secrets, err := webhook.ParseSecrets(strings.NewReader("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	testkit.Must(t, err)
	e := deliver(t, s.url("http"), func(e *sender) {
		e.Request.Sign = true
		e.Request.Header = []string{"traceparent: " + parent, "retry-attempt: 7", "webhook-signature: v1,x"}
		e.Delivery.Secrets = secrets
	})
	k := e.task()
	k.ID = "01a1fb79-5735-7565-b3a1-977a5b9a39db"
	delivered(t, e.Execute(t.Context(), k, runner.Call{Number: 12}), 204, 1)
	e.Delivery.TraceParent = func(caller, taskID string, attempt int) string {
		if caller != parent || taskID != k.ID {
			t.Errorf("got %s, %s, want the caller and the task", caller, taskID)
		}
		return fmt.Sprintf("00-4bf92f3577b34da6a3ce929d0e0e4736-%016d-01", attempt)
	}
	delivered(t, e.Execute(t.Context(), k, runner.Call{Number: 13}), 204, 1)
	e.Delivery.TraceParent = func(string, string, int) string { return "" }
	delivered(t, e.Execute(t.Context(), k, runner.Call{Number: 14}), 204, 1)
	s.saw(3)
	for _, want := range []string{"Idempotency-Key: order-1", "Retry-Attempt: 12", "Retry-Task-Id: " + k.ID,
		"Webhook-Id: " + k.ID, "Webhook-Timestamp: [0-9]{10}", "Webhook-Signature: v1,[A-Za-z0-9+/]{43}=",
		"traceparent: " + parent} {
		if found := regexp.MustCompile("(?m)^"+want+"\r$").FindAllString(s.requests[0], -1); len(found) != 1 {
			t.Errorf("got %q in %q, want %q once", found, s.requests[0], want)
		}
	}
	if !strings.Contains(s.requests[1], "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000013-01\r\n") ||
		strings.Contains(strings.ToLower(s.requests[2]), "traceparent") {
		t.Errorf("got %q, want the span of an attempt, and none where there is none", s.requests)
	}
	stamp := regexp.MustCompile("Webhook-Timestamp: ([0-9]+)").FindStringSubmatch(s.requests[0])[1]
	seconds, _ := strconv.ParseInt(stamp, 10, 64)
	signature, _ := webhook.Sign(secrets, k.ID, time.Unix(seconds, 0), strings.NewReader("hello"))
	if !strings.Contains(s.requests[0], "Webhook-Signature: "+signature+"\r\n") {
		t.Errorf("got %q, want the signature %q", s.requests[0], signature)
	}
}

// A request is sent with a signature or not at all.
func TestNoSecretToSignWith(t *testing.T) {
	s := serve(t)
	e := deliver(t, s.url("http"), func(e *sender) { e.Request.Sign = true })
	o := execute(t, e)
	if o.Error != task.ErrorLocal || describe(o.Reply.Default) != "stop" ||
		!strings.Contains(o.Message, "--signing-secret-file") {
		t.Errorf("got %+v, want it refused, and the flag that it takes", o)
	}
	s.saw(0)
}

// What is sent to another server, or to another path, has not arrived where a client of the API wanted it.
func TestUnmetRequests(t *testing.T) {
	for _, status := range []int{101, 300, 301, 302, 303, 307, 308, 399} {
		for idempotent, want := range map[bool]string{true: "stop", false: "ambiguous"} {
			s := serve(t, replies("HTTP/1.1 %d Go\r\nLocation: https://there.example/\r\nContent-Length: 0\r\n\r\n", status))
			e := deliver(t, s.url("http"), func(e *sender) {
				e.guard(refuse(new([]string), ""))
				e.Request.Keyed = idempotent
			})
			o := execute(t, e)
			if describe(o.Reply.Default) != want || o.Exit != exitStatus || !strings.Contains(o.Message, "not followed") {
				t.Errorf("%d: got %+v, %+v, want a failure: %s", status, o, o.Reply.Default, want)
			}
		}
	}
	s := serve(t, replies("HTTP/1.1 304 Same\r\n\r\n"))
	e := deliver(t, s.url("http"), func(e *sender) { e.guard(refuse(new([]string), "")) })
	delivered(t, execute(t, e), 304, 1)
}

// content is a blob that notes whether it was closed.
type content struct {
	io.Reader
	open *atomic.Int64
}

func (c content) Close() error {
	c.open.Add(-1)
	return nil
}

// A blob is read anew for the signature, for each redirect and for each attempt, and closed each time.
func TestBlobs(t *testing.T) {
	text := strings.Repeat("blob ", 100_000)
	sum := sha256.Sum256([]byte(text))
	hash, open := hex.EncodeToString(sum[:]), new(atomic.Int64)
	s := serve(t, each("HTTP/1.1 307 Go\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n", noContent, noContent))
	e := deliver(t, s.url("http"), func(e *sender) {
		e.Network.MaxRedirects = 1
		e.Request.Body = []request.Part{{Blob: hash, Size: int64(len(text))}}
		e.Request.Sign = true
		e.Delivery.Secrets, _ = webhook.ParseSecrets(strings.NewReader("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
		e.Delivery.Blob = func(got string) (io.ReadCloser, int64, error) {
			if got != hash {
				t.Errorf("got blob %q, want %q", got, hash)
			}
			open.Add(1)
			return content{strings.NewReader(text), open}, int64(len(text)), nil
		}
	})
	delivered(t, execute(t, e), 204, 2)
	delivered(t, execute(t, e), 204, 1)
	e.Request.URL = "http://127.0.0.1:1/" // nobody listens
	if o := execute(t, e); o.Error != task.ErrorConnect {
		t.Errorf("got %+v, want no connection", o)
	}
	e.Delivery.Blob = func(string) (io.ReadCloser, int64, error) { return nil, 0, os.ErrNotExist }
	if o := execute(t, e); o.Error != task.ErrorLocal || !strings.Contains(o.Message, hash) {
		t.Errorf("got %+v, want an error with the blob's name", o)
	}
	e.Delivery.Blob = func(string) (io.ReadCloser, int64, error) {
		open.Add(1)
		return content{strings.NewReader(text[:1000]), open}, 1000, nil
	}
	if o := execute(t, e); o.Error != task.ErrorLocal || !strings.Contains(o.Message, "has 1000 bytes on the disk") {
		t.Errorf("got %+v, want an error that a part is missing", o)
	}
	s.saw(3)
	for _, r := range s.requests {
		if !strings.HasSuffix(r, "\r\n\r\n"+text) {
			t.Errorf("got %d bytes, want the blob at the end", len(r))
		}
	}
	testkit.Eventually(t, "all blobs are closed", func() bool { return open.Load() == 0 })
}

// Of a huge reply 1 MiB is read, and the status decides.
func TestHugeReplies(t *testing.T) {
	for _, tt := range []struct{ name, header string }{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"},
		{"until closed", "HTTP/1.1 200 OK\r\n\r\n"},
		{"error", "HTTP/1.1 500 Oh\r\nContent-Length: 1073741824\r\n\r\n"},
	} {
		var sent atomic.Int64
		s := serve(t, func(c *wire) {
			c.request()
			c.send("%s", tt.header)
			for piece := make([]byte, 64<<10); sent.Load() < 1<<30; {
				n, err := c.Write(piece)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		})
		e := deliver(t, s.url("http"), nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o := execute(t, e)
		runtime.ReadMemStats(&after)
		s.saw(1)
		if o.Error != "" || o.Reply.Status == 0 || len(o.Reply.Body) != replyLimit || e.Delivery.Pool.Idle() != 0 {
			t.Errorf("%s: got %+v, %d bytes, want 1 MiB and a status", tt.name, o.Error, len(o.Reply.Body))
		}
		if sent.Load() > 64<<20 || after.TotalAlloc-before.TotalAlloc > 16<<20 {
			t.Errorf("%s: got %d bytes sent, %d allocated, want a few MiB", tt.name, sent.Load(),
				after.TotalAlloc-before.TotalAlloc)
		}
	}
}

// secure starts a server of HTTP/2 that takes so many requests at a time on a connection, and counts connections.
func secure(t *testing.T, a *authority, streams int, handle http.HandlerFunc) (url string, conns *atomic.Int64) {
	t.Helper()
	conns = new(atomic.Int64)
	s := httptest.NewUnstartedServer(handle)
	s.TLS = a.server(nil, "h2", "http/1.1")
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, conns
}

func together(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// Requests share a connection of HTTP/2 as far as the server allows it.
func TestHTTP2IsShared(t *testing.T) {
	a := newAuthority(t)
	for _, tt := range []struct{ streams, least, most int }{{100, 1, 1}, {4, 8, 32}} {
		var here atomic.Int64
		var full chan struct{}
		url, conns := secure(t, a, tt.streams, func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("got %s, want HTTP/2", r.Proto)
			}
			if full != nil && here.Add(1) == 32 {
				close(full)
			}
			if full != nil {
				<-full
			}
			w.WriteHeader(http.StatusNoContent)
		})
		e := deliver(t, url, func(e *sender) { e.Network.CACert = a.file })
		delivered(t, execute(t, e), 204, 1)
		full = make(chan struct{})
		together(32, func(int) { delivered(t, execute(t, e), 204, 1) })
		if got := int(conns.Load()); got < tt.least || got > tt.most {
			t.Errorf("%d streams: got %d connections, want %d to %d", tt.streams, got, tt.least, tt.most)
		}
	}
}

// Over HTTP/2 the stream of a huge reply ends, and the connection goes on.
func TestHugeReplyOverHTTP2(t *testing.T) {
	a := newAuthority(t)
	var sent atomic.Int64
	url, conns := secure(t, a, 10, func(w http.ResponseWriter, _ *http.Request) {
		for piece := make([]byte, 64<<10); sent.Load() < 1<<30; {
			n, err := w.Write(piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	e := deliver(t, url, func(e *sender) { e.Network.CACert = a.file })
	for range 3 {
		o := execute(t, e)
		if delivered(t, o, 200, 1); len(o.Reply.Body) != replyLimit {
			t.Errorf("got %d bytes, want 1 MiB", len(o.Reply.Body))
		}
	}
	if sent.Load() > 16<<20 || conns.Load() != 1 {
		t.Errorf("got %d bytes sent over %d connections, want a few MiB over one", sent.Load(), conns.Load())
	}
}

// A connection of HTTP/2 on which a request got no answer in time takes no other one. A reset of one stream says
// nothing about the others.
func TestHTTP2Fails(t *testing.T) {
	a := newAuthority(t)
	stalling := func(c *wire, stream uint32) bool {
		if stream == 1 {
			c.frame(frameHeaders, flagEndHeaders|flagEndStream, stream, status200)
			return false
		}
		c.server.timeUp()
		return false
	}
	cutting := func(c *wire, stream uint32) bool {
		if stream == 1 {
			return stalling(c, stream)
		}
		c.frame(frameHeaders, flagEndHeaders, stream, status200)
		c.frame(frameData, 0, stream, "hel")
		<-c.server.reached
		return stalling(c, stream)
	}
	resetting := func(c *wire, stream uint32) bool {
		if stream == 3 {
			c.resetStream(stream, codeRefusedStream)
			return false
		}
		c.frame(frameHeaders, flagEndHeaders|flagEndStream, stream, status200)
		return false
	}
	for _, tt := range []struct {
		name    string
		scripts []script
		fault   faulty
		events  []Event
	}{
		{"stalls", []script{http2(stalling), http2(resetting)}, faulty{}, []Event{EventLost}},
		{"stalls in the body", []script{http2(cutting), http2(resetting)}, faulty{until: stageHeader},
			[]Event{EventCut, EventLost}}, // RoundTrip may prefer the end of the context
		{"refuses", []script{http2(resetting)}, faulty{}, []Event{EventUnprocessed}},
	} {
		s := serveTLS(t, a.server(nil, "h2"), tt.scripts...)
		e := deliver(t, s.url("https"), func(e *sender) { e.Network.CACert = a.file })
		delivered(t, execute(t, e), 200, 1)
		o := e.Execute(tt.fault.context(t, s, e), e.task(), runner.Call{Number: 2})
		if o.Error == "" || o.Reply.Written != 1 || !slices.Contains(tt.events, Event(o.Reply.Default.Event)) {
			t.Errorf("%s: got %+v, %+v, want %q", tt.name, o, o.Reply, tt.events)
		}
		delivered(t, execute(t, e), 200, 1)
		e.Delivery.Pool.Close()
		s.saw(3)
	}
}

// What an attempt says of the requests that it wrote is right whatever the server does with connections: none is seen
// that was not counted, and each one that got a reply was counted once.
func TestWrittenIsExact(t *testing.T) {
	const workers, each = 16, 100
	var mutex sync.Mutex
	seen := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		id := r.Header.Get("Retry-Task-Id") + "/" + r.Header.Get("Retry-Attempt")
		seen[id]++
		mutex.Unlock()
		switch _, _ = io.Copy(io.Discard, r.Body); len(id) % 4 {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			w.Header().Set("Connection", "close")
		case 2:
			hangUp(w)
			return
		}
		_, _ = io.WriteString(w, "done")
	}))
	defer s.Close()
	e := deliver(t, s.URL, nil)
	together(workers, func(worker int) {
		for i := range each {
			k := e.task()
			k.ID = strings.Repeat("x", (worker+i)%4) + strconv.Itoa(worker)
			o := e.Execute(t.Context(), k, runner.Call{Number: i})
			if _, err := e.Flush(k, nil); err != nil || e.HoldsOutput(k) {
				t.Errorf("got %v, want nothing to flush", err)
			}
			e.Close(k)
			mutex.Lock()
			got := seen[k.ID+"/"+strconv.Itoa(i)]
			mutex.Unlock()
			if got > o.Reply.Written || o.Reply.Written > 1 || o.Reply.Status == 200 && got != 1 {
				t.Errorf("got %d seen of %d written, %+v, want no more", got, o.Reply.Written, o)
			}
		}
	})
}

// hangUp closes the connection after the reply, without having said so.
func hangUp(w http.ResponseWriter) {
	c, out, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
		_ = out.Flush()
		_ = c.Close()
	}
}

// Hosts that are dead, or that say nothing, leave nothing behind.
func TestDeadHosts(t *testing.T) {
	testkit.Slow(t, "it makes 10,000 attempts")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer func() { _ = silent.Close() }()
	e := deliver(t, "", func(e *sender) { e.Network.ConnectTimeout = 5 * time.Millisecond })
	goroutines, files := runtime.NumGoroutine(), descriptors()
	together(100, func(worker int) {
		for i := range 100 {
			r := *e.Request
			r.URL = fmt.Sprintf("http://127.%d.%d.1:1/", 1+worker, i)
			if i == 0 {
				r.URL = "https://" + silent.Addr().String() + "/"
			}
			o := e.Execute(t.Context(), &task.Task{Kind: request.Kind, Target: &r}, runner.Call{Number: 1})
			if o.Error == "" || o.Reply.Written != 0 || describe(o.Reply.Default) != "retry" {
				t.Errorf("%s: got %+v, want an error before anything was sent", r.URL, o)
			}
		}
	})
	testkit.Eventually(t, "no goroutine and no descriptor is left", func() bool {
		return runtime.NumGoroutine() <= goroutines+2 && descriptors() <= files+2 && e.Delivery.Pool.Idle() == 0
	})
}

// descriptors returns how many files are open; 0 where that is not known.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}

// bench answers as fast as it can.
func benchServer(b *testing.B) (url string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				buffer, got := make([]byte, 4096), 0
				for {
					n, err := c.Read(buffer[got:])
					if got += n; err != nil {
						return
					}
					if head := bytes.Index(buffer[:got], []byte("\r\n\r\n")); head >= 0 && got >= head+4+256 {
						got = 0
						_, _ = io.WriteString(c, noContent)
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String() + "/hook"
}

// BenchmarkDeliver is a POST of 256 bytes over kept connections, with the server in the same process.
func BenchmarkDeliver(b *testing.B) {
	url := benchServer(b)
	e := &Executor{UserAgent: "retry/1.0", Delivery: &Delivery{Pool: pool.New(64)}}
	defer e.Delivery.Pool.Close()
	r := &request.Request{Method: "POST", URL: url, Keyed: true, Guarded: false,
		Header: []string{"Content-Type: application/json"}, Body: aPart(strings.Repeat("x", 256))}
	k := &task.Task{ID: "01a1fb79-5735-7565-b3a1-977a5b9a39db", Kind: request.Kind, Target: r, IdempotencyKey: "order-1"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if o := e.Execute(context.Background(), k, runner.Call{Number: 1}); o.Exit != 0 {
				b.Error(o.Message)
			}
		}
	})
}

// BenchmarkExecute is the same as the wrapper does it, with a connection of its own.
func BenchmarkExecute(b *testing.B) {
	url := benchServer(b)
	r := &request.Request{Method: "POST", URL: url, Keyed: true, Body: aPart(strings.Repeat("x", 256))}
	k := &task.Task{Kind: request.Kind, Target: r, IdempotencyKey: "order-1"}
	b.ReportAllocs()
	for b.Loop() {
		e := &Executor{UserAgent: "retry/1.0", Output: Output{Stdout: io.Discard}}
		if o := e.Execute(context.Background(), k, runner.Call{Number: 1}); o.Exit != 0 {
			b.Fatal(o.Message)
		}
		e.Close(k)
	}
}

// A worker stops a request by its context, and hears which signal did: nothing listens to signals meanwhile.
func TestAWorkerStopsARequestByItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // which accepts, and never answers
	testkit.Must(t, err)
	defer func() { _ = listener.Close() }()
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		if c, err := listener.Accept(); err == nil {
			_, _ = c.Read(make([]byte, 1)) // the request is under way
			stop(&runner.StopError{Signal: syscall.SIGTERM})
		}
	}()
	e := &Executor{Delivery: &Delivery{Pool: pool.New(1)}}
	defer e.Delivery.Pool.Close()
	target := &request.Request{Method: "POST", URL: "http://" + listener.Addr().String()}
	k := &task.Task{Kind: request.Kind, Target: target}
	signals := make(chan os.Signal, 1)
	if o := e.Execute(ctx, k, runner.Call{Number: 1, Signals: signals}); o.Stop != syscall.SIGTERM {
		t.Errorf("got %+v, want that SIGTERM has stopped it", o)
	}
}
