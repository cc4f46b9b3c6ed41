package httpexec

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// mostHeader is how large a reply's header may be, those of interim replies included: curl's limit. A header is kept in memory several times.
const mostHeader = 300 << 10

// transport makes the one transport of a hop: for one connection, which is used once.
func (a *attempt) transport(u *url.URL, w *watch) (*http.Transport, error) {
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
