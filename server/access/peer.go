package access

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/10f93571/retry/server/problem"
)

// peer is the other end of a connection that comes from this machine; its zero value is of any other one.
type peer struct {
	unix bool // of a unix socket, else of loopback
	uid  func() (int, error)
}

type peerKey struct{}

// ConnContext is for http.Server: it notes how to find the user at the other end of a unix socket or of a connection
// over loopback. A request with a token does not pay for that.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	for {
		inner, wraps := c.(interface{ NetConn() net.Conn })
		if !wraps {
			break
		}
		c = inner.NetConn()
	}
	var p peer
	switch c := c.(type) {
	case *net.UnixConn:
		uid, err := peerUID(c)
		p = peer{unix: true, uid: func() (int, error) { return uid, err }}
	case *net.TCPConn:
		if from, ok := c.RemoteAddr().(*net.TCPAddr); !ok || !from.IP.IsLoopback() {
			return ctx
		}
		p = peer{uid: sync.OnceValues(func() (int, error) { return uidOfClient(c) })} // asks the kernel once
	default:
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, p)
}

func peerOf(ctx context.Context) peer {
	p, _ := ctx.Value(peerKey{}).(peer)
	return p
}

// identity lets our own user and root in, and nobody else: to do everything over a unix socket, and over loopback,
// which a browser reaches, too, everything but commands.
func (p peer) identity() (Identity, error) {
	const hint = "\nhint: a server with --token-file FILE takes tokens, and with --listen unix:PATH calls of its own user"
	uid, err := p.uid()
	if err == nil && isUnmapped(uid) {
		err = fmt.Errorf("the user %d stands for many in this user namespace", uid)
	}
	switch {
	case err != nil && p.unix:
		return Identity{}, problem.Unauthorized("who is at the other end of the socket is not known: %v", err)
	case err != nil:
		return Identity{}, problem.Unauthorized("no token was sent, and who calls is not known: %v%s", err, hint)
	case uid == os.Geteuid() || uid == 0:
	case p.unix:
		return Identity{}, problem.Forbidden("the user %d may not use this socket", uid)
	default:
		return Identity{}, problem.Unauthorized("no token was sent, and the user %d is not that of the server%s", uid, hint)
	}
	if !p.unix {
		return Identity{Name: "local", Scope: Write}, nil
	}
	return Identity{Name: fmt.Sprintf("uid %d", uid), Scope: Admin}, nil
}

// certificateName returns the name in a client certificate.
func certificateName(c *x509.Certificate) string {
	if c.Subject.CommonName == "" && len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}
