package httpexec

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// transport makes the one transport of a hop: for one connection, which is used once.
func (e *Executor) transport(u *url.URL, w *watch) (*http.Transport, error) {
	o := &e.Options
	t := &http.Transport{
		DialContext:        func(ctx context.Context, _, address string) (net.Conn, error) { return o.dial(ctx, address, w) },
		DisableCompression: !o.Compressed,
		Protocols:          &http.Protocols{},
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
func (o *Options) dial(ctx context.Context, address string, w *watch) (net.Conn, error) {
	network, addresses := "tcp", []string{address}
	if o.UnixSocket != "" {
		network, addresses = "unix", []string{o.UnixSocket}
	} else if given := o.Resolve[strings.ToLower(address)]; given != nil {
		_, port, _ := net.SplitHostPort(address)
		addresses = nil
		for _, ip := range given {
			addresses = append(addresses, join(strings.Trim(ip, "[]"), port))
		}
	}
	w.enter(stageConnect) // the name, where there is one, comes first and has hooks of its own
	var failures []error
	for _, to := range addresses {
		d := net.Dialer{Resolver: o.resolver}
		conn, err := d.DialContext(ctx, network, to)
		if err == nil {
			w.ended(stageConnect, &w.phases.Connect, w.connected())
			return w.guard(conn), nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// conn is a connection that does not read before something was written. A server that speaks first is none of HTTP; it would be that
// or a broken connection, as the race goes, and net/http would log it.
type conn struct {
	net.Conn
	spoken chan struct{} // closed when something was written, or when it is over
	once   sync.Once
	wrote  atomic.Int64
	ended  atomic.Pointer[error] // how reading from it ended
}

func (w *watch) guard(c net.Conn) *conn {
	w.conn = &conn{Conn: c, spoken: make(chan struct{})}
	return w.conn
}

func (c *conn) Read(p []byte) (int, error) {
	<-c.spoken
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.ended.Store(&err)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.wrote.Add(int64(len(p))) // before: the reply may be here before Write returns
	n, err := c.Conn.Write(p)
	c.wrote.Add(int64(n - len(p)))
	c.once.Do(func() { close(c.spoken) })
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.spoken) })
	return c.Conn.Close()
}
