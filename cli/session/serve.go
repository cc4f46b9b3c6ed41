package session

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/version"
	"github.com/10f93571/retry/server"
	"github.com/10f93571/retry/server/access"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
	"github.com/10f93571/retry/worker"
)

// ServiceOptions are what `retry serve` was told.
type ServiceOptions struct {
	*flags.ServeFlags
	*flags.WorkerFlags
	State  string
	Config *flags.ConfigFlag
	Lines  render.Observer
}

// Service is the API with its worker.
type Service struct {
	Address string // where it is reached, as a URL or unix:PATH

	host     *Host
	queue    *sqlite.Queue
	carrier  *Carrier
	monitor  *monitor
	worker   *worker.Worker // nil with --no-worker
	server   *server.Server
	http     *http.Server
	listener net.Listener
	kept     time.Duration // the retention
	lines    render.Observer
	byUser   bool // who calls without a token is known by the user at the other end of the connection
}

// OpenService checks everything and listens.
func (p *Host) OpenService(ctx context.Context, o ServiceOptions) (s *Service, err error) {
	passed, address, err := passedListener()
	if err != nil {
		return nil, err
	}
	o.Listen = cmp.Or(address, o.Listen)
	if hasTLS := o.TLSCert != ""; hasTLS != (o.TLSKey != "") {
		return nil, errors.New("TLS needs both --tls-cert FILE and --tls-key FILE" +
			"\nhint: where one file has the certificate and the key, give it twice")
	}
	hasTLS := o.TLSCert != ""
	err = access.CheckListen(o.Listen, o.TokenFile != "", o.ClientCA != "", hasTLS, o.Insecure)
	if err == nil && o.AllowExec {
		err = access.CheckExec(o.Listen, o.TokenFile != "")
	}
	if err != nil {
		return nil, err
	}
	p.Listen() // a signal that comes from now on ends it in order
	s = &Service{listener: passed, host: p, lines: o.Lines}
	if s.kept, err = RetentionOf(o.Retention, p.Getenv); err != nil {
		return nil, err
	}
	file, err := policies.Load(o.Config, p.Getenv, o.Lines.Warn)
	if err != nil {
		return nil, err
	}
	if s.queue, err = OpenQueue(ctx, p, o.State); err != nil {
		return nil, err
	}
	if err = s.open(p, o, file, hasTLS); err != nil {
		return nil, errors.Join(err, s.queue.Close())
	}
	return s, nil
}

func (s *Service) open(p *Host, o ServiceOptions, file *policies.File, hasTLS bool) (err error) {
	if s.monitor, err = newMonitor(p, s.queue, o.Lines.Warn); err != nil {
		return err
	}
	if s.carrier, err = NewCarrier(p, s.queue, o.WorkerFlags, s.monitor.spans, o.Lines); err != nil {
		return err
	}
	if !o.NoWorker {
		config := s.carrier.WorkerConfig(o.WorkerFlags)
		config.Observer = Tell{Lines: o.Lines, Also: s.monitor}
		config.FollowUp = func(t *task.Task) (*task.Task, error) { return s.server.Decoder().Exhausted(t) }
		s.worker = worker.New(config)
		s.monitor.running = s.worker.Running
	}
	if s.server, err = server.New(s.config(p, o, file)); err != nil {
		return err
	}
	guarded := access.Config{ClientCA: o.ClientCA != "", Listen: o.Listen, Hosts: o.AllowHost, AnyType: isBlob, Open: isOpen}
	if o.TokenFile != "" {
		if guarded.Tokens, err = access.OpenTokens(o.TokenFile, o.Lines.Warn); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
	s.byUser = guarded.Tokens == nil && !guarded.ClientCA && !strings.HasPrefix(o.Listen, "unix:")
	s.http = access.NewServer(access.New(guarded).Handler(s.server.Handler()))
	if s.listener == nil {
		if s.listener, err = access.Listen(o.Listen); err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				err = fmt.Errorf("%w\nhint: does another retry serve run? --listen gives another address", err)
			}
			return err
		}
	}
	s.Address = o.Listen
	if !strings.HasPrefix(o.Listen, "unix:") {
		s.Address = "http://" + s.listener.Addr().String()
	}
	s.listener = access.Bound(s.listener, connectionsBeside(descriptors(), int(o.Concurrency)))
	if hasTLS {
		config, err := access.TLS(o.TLSCert, o.TLSKey, o.ClientCA, o.Lines.Warn)
		if err != nil {
			return errors.Join(err, s.listener.Close())
		}
		config.NextProtos = []string{"h2", "http/1.1"}
		s.http.TLSConfig = config
		s.listener = tls.NewListener(s.listener, config)
		s.Address = strings.Replace(s.Address, "http:", "https:", 1)
	}
	return nil
}

// connectionsBeside is how many connections a server takes with a limit of open files: whoever fills them leaves the
// journal and the attempts what they need, which is a connection to the target, or the pipes of a command.
func connectionsBeside(limit, slots int) int {
	return min(mostConnections, max(leastConnections, limit-ownDescriptors-descriptorsOfASlot*slots))
}

const (
	mostConnections    = 10_000
	leastConnections   = 16
	ownDescriptors     = 128
	descriptorsOfASlot = 8
	blobTime           = 24 * time.Hour // how long a body is kept that no task names
)

// isBlob reports whether a call has a body of any type.
func isBlob(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/blobs/") }

// isOpen reports whether a call is for everybody: whether the service works, and what it can do.
func isOpen(r *http.Request) bool {
	return r.Method == http.MethodGet && slices.Contains([]string{"/", "/healthz", "/readyz", "/openapi.json"}, r.URL.Path)
}

func (s *Service) config(p *Host, o ServiceOptions, file *policies.File) server.Config {
	directory, _ := os.Getwd()
	c := server.Config{
		Queue: s.queue, CheckTarget: func(u *url.URL) error { return s.carrier.Guard.CheckURL(u) },
		// Without a worker beside it, others sign.
		NoSecrets: !o.NoWorker && o.SigningSecretFile == "",
		Authorize: grant, MayRead: func(r *http.Request) bool { return access.Now(r).Scope >= access.Read },
		EnvAllow: o.EnvAllow, AllowExec: o.AllowExec, Directory: directory, Retention: s.kept,
		Lookup:  func(name string) (string, bool) { return flags.LookUp(p.Environ, name) },
		Version: version.Get().Version, Warn: o.Lines.Warn, Limits: limits(o.ServeFlags),
		Stop: func(ctx context.Context, t *task.Task) error {
			workers, err := s.queue.ListWorkers(ctx)
			carries := func(w state.Worker) bool { return w.Number == t.Worker && !w.Gone }
			if err != nil || t.Status == task.InFlight && slices.ContainsFunc(workers, carries) {
				return err // the journal tells its worker, which may be the one of this process
			}
			_, err = StopCancelled(ctx, s.queue.Journal, t)
			return err
		},
		Metrics: s.monitor, Blobs: s.carrier.Blobs,
		Policies: sync.OnceValue(func() []task.Policy { return soundPolicies(file) }),
	}
	if s.worker != nil {
		c.Ready = append(c.Ready, server.Part{Name: "worker", Check: func(context.Context) error {
			if !s.worker.Alive() {
				return errors.New("the worker does not renew its lease, or can claim nothing")
			}
			return nil
		}})
	}
	c.Ready = append(c.Ready, server.Part{Name: "store", Check: s.writable})
	c.Ready = append(c.Ready, server.Part{Name: "disk", Check: func(context.Context) error {
		if !s.queue.HasRoom() {
			return errors.New("the file system of the journal is nearly full")
		}
		return nil
	}})
	return c
}

// lockPatience is how long another process may hold the write lock of the journal. A write takes milliseconds.
const lockPatience = 2 * time.Second

// writable returns what keeps the journal from being written, without the names of its files: anybody may ask.
func (s *Service) writable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	err := s.queue.Writable(ctx)
	if fault, ok := errors.AsType[*state.Fault](err); ok {
		return fault.Kind
	}
	return err
}

func limits(f *flags.ServeFlags) server.Limits {
	return server.Limits{
		Limits: wire.Limits{
			Headers: int(f.MaxHeaders), HeaderBytes: int(f.MaxHeaderBytes), Key: int(f.MaxKey), Inline: int(f.MaxInlineBody),
			Attempts: int(f.MaxAttempts), Timeout: cmp.Or(time.Duration(f.MaxTimeout), wire.NoTimeout),
		},
		JSON: int64(f.MaxJSON), Blob: int64(f.MaxBlob), Batch: int(f.MaxBatch), MaxPending: int(f.MaxPending),
	}
}

// soundPolicies returns the policies of the config file, without those that cannot be used.
func soundPolicies(file *policies.File) (list []task.Policy) {
	if file == nil {
		return nil
	}
	for _, name := range file.Names() {
		if p, mistakes := file.Policy(name); len(mistakes) == 0 {
			list = append(list, p)
		}
	}
	return list
}

// grant is what the caller of the API may do.
func grant(r *http.Request) (server.Grant, error) {
	scope := access.Of(r.Context()).Scope
	return server.Grant{Read: scope >= access.Read, Write: scope >= access.Write, Exec: scope >= access.Admin}, nil
}

// Announce says where the API is, and who may call it over loopback.
func (s *Service) Announce() {
	s.lines.Say("serves " + s.Address)
	if !s.byUser {
		return
	}
	if err := access.CheckLoopback(s.listener.Addr()); err != nil {
		s.lines.Warn(fmt.Errorf("nobody may call without a token: %w"+
			"\nhint: give --token-file FILE, or --listen unix:PATH", err))
		return
	}
	who := "root"
	if uid := os.Geteuid(); uid != 0 {
		who = fmt.Sprintf("the user %d and root", uid)
	}
	s.lines.Say("takes calls without a token from " + who + " alone")
}

// Run serves until a signal asks it to stop: it takes no more calls, and the worker finishes what it has in hand.
func (s *Service) Run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var group sync.WaitGroup
	served := make(chan error, 1)
	group.Go(func() { served <- s.server.Serve(ctx, s.http, s.listener) })
	group.Go(func() { s.carrier.Tidy(ctx, s.kept) })
	carried := make(chan error, 1)
	go func() {
		if s.worker == nil {
			s.host.Ready(ctx, func() bool { return true })
			s.host.Listen()
			<-s.host.Stopping().Done()
			stopping()
			carried <- nil
			return
		}
		carried <- s.host.Carry(s.worker)
	}()
	select {
	case err := <-served: // it could not listen any longer
		return err
	case err := <-carried:
		cancel()
		context.AfterFunc(s.host.hurried, func() { _ = s.http.Close() })
		group.Wait()
		return errors.Join(err, <-served)
	}
}

// Close closes the queue.
func (s *Service) Close() error {
	s.carrier.Close()
	s.monitor.close()
	return s.queue.Close()
}
