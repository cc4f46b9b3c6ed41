package httpexec

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
)

// heardConn is a connection behind TLS whose bytes are remembered.
type heardConn struct {
	net.Conn
	heard *recorder
}

func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.heard.hear(p[:n])
	return n, err
}

// hearTLS has the transport's own handshake replaced by one whose connection can be listened to, where the header is to be shown as it
// comes. Through a proxy, and over HTTP/2, there is no way to.
func (a *attempt) hearTLS(t *http.Transport, h hop) {
	if !a.asked.Include || h.url.Scheme != "https" || t.Proxy != nil {
		return
	}
	heard := a.watch.heard
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
		return &heardConn{c, heard}, nil
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

// handshake tells those who follow the request, as net/http does for its own.
func handshake(ctx context.Context, c *tls.Conn) error {
	trace := httptrace.ContextClientTrace(ctx)
	trace.TLSHandshakeStart()
	err := c.HandshakeContext(ctx)
	trace.TLSHandshakeDone(c.ConnectionState(), err)
	return err
}
