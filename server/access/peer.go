package access

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"github.com/10f93571/retry/server/problem"
)

// peer is who is at the other end of a unix socket.
type peer struct {
	uid int
	err error
}

type peerKey struct{}

// ConnContext is for http.Server: it notes the user at the other end of a unix socket.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	for {
		inner, wraps := c.(interface{ NetConn() net.Conn })
		if !wraps {
			break
		}
		c = inner.NetConn()
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	uid, err := peerUID(socket)
	return context.WithValue(ctx, peerKey{}, peer{uid: uid, err: err})
}

func peerOf(ctx context.Context) (p peer, unix bool) {
	p, unix = ctx.Value(peerKey{}).(peer)
	return p, unix
}

// identity lets our own user and root do everything, and nobody else anything.
func (p peer) identity() (Identity, error) {
	switch {
	case p.err != nil:
		return Identity{}, problem.Unauthorized("who is at the other end of the socket is not known: %v", p.err)
	case p.uid != os.Geteuid() && p.uid != 0:
		return Identity{}, problem.Forbidden("the user %d may not use this socket", p.uid)
	}
	return Identity{Name: fmt.Sprintf("uid %d", p.uid), Scope: Admin}, nil
}

// certificateName returns the name in a client certificate.
func certificateName(c *x509.Certificate) string {
	if c.Subject.CommonName == "" && len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}
