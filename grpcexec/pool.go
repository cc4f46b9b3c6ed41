package grpcexec

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Pool keeps connections for the calls of many tasks, and the types that servers have described. The zero value keeps no
// connection: each attempt makes its own.
type Pool struct {
	// Idle is how long an unused connection is kept.
	Idle time.Duration
	// Control judges the addresses of a host before a connection is made, for guarded calls alone: see net.Dialer. Without
	// it they are not sent. Its error ends the task.
	Control func(host string) func(network, address string, c syscall.RawConn) error

	mutex   sync.Mutex
	kept    map[place][]*connection
	dials   map[place]*dial // under way, for calls that may share a connection
	schemas map[schemaKey]*schema
}

// place is what calls have in common that can share a connection.
type place struct {
	address string // host:port
	secure  bool
	guarded bool
	network Network
}

// connection is one HTTP/2 connection. Several calls may use it at the same time.
type connection struct {
	*http.ClientConn
	place  place
	phases task.Phases // of making it, until the first call has taken them
	users  int
	fresh  bool        // it is not kept
	spent  bool        // no other call may use it
	idle   *time.Timer // closes it; nil while it is used
}

// dial is a connection that is being made, for all who wait for it.
type dial struct {
	done chan struct{}
	err  error
}

// get returns a connection: a kept one, unless the call needs a fresh one.
func (p *Pool) get(ctx context.Context, to place, fresh bool) (*connection, error) {
	if fresh || p.Idle == 0 {
		c, err := p.connect(ctx, to)
		if err == nil {
			c.users, c.fresh = 1, true
		}
		return c, err
	}
	for {
		p.mutex.Lock()
		if c := p.reserve(to); c != nil {
			p.mutex.Unlock()
			return c, nil
		}
		d := p.dials[to]
		if d == nil {
			d = p.begin(ctx, to)
		}
		p.mutex.Unlock()
		select {
		case <-d.done:
			if d.err != nil {
				return nil, d.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reserve finds a kept connection with room for a call. The pool is locked.
func (p *Pool) reserve(to place) *connection {
	for _, c := range p.kept[to] {
		if c.spent || c.Err() != nil || c.Reserve() != nil {
			continue
		}
		if c.idle != nil && !c.idle.Stop() {
			c.Release()
			continue // it is about to be closed
		}
		c.idle = nil
		c.users++
		return c
	}
	return nil
}

// begin makes a connection for everybody who waits for one. The pool is locked. It outlives the call that asked first,
// whose context has the hooks that measure it.
func (p *Pool) begin(ctx context.Context, to place) *dial {
	const most = 30 * time.Second
	d := &dial{done: make(chan struct{})}
	if p.dials == nil {
		p.dials, p.kept = map[place]*dial{}, map[place][]*connection{}
	}
	p.dials[to] = d
	go func() {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), most, runner.ErrTimeout)
		defer cancel()
		c, err := p.connect(ctx, to)
		p.mutex.Lock()
		defer p.mutex.Unlock()
		defer close(d.done)
		delete(p.dials, to)
		if d.err = err; err == nil {
			c.idle = time.AfterFunc(p.Idle, func() { p.drop(c) })
			p.kept[to] = append(p.kept[to], c)
		}
	}()
	return d
}

// release returns a connection. One whose call ended without a reply is not used again: it may be dead.
func (p *Pool) release(c *connection, answered bool) {
	if c.fresh {
		_ = c.Close()
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	c.users--
	c.spent = c.spent || !answered || c.Err() != nil
	switch {
	case c.users > 0:
	case c.spent:
		p.remove(c)
	default:
		c.idle = time.AfterFunc(p.Idle, func() { p.drop(c) })
	}
}

// takePhases returns how long it took to make the connection, to the first call that asks.
func (p *Pool) takePhases(c *connection) task.Phases {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	taken := c.phases
	c.phases = task.Phases{}
	return taken
}

// drop closes a connection that was not used for a while.
func (p *Pool) drop(c *connection) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if c.users == 0 {
		p.remove(c)
	}
}

func (p *Pool) remove(c *connection) {
	c.spent = true
	rest := slices.DeleteFunc(p.kept[c.place], func(other *connection) bool { return other == c })
	if p.kept[c.place] = rest; len(rest) == 0 {
		delete(p.kept, c.place)
	}
	_ = c.Close()
}

// Close closes the connections that nobody uses.
func (p *Pool) Close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, all := range p.kept {
		for _, c := range slices.Clone(all) {
			if c.users == 0 {
				p.remove(c)
			}
		}
	}
}

// localError is a failure of this machine, or of what it was asked to do. Another attempt would fail in the same way.
type localError struct{ cause error }

func (e *localError) Error() string { return e.cause.Error() }

func (e *localError) Unwrap() error { return e.cause }

// tls reads the files of certificates. That is done for each connection, as they may have been renewed.
func (n *Network) tls() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: n.Insecure} //nolint:gosec // the user asked for it with -k
	if n.CACert != "" {
		content, err := os.ReadFile(n.CACert)
		config.RootCAs = x509.NewCertPool()
		if err == nil && !config.RootCAs.AppendCertsFromPEM(content) {
			err = fmt.Errorf("%s holds no certificate in PEM form", n.CACert)
		}
		if err != nil {
			return nil, &localError{fmt.Errorf("read the certificates to believe: %w", err)}
		}
	}
	if n.Cert == "" && n.Key == "" {
		return config, nil
	}
	key := n.Key
	if key == "" {
		key = n.Cert
	}
	own, err := tls.LoadX509KeyPair(n.Cert, key)
	if err != nil {
		return nil, &localError{fmt.Errorf("read the client's certificate: %w", err)}
	}
	config.Certificates = []tls.Certificate{own}
	return config, nil
}
