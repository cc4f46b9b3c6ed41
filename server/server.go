// Package server is the API of retry: it makes, shows and changes the tasks of a state.Queue over HTTP. It carries none
// of them: that is for workers. docs/api.md describes every call, openapi.json their bodies.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/server/blobs"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Config is what a Server needs. Only Queue has to be set.
type Config struct {
	Queue state.Queue
	// Policies returns the policies of the config file, which hold over those of the store; nil is none.
	Policies func() []task.Policy
	// Authorize says what a client may do, or refuses the request with a *problem.Problem; nil lets everybody do anything
	// but run commands.
	Authorize func(r *http.Request) (Grant, error)
	// MayRead reports whether a client that gets events may still get them; nil lets it.
	MayRead func(r *http.Request) bool
	// CheckTarget refuses URLs that requests must not go to; the error names the rule. nil refuses none.
	CheckTarget func(*url.URL) error
	// Stop stops what runs of a task, as it was read before it was cancelled; nil leaves that to the workers.
	Stop    func(context.Context, *task.Task) error
	Blobs   *blobs.Store // nil: bodies stay with their tasks, and /blobs answers 404
	Metrics http.Handler // of /metrics; nil: 404
	Ready   []Part       // what /readyz looks at, beside the last write to the store

	Limits    Limits
	NoSecrets bool     // no request can be signed
	EnvAllow  []string // variables that requests may name as {env:NAME}
	Lookup    func(name string) (value string, ok bool)
	AllowExec bool          // commands, for clients with the grant to run them
	Directory string        // where a command runs that names none
	Retention time.Duration // how long the store keeps what has ended; 0 = for ever

	Version string
	Warn    func(error)      // of what a client is not told; nil drops it
	Now     func() time.Time // nil is time.Now
}

// Grant is what a client may do.
type Grant struct{ Read, Write, Exec bool }

// Part is a part that has to work for the server to be ready.
type Part struct {
	Name  string
	Check func(ctx context.Context) error
}

// Limits bound what clients may send. Zero values are the defaults.
type Limits struct {
	wire.Limits
	JSON       int64 // bytes of a body of JSON: 1 MiB
	Blob       int64 // bytes of a blob: 1 GiB
	Batch      int   // tasks in a batch: 1,000
	MaxPending int   // unfinished tasks, from which on none is made; 0 = no limit
}

func (l Limits) withDefaults() Limits {
	l.JSON, l.Blob = cmp.Or(l.JSON, 1<<20), cmp.Or(l.Blob, 1<<30)
	l.Batch = cmp.Or(l.Batch, 1000)
	l.Attempts = cmp.Or(l.Attempts, wire.DefaultLimits().Attempts)
	l.Inline = cmp.Or(l.Inline, wire.DefaultLimits().Inline)
	l.Timeout = cmp.Or(l.Timeout, wire.DefaultLimits().Timeout)
	return l
}

// Server answers the calls of the API.
type Server struct {
	Config
	mux      *http.ServeMux
	reads    *reads
	decoder  *wire.Decoder
	named    *policyCache
	pending  pending
	events   *events
	requeues *requeues
	held     held

	described func() (tagged, error) // openapi.json

	draining atomic.Bool           // it ends: not ready
	fault    atomic.Pointer[fault] // why the store could not be written last time; nil: it could
	stopped  chan struct{}         // closed by Close
	stop     func()
}

// New returns a Server. It goes on with requeues that an earlier one has begun.
func New(c Config) (*Server, error) {
	if c.Queue == nil {
		return nil, errors.New("the server has no queue")
	}
	s := decoding(c)
	s.stopped = make(chan struct{})
	s.stop = sync.OnceFunc(func() { close(s.stopped) })
	s.events = newEvents(s)
	s.requeues = newRequeues(s)
	s.described = sync.OnceValues(s.describe)
	s.mux = s.routes()
	if err := s.requeues.resume(); err != nil {
		return nil, fmt.Errorf("read the requeues: %w", err)
	}
	s.requeues.watch()
	return s, nil
}

// decoding returns a server that can read tasks, and nothing more.
func decoding(c Config) *Server {
	c.Limits = c.Limits.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	s := &Server{Config: c, reads: newReads(c.Queue)}
	s.named = &policyCache{server: s}
	s.decoder = &wire.Decoder{
		Limits: c.Limits.Limits, Policy: s.named.find, CheckTarget: c.CheckTarget, EnvAllow: c.EnvAllow,
		Lookup: c.Lookup, NoSecrets: c.NoSecrets, Directory: c.Directory, Now: c.Now,
	}
	return s
}

// Decoder returns what reads the tasks of the API. A worker makes those of onExhausted with it.
func (s *Server) Decoder() *wire.Decoder { return s.decoder }

// NewDecoder returns the Decoder of a worker that has no server beside it.
func NewDecoder(c Config) *wire.Decoder { return decoding(c).decoder }

// Handler returns the handler of all calls. It expects package access before it: that checks where a call comes from,
// the type of its body, and who sends it.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Close ends the streams of events and the requeues, which the next server continues.
func (s *Server) Close() {
	s.draining.Store(true)
	s.stop()
	s.requeues.group.Wait()
}

// grace is how long Serve waits for what is being answered.
const grace = 10 * time.Second

// Serve answers on a listener with an HTTP server until ctx ends. Then /readyz fails, streams of events end, and what
// is being answered is answered. It closes the server.
func (s *Server) Serve(ctx context.Context, h *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(listener) }()
	select {
	case err := <-ended:
		s.Close()
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.stop()
	inTime, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := h.Shutdown(inTime)
	if errors.Is(err, context.DeadlineExceeded) { // of a client that does not go on, too
		err = h.Close()
	}
	s.Close()
	if err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	return nil
}
