package access

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// MaxConnections is how many connections a server keeps at a time. Others wait to be accepted.
const MaxConnections = 10_000

// cutUnix returns the path of unix:PATH.
func cutUnix(address string) (path string, unix bool) { return strings.CutPrefix(address, "unix:") }

// isLocal reports whether only this machine reaches an address that is listened on.
func isLocal(address string) bool {
	if _, unix := cutUnix(address); unix {
		return true
	}
	host := hostName(address)
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// CheckListen refuses an address (host:port or unix:PATH) that others could reach without saying who they are, or with
// their token readable on its way.
func CheckListen(address string, hasTokens, hasClientCA, hasTLS, insecure bool) error {
	path, unix := cutUnix(address)
	switch {
	case unix && path == "":
		return fmt.Errorf("--listen %s: no path\nhint: give unix:/run/user/1000/retry.sock", address)
	case !unix && !validPort(address):
		return fmt.Errorf("--listen %s: want host:port\nhint: give 127.0.0.1:7470, or unix:PATH", address)
	case hasClientCA && !hasTLS:
		return errors.New("--client-ca without TLS checks nothing\nhint: give --tls-cert and --tls-key, too")
	case isLocal(address):
		return nil
	case !hasTokens && !hasClientCA:
		return fmt.Errorf("--listen %s: anybody who reaches this address could use the API"+
			"\nhint: give --token-file FILE (retry token add makes one) or --client-ca FILE, or listen on 127.0.0.1", address)
	case !hasTLS && !insecure:
		return fmt.Errorf("--listen %s: without TLS, tokens and requests can be read on their way"+
			"\nhint: give --tls-cert and --tls-key, or --insecure where a proxy or a tunnel before it has TLS", address)
	}
	return nil
}

// CheckExec refuses --allow-exec where nobody could use it: over loopback, commands need a token.
func CheckExec(address string, hasTokens bool) error {
	if _, unix := cutUnix(address); unix || hasTokens {
		return nil
	}
	return fmt.Errorf("--allow-exec with --listen %s: commands need a token of scope admin there"+
		"\nhint: give --token-file FILE, or listen on unix:PATH", address)
}

func validPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

// Listen listens on host:port or unix:PATH. The socket has mode 0600; one that a dead server left behind is replaced.
func Listen(address string) (net.Listener, error) {
	path, unix := cutUnix(address)
	if !unix {
		return net.Listen("tcp", address)
	}
	defer lockDirectory(filepath.Dir(path))()
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err := removeDead(path); err != nil {
			return nil, err
		}
		l, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeDead removes a socket that nobody listens on. It may go, or be another server's, in the meantime.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("listen unix %s: there is a file that is no socket", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return fmt.Errorf("listen unix %s: %w", path, syscall.EADDRINUSE)
	} else if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if now, err := os.Lstat(path); err != nil || !os.SameFile(info, now) {
		return nil
	}
	return os.Remove(path)
}

// Bound returns a listener that has at most n connections open at a time.
func Bound(l net.Listener, n int) net.Listener {
	return &bounded{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type bounded struct {
	net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	return &boundedConn{Conn: c, release: sync.OnceFunc(func() { <-b.slots })}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	release func()
}

// NetConn returns the connection as the kernel has it.
func (c *boundedConn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http end its half first, so that a client that is still sending gets the reply to read.
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
