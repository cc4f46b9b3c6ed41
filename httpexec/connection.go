package httpexec

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// conn does not read before something was written. A server that sends first does not speak HTTP: without the delay,
// timing would decide which error an attempt gets, and net/http would log it.
type conn struct {
	net.Conn
	written      chan struct{} // closed by the first write or by Close
	once         sync.Once
	wrote        atomic.Int64
	read         atomic.Int64
	requestStart atomic.Int64           // the value of wrote when the request began
	writeErr     atomic.Pointer[error]  // the error of a Write that reported success
	readErr      atomic.Pointer[error]  // the last error of Read
	sending      atomic.Pointer[tracer] // of the request whose body is being written; nil for none
	closed       chan struct{}
	closing      sync.Once
}

func (w *tracer) wrap(c net.Conn) *conn {
	w.conn = &conn{Conn: c, written: make(chan struct{}), closed: make(chan struct{})}
	w.conn.requestStart.Store(math.MaxInt64)
	return w.conn
}

// startRequest notes that everything written from now on belongs to the request, and returns what was carried before.
func (c *conn) startRequest() (wrote, read int64) {
	wrote = c.wrote.Load()
	c.requestStart.Store(wrote)
	return wrote, c.read.Load()
}

// requestStarted reports whether a byte of the request was written.
func (c *conn) requestStarted() bool { return c.wrote.Load() > c.requestStart.Load() }

func (c *conn) Read(p []byte) (int, error) {
	<-c.written
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	if broke := c.writeErr.Load(); broke != nil && errors.Is(err, io.EOF) {
		err = *broke // the system reports a reset only once, and Write has received it
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.readErr.Store(&err)
	}
	if w := c.sending.Load(); w != nil && w.holds(p[:n]) {
		c.awaitRequest(w)
	}
	return n, err
}

// holds adds to what came of the reply, and reports whether it is one to hold back until the request was written: a
// server may say that all is well before it has read the body, and net/http cuts the request where the reply ends
// first. Over TLS nothing shows here what the reply is. An error may end the request, and so may a redirect that
// repeats it.
func (w *tracer) holds(part []byte) bool {
	if len(w.head) < maxHeader {
		w.head = append(w.head, part...)
	}
	head := w.head
	for {
		if len(head) < len("HTTP/1.1 200") {
			return false
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.")) {
			w.conn.sending.Store(nil)
			return false
		}
		status := string(head[len("HTTP/1.1 "):][:3])
		if status[0] != '1' {
			return status[0] == '2' || status[0] == '3' && status != "307" && status != "308"
		}
		_, rest, found := bytes.Cut(head, []byte("\r\n\r\n"))
		if !found {
			return false
		}
		head = rest
	}
}

// stalled is how long a server that has replied may take nothing more of the request. Of a slow connection the system
// reports the progress in pieces of a megabyte.
const stalled = time.Minute

// awaitRequest waits until the request was written, or is not written any more.
func (c *conn) awaitRequest(w *tracer) {
	c.sending.Store(nil)
	for wrote := int64(-1); wrote != c.wrote.Load(); {
		wrote = c.wrote.Load()
		select {
		case <-w.ended:
			return
		case <-c.closed:
			return
		case <-time.After(stalled):
		}
	}
}

// Write reports success even if it fails, once a part of the request is written: a server that refuses a body may reply
// and close without reading all of it, and net/http drops the reply when a write fails. Without a reply, Read fails.
func (c *conn) Write(p []byte) (int, error) {
	c.wrote.Add(int64(len(p))) // before the write: the reply may arrive before it returns
	n, err := c.Conn.Write(p)
	c.wrote.Add(int64(n - len(p)))
	c.once.Do(func() { close(c.written) })
	if err != nil && c.requestStarted() && !errors.Is(err, net.ErrClosed) {
		c.writeErr.Store(&err)
		return len(p), nil
	}
	return n, err
}

// ended reports whether reading has come to the end of the connection.
func (c *conn) ended() bool {
	err := c.readErr.Load()
	return err != nil && errors.Is(*err, io.EOF)
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.written) })
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// maxHeader is how large a reply's header may be, those of interim replies included: curl's limit. net/http keeps a
// header in memory several times.
const maxHeader = 300 << 10

// maxUnread is how much of a reply HTTP/2 keeps in memory before a worker reads it. net/http would keep 4 MiB.
const maxUnread = 256 << 10

// transport makes a transport, which is used for one connection. It must not hold the attempt, since the connection may
// be kept for longer.
func (a *attempt) transport(u, proxy *url.URL, w *tracer) (*http.Transport, error) {
	d := a.dialer(w, u.Hostname())
	t := &http.Transport{
		DialContext:        func(ctx context.Context, _, address string) (net.Conn, error) { return d.dial(ctx, address) },
		DisableCompression: !a.network.Compressed,
		Protocols:          &http.Protocols{},

		MaxResponseHeaderBytes: maxHeader,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, reply *http.Response) error {
			if reply.StatusCode != http.StatusOK {
				text := http.StatusText(reply.StatusCode)
				return fmt.Errorf("the proxy refuses with status %d %s", reply.StatusCode, text)
			}
			return nil
		},
	}
	if a.Delivery != nil {
		t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: maxUnread}
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(!a.network.HTTP1)
	if w.secure {
		config, err := tlsConfig(&a.network)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = config
	}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
	}
	if proxy != nil && proxy.Scheme == "https" && u.Scheme == "https" {
		t.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
			c, err := dialTLS(ctx, t, address, nil)
			if err != nil {
				return nil, err
			}
			return w.wrap(c), nil // what the server's TLS reads from: the proxy may end its own with a close_notify
		}
	}
	return t, nil
}

// proxy returns the proxy for a URL; nil for none.
func (a *attempt) proxy(u *url.URL) (*url.URL, error) {
	if a.network.UnixSocket != "" {
		return nil, nil
	}
	return a.proxies.For(u)
}

// through notes that a request goes through a proxy.
func (w *tracer) through(proxy *url.URL, scheme string) {
	w.secure = scheme == "https" || proxy != nil && proxy.Scheme == "https"
	if proxy != nil {
		w.socks = strings.HasPrefix(proxy.Scheme, "socks5")
		w.tunnel = w.socks || scheme == "https"
		w.viaProxy = true
	}
}

// dialer makes the connection of one transport.
type dialer struct {
	net.Dialer
	tracer   *tracer
	socket   string
	resolved map[string][]string
}

func (a *attempt) dialer(w *tracer, host string) *dialer {
	d := &dialer{Dialer: net.Dialer{Resolver: a.resolver}, tracer: w, socket: a.network.UnixSocket, resolved: a.resolved}
	if a.request.Guarded {
		d.Control = a.Delivery.judge(host)
	}
	return d
}

// dial connects to the socket, to the addresses given for the host, or to those that the system resolves.
func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	network, addresses, w := "tcp", []string{address}, d.tracer
	if d.socket != "" {
		network, addresses = "unix", []string{d.socket}
	} else if given := d.resolved[strings.ToLower(address)]; given != nil {
		addresses = given
	}
	w.enter(stageConnect) // a host name is looked up first; its hooks enter the stage for that
	var failures []error
	for _, to := range addresses {
		conn, err := d.DialContext(ctx, network, to)
		if err == nil {
			w.endPhase(stageConnect, &w.phases.Connect, w.connected())
			return w.wrap(conn), nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// recordHeader has the replies of a transport recorded where their text is known: not over HTTP/2, and of https not
// through a proxy, as only net/http sees the decrypted bytes there.
func (w *tracer) recordHeader(t *http.Transport, u *url.URL) {
	if u.Scheme == "http" {
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			w.recorded = &recordedConn{Conn: c}
			return w.recorded, nil
		}
		return
	}
	if t.Proxy != nil {
		return
	}
	t.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		var protocols []string
		if t.Protocols.HTTP2() {
			protocols = []string{"h2", "http/1.1"}
		}
		c, err := dialTLS(ctx, t, address, protocols)
		if err != nil {
			return nil, err
		}
		if c.ConnectionState().NegotiatedProtocol == "h2" {
			return c, nil // net/http speaks HTTP/2 over a *tls.Conn only
		}
		w.recorded = &recordedConn{Conn: c}
		return w.recorded, nil
	}
}

// dialTLS connects to a server or to a proxy, and shakes hands with it.
func dialTLS(ctx context.Context, t *http.Transport, address string, protocols []string) (*tls.Conn, error) {
	plain, err := t.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	config := t.TLSClientConfig.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address)
	config.NextProtos = protocols
	c, trace := tls.Client(plain, config), httptrace.ContextClientTrace(ctx)
	trace.TLSHandshakeStart()
	err = c.HandshakeContext(ctx)
	trace.TLSHandshakeDone(c.ConnectionState(), err)
	if err != nil {
		_ = plain.Close()
		return nil, err
	}
	return c, nil
}
