package httpexec

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// conn is a connection that does not read before something was written. A server that speaks first does not speak HTTP;
// without this it would depend on timing which error an attempt gets, and net/http would log it.
type conn struct {
	net.Conn
	header       *recorder     // nil: nothing is recorded
	written      chan struct{} // closed when something was written, or when it is over
	once         sync.Once
	wrote        atomic.Int64
	read         atomic.Int64
	requestStart atomic.Int64          // how much was written before the request
	writeErr     atomic.Pointer[error] // how writing the rest of a request failed
	readErr      atomic.Pointer[error] // how reading ended
}

func (w *tracer) wrap(c net.Conn) *conn {
	w.conn = &conn{Conn: c, header: w.plainHeader, written: make(chan struct{})}
	w.conn.requestStart.Store(math.MaxInt64)
	return w.conn
}

// startRequest notes that everything written from now on belongs to the request.
func (c *conn) startRequest() { c.requestStart.Store(c.wrote.Load()) }

// requestStarted reports whether a byte of the request was written.
func (c *conn) requestStarted() bool { return c.wrote.Load() > c.requestStart.Load() }

func (c *conn) Read(p []byte) (int, error) {
	<-c.written
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	c.header.record(p[:n])
	if broke := c.writeErr.Load(); broke != nil && errors.Is(err, io.EOF) {
		err = *broke // the system tells only once that a connection was reset
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.readErr.Store(&err)
	}
	return n, err
}

// Write does not fail once a part of the request is written: a server that refuses a body may reply and close before it
// has read that, and net/http would not look at the reply any more. Where there is none, reading fails.
func (c *conn) Write(p []byte) (int, error) {
	c.wrote.Add(int64(len(p))) // before: the reply may be here before Write returns
	n, err := c.Conn.Write(p)
	c.wrote.Add(int64(n - len(p)))
	c.once.Do(func() { close(c.written) })
	if err != nil && c.requestStarted() && !errors.Is(err, net.ErrClosed) {
		c.writeErr.Store(&err)
		return len(p), nil
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.written) })
	return c.Conn.Close()
}

// mostHeader is how large a reply's header may be, those of interim replies included: curl's limit. A header is kept in
// memory several times.
const mostHeader = 300 << 10

// transport makes the transport of one request: for one connection, which is used once.
func (a *attempt) transport(u *url.URL, w *tracer) (*http.Transport, error) {
	o := &a.Options
	t := &http.Transport{
		DialContext:        func(ctx context.Context, _, address string) (net.Conn, error) { return o.dial(ctx, address, w) },
		DisableCompression: !o.Compressed,
		Protocols:          &http.Protocols{},

		MaxResponseHeaderBytes: mostHeader,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, reply *http.Response) error {
			if reply.StatusCode != http.StatusOK {
				return &proxyError{reply.StatusCode}
			}
			return nil
		},
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(!o.HTTP1)
	if u.Scheme == "https" {
		config, err := o.TLS.config()
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = config
	}
	if o.UnixSocket != "" {
		return t, nil
	}
	proxy, err := o.Proxies.For(u)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		w.socks = strings.HasPrefix(proxy.Scheme, "socks5")
		w.proxied = w.socks || u.Scheme == "https"
		w.viaProxy = true
		t.Proxy = http.ProxyURL(proxy)
	}
	return t, nil
}

// dial connects: to the socket, to the addresses that are given for the host, or to those that the system knows.
func (o *Options) dial(ctx context.Context, address string, w *tracer) (net.Conn, error) {
	network, addresses := "tcp", []string{address}
	if o.UnixSocket != "" {
		network, addresses = "unix", []string{o.UnixSocket}
	} else if given := o.Resolve[strings.ToLower(address)]; given != nil {
		_, port, _ := net.SplitHostPort(address)
		addresses = nil
		for _, ip := range given {
			addresses = append(addresses, net.JoinHostPort(strings.Trim(ip, "[]"), port))
		}
	}
	w.enter(stageConnect) // the name, where there is one, comes first and has hooks of its own
	var failures []error
	for _, to := range addresses {
		d := net.Dialer{Resolver: o.resolver}
		conn, err := d.DialContext(ctx, network, to)
		if err == nil {
			w.endPhase(stageConnect, &w.phases.Connect, w.connected())
			return w.wrap(conn), nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// recordedConn records what is read from a connection, after TLS has decrypted it.
type recordedConn struct {
	net.Conn
	header *recorder
}

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.header.record(p[:n])
	return n, err
}

// recordTLS replaces the handshake of the transport by one whose connection is recorded, where the header is shown as
// it was received. Through a proxy and over HTTP/2 that is not possible.
func (a *attempt) recordTLS(t *http.Transport, h wireRequest) {
	if !a.request.Include || h.url.Scheme != "https" || t.Proxy != nil {
		return
	}
	header := a.tracer.header
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := t.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := tls.Client(plain, configFor(t, address))
		if err := handshake(ctx, c); err != nil {
			_ = plain.Close()
			return nil, err
		}
		if c.ConnectionState().NegotiatedProtocol == "h2" {
			return c, nil // net/http speaks that over nothing else
		}
		return &recordedConn{c, header}, nil
	}
}

// configFor is what net/http makes of the configuration for a host.
func configFor(t *http.Transport, address string) *tls.Config {
	config := t.TLSClientConfig.Clone()
	config.NextProtos = nil
	if t.Protocols.HTTP2() {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	return config
}

// handshake calls the hooks of the trace, as net/http does for its own handshakes.
func handshake(ctx context.Context, c *tls.Conn) error {
	trace := httptrace.ContextClientTrace(ctx)
	trace.TLSHandshakeStart()
	err := c.HandshakeContext(ctx)
	trace.TLSHandshakeDone(c.ConnectionState(), err)
	return err
}
