package grpcexec

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"syscall"
	"time"

	"github.com/10f93571/retry/httpexec/transport"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// dialError says that there is no connection, and which step of making one failed.
type dialError struct {
	step   step
	phases task.Phases
	cause  error
}

func (e *dialError) Error() string { return e.step.doing() + cause(e.cause) }

func (e *dialError) Unwrap() error { return e.cause }

// step is a step of making a connection.
type step int

const (
	stepConnect step = iota
	stepDNS
	stepTLS
)

func (s step) doing() string {
	switch s {
	case stepDNS:
		return "look up the host: "
	case stepTLS:
		return "TLS handshake: "
	}
	return "connect: "
}

// refusedError is the error of Pool.Control: a guarded call must not reach an address.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return "the target is refused: " + e.cause.Error() }

func (e *refusedError) Unwrap() error { return e.cause }

// errNotHTTP2 says that a server with TLS does not offer HTTP/2.
var errNotHTTP2 = errors.New("the server does not speak HTTP/2")

// maxHeader is how large the metadata of a reply may be.
const maxHeader = 300 << 10

// connect makes a connection within the connect timeout.
func (p *Pool) connect(ctx context.Context, to place) (*connection, error) {
	if limit := to.network.ConnectTimeout; limit > 0 {
		var cancel context.CancelFunc
		cause := fmt.Errorf("%w after %s", runner.ErrTimeout, text.FormatDuration(limit))
		ctx, cancel = context.WithTimeoutCause(ctx, limit, cause)
		defer cancel()
	}
	m := &meter{}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			m.enter(stepConnect)
			c, err := p.dial(ctx, network, address, to)
			if err == nil {
				m.end(&m.phases.Connect)
			}
			return c, err
		},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              &http.Protocols{},
	}
	t.Protocols.SetUnencryptedHTTP2(!to.secure)
	t.Protocols.SetHTTP2(to.secure)
	scheme := "http"
	if to.secure {
		config, err := to.network.tls()
		if err != nil {
			return nil, err
		}
		scheme, t.TLSClientConfig = "https", config
	}
	c, err := t.NewClientConn(httptrace.WithClientTrace(ctx, m.trace()), scheme, to.address)
	if err == nil && to.secure && m.protocol() != "h2" {
		_ = c.Close()
		err = errNotHTTP2
	}
	step, phases := m.measured()
	if err != nil {
		return nil, &dialError{step, phases, transport.Explain(ctx, err)}
	}
	return &connection{ClientConn: c, place: to, phases: phases}, nil
}

func (p *Pool) dial(ctx context.Context, network, address string, to place) (net.Conn, error) {
	d := net.Dialer{}
	if to.guarded {
		host, _, err := net.SplitHostPort(to.address)
		if err != nil {
			return nil, err
		}
		control := p.Control(host)
		d.Control = func(network, address string, c syscall.RawConn) error {
			if err := control(network, address, c); err != nil {
				return &refusedError{err}
			}
			return nil
		}
	}
	if to.network.UnixSocket != "" {
		network, address = "unix", to.network.UnixSocket
	}
	return d.DialContext(ctx, network, address)
}

// meter measures the steps of making a connection. Its hooks are called from several goroutines.
type meter struct {
	mutex  sync.Mutex
	step   step
	began  time.Time
	phases task.Phases
	spoken string // the protocol that TLS has agreed on
}

func (m *meter) enter(s step) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.step, m.began = s, time.Now()
}

func (m *meter) end(phase *time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	*phase += time.Since(m.began)
}

func (m *meter) protocol() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.spoken
}

func (m *meter) measured() (step, task.Phases) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.step, m.phases
}

func (m *meter) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { m.enter(stepDNS) },
		DNSDone: func(info httptrace.DNSDoneInfo) {
			if info.Err == nil {
				m.end(&m.phases.DNS)
				m.enter(stepConnect)
			}
		},
		TLSHandshakeStart: func() { m.enter(stepTLS) },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			if err == nil {
				m.end(&m.phases.TLS)
			}
			m.mutex.Lock()
			defer m.mutex.Unlock()
			m.spoken = state.NegotiatedProtocol
		},
	}
}
