package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/pool"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/httpexec/webhook"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/metrics/otlp"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/server"
	"github.com/10f93571/retry/server/blobs"
	"github.com/10f93571/retry/server/guard"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
	"github.com/10f93571/retry/worker"
)

// Carrier makes the executors of a worker's attempts.
type Carrier struct {
	host    *Host
	queue   *sqlite.Queue
	lines   render.Observer
	logDir  string
	request *httpexec.Executor // of every request that needs nothing of its own
	calls   *grpcexec.Executor // the same for gRPC
	pool    *pool.Pool
	Guard   *guard.Guard
	Blobs   *blobs.Store
}

// idleConnections is how many connections a worker keeps without a request.
const idleConnections = 1000

// blobsName is the directory of large bodies, beside the journal.
const blobsName = "blobs"

// NewCarrier prepares what the attempts of a worker share. spans exports those of the attempts; nil: nobody collects
// them.
func NewCarrier(
	p *Host, queue *sqlite.Queue, f *flags.WorkerFlags, spans *otlp.Exporter, lines render.Observer,
) (*Carrier, error) {
	bodies, err := blobs.New(filepath.Join(queue.Dir(), blobsName))
	if err != nil {
		return nil, fmt.Errorf("open the bodies: %w", err)
	}
	delivery := httpexec.Delivery{TraceParent: spans.TraceParent, Blob: bodies.Open}
	judge, err := guard.New(f.AllowTarget)
	if err != nil {
		return nil, fmt.Errorf("--allow-target: %w", err)
	}
	if f.SigningSecretFile != "" {
		if delivery.Secrets, err = readSecrets(f.SigningSecretFile); err != nil {
			return nil, fmt.Errorf("--signing-secret-file: %w", err)
		}
	}
	if f.LogDir != "" {
		if err := os.MkdirAll(f.LogDir, 0o700); err != nil {
			return nil, fmt.Errorf("--log-dir: %w", err)
		}
	}
	c := &Carrier{host: p, queue: queue, lines: lines, logDir: f.LogDir, Guard: judge, Blobs: bodies, pool: pool.New(idleConnections)}
	delivery.Pool, delivery.Control = c.pool, func(host string) func(string, string, syscall.RawConn) error { return judge.ForHost(host) }
	delivery.Lookup = func(name string) (string, bool) {
		if !slices.Contains(f.EnvAllow, name) {
			return "", false
		}
		return flags.LookUp(p.Environ, name)
	}
	c.request = &httpexec.Executor{
		Lookup: lookUpIn(p.Environ), UserAgent: userAgent(), Delivery: &delivery,
		Temporary: func() (*os.File, error) { return spool.Temporary("") },
	}
	c.calls = &grpcexec.Executor{
		Pool: &grpcexec.Pool{Idle: idleTime, Control: delivery.Control}, Lookup: lookUpIn(p.Environ), UserAgent: userAgent(),
		MaxReply: largestReply, GuardedLookup: delivery.Lookup, Address: delivery.Name,
	}
	return c, nil
}

// What a worker keeps of the servers of gRPC calls: connections for a time, and replies up to a size.
const (
	idleTime     = 2 * time.Second
	largestReply = 1 << 20
)

func readSecrets(path string) ([]webhook.Secret, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return webhook.ParseSecrets(file)
}

// Close ends the connections that are kept.
func (c *Carrier) Close() {
	c.pool.Close()
	c.calls.Pool.Close()
}

// Open prepares an attempt of a claimed task. A request shares its executor with all others, unless it has hooks or a
// body that was kept for it.
func (c *Carrier) Open(t *task.Task) (*worker.Execution, error) {
	o := &t.Options
	plain := o.OnStart+o.OnRetry+o.OnSuccess+o.OnFailure+o.Ping == ""
	if t.Kind == grpcexec.Kind && plain {
		return &worker.Execution{Executor: c.calls}, nil
	}
	if t.Kind == request.Kind && plain && !t.Target.ReadsStdin() && len(t.Environment) == 0 {
		return &worker.Execution{Executor: c.request}, nil
	}
	return c.prepare(t)
}

// prepare puts an attempt together as a resume does: in the task's directory, with its kept environment and stdin.
func (c *Carrier) prepare(t *task.Task) (e *worker.Execution, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	output := null
	if c.logDir != "" && t.Kind == task.KindCommand {
		name := fmt.Sprintf("%s.%d.log", t.ID, t.AttemptCount+1)
		if output, err = os.OpenFile(filepath.Join(c.logDir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("--log-dir: %w", err), null.Close())
		}
	}
	closeFiles := func() {
		_ = null.Close()
		if output != null {
			_ = output.Close()
		}
	}
	if o := &t.Options; t.Kind == task.KindCommand && !t.RequeuedAt.IsZero() { // a line may have begun it, and not add
		o.Capture, o.Output, o.OutputLimit = task.CaptureBoth, "", 0
	}
	host := &Host{Environ: withoutManager(c.host.Environ), Stdin: null, Stdout: output, Stderr: output, stopped: context.Background()}
	journal := &Journal{Journal: c.queue.Journal, warn: c.lines.Warn}
	how := ResumeOptions{ExecOptions: ExecOptions{Group: &flags.ProcessGroupFlags{Group: true}, Quiet: true}}
	run, err := host.NewResumer(t, journal, render.Silent{Observer: c.lines}, how)
	if err != nil {
		closeFiles()
		return nil, err
	}
	if executor, ok := run.Executor.(*httpexec.Executor); ok {
		executor.Delivery = c.request.Delivery
	}
	return &worker.Execution{
		Executor: run.Executor, Hooks: run.Hooks, Observer: run.Observer, Close: func() { run.Close(); closeFiles() },
	}, nil
}

// left returns an error while something of an earlier attempt may run, or of another run of its name. A request without
// a name and without hooks has no processes: nothing is asked about it.
func (c *Carrier) left(ctx context.Context, t *task.Task) error {
	o := &t.Options
	if t.Target != nil && t.Name == "" && o.OnStart+o.OnRetry+o.OnSuccess+o.OnFailure == "" {
		return nil
	}
	journal := &Journal{Journal: c.queue.Journal, warn: c.lines.Warn}
	earlier, _, err := cutOffRuns(ctx, journal.Journal, t)
	if err != nil {
		return fmt.Errorf("read the other runs of %s: %w", text.Escape(t.Name), err)
	}
	if err := c.nameFree(t.Name); err != nil {
		return err
	}
	look := c.host.newSurvivors(flags.SurvivorFlags{}, journal)
	for _, other := range append(earlier, t) {
		found, err := look.FindUnrecorded(other)
		attempt := fmt.Sprintf("%s: attempt %d", render.ShortID(other.ID), other.Last.Latest())
		switch {
		case found != "":
			return fmt.Errorf("%s left %s running: the next attempt waits for the end of that",
				render.ShortID(other.ID), found)
		case err == nil && other.Last.CutOff():
			found, err = look.Find(other, other.Last)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s may still be running, and cannot be seen from here: %w"+
				"\nhint: a worker where it ran takes the task; or retry cancel %s, and retry requeue --run --assume-dead %[3]s",
				attempt, err, render.ShortID(t.ID))
		case found != "":
			return fmt.Errorf("%s left %s running: the next one waits for the end of that", attempt, found)
		}
	}
	return nil
}

// nameFree returns an error while a line of the name runs, of which this journal need not know: it may be a new one, or
// have been locked. A line that only asks who has the name has it for a moment.
func (c *Carrier) nameFree(name string) error {
	if name == "" {
		return nil
	}
	pid, err := c.queue.NameOwner(name)
	for pause := firstNamePause; pid != 0 && err == nil && pause < 4*firstNamePause; pause *= 2 {
		time.Sleep(pause)
		pid, err = c.queue.NameOwner(name)
	}
	if pid != 0 && err == nil {
		err = fmt.Errorf("%w: the next attempt waits for the end of that", &runningError{name: name, pid: pid})
	}
	return err
}

// WorkerConfig is the part of a worker's configuration that flags and this process give.
func (c *Carrier) WorkerConfig(f *flags.WorkerFlags) worker.Config {
	name, _ := os.Hostname()
	config := worker.Config{
		Queue: c.queue, Name: fmt.Sprintf("%s:%d", cmp.Or(name, "localhost"), os.Getpid()),
		Open: c.Open, Left: c.left, Random: rand.Float64,
		Concurrency: int(f.Concurrency), PerHost: int(f.PerHost), Commands: cmp.Or(int(f.Commands), runtime.NumCPU()),
		Visibility: worker.DefaultVisibility, Grace: worker.DefaultGrace, LateStop: awaitStop,
	}
	config.FollowUp = server.NewDecoder(server.Config{
		Queue: c.queue, EnvAllow: f.EnvAllow, Lookup: lookUpIn(c.host.Environ), Warn: c.lines.Warn,
	}).Exhausted
	if f.VisibilityTimeout != nil {
		config.Visibility = time.Duration(*f.VisibilityTimeout)
	}
	if f.Grace != nil {
		config.Grace = time.Duration(*f.Grace)
	}
	return config
}

// Carry runs a worker until a signal asks it to stop; a second one has it stop its attempts at once.
func (p *Host) Carry(w *worker.Worker) error {
	boundMemory()
	p.Listen()
	context.AfterFunc(p.Stopping(), stopping)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.Ready = func() { p.Ready(ctx, w.Alive) }
	return w.Run(p.Stopping(), p.hurried)
}

// tidyInterval is how often a worker removes old tasks, a bounded number at a time, and bodies that no task has.
const (
	tidyInterval = time.Minute
	pruneRows    = 2000
)

// Tidy removes tasks that finished longer ago than they are kept, 0 being for ever, and bodies, until ctx ends.
func (c *Carrier) Tidy(ctx context.Context, kept time.Duration) {
	for {
		select {
		case <-time.After(tidyInterval):
		case <-ctx.Done():
			return
		}
		inUse := func(b blobs.Info) (bool, error) { return c.queue.BlobInUse(ctx, b.Hash, b.Used) }
		if _, err := c.Blobs.Sweep(ctx, time.Now().Add(-blobTime), inUse); err != nil && ctx.Err() == nil {
			c.lines.Warn(fmt.Errorf("remove old bodies: %w", err))
		}
		for more := kept > 0; more && ctx.Err() == nil; {
			r := state.Retention{Before: time.Now().Add(-kept), Rows: pruneRows}
			var err error
			if _, err = c.host.LookAt(ctx, c.queue.Journal, &r, pruneRows); err == nil {
				_, more, err = c.queue.Prune(ctx, r)
			}
			if err != nil {
				c.lines.Warn(fmt.Errorf("remove old tasks from the journal: %w", err))
				more = false
			}
		}
	}
}

// Tell has what a worker does told on stderr: a line for each attempt that fails, for each end that is no success, and
// for each task that is deferred.
type Tell struct {
	Lines render.Observer
	Also  worker.Observer // may be nil
}

// Began implements worker.Observer.
func (o Tell) Began(t *task.Task, late time.Duration) {
	if o.Also != nil {
		o.Also.Began(t, late)
	}
}

// Ended implements worker.Observer.
func (o Tell) Ended(t *task.Task, a task.Attempt) {
	if o.Also != nil {
		o.Also.Ended(t, a)
	}
	outcome := t.Last.Outcome
	if a.Number > 0 { // else its time was over before another attempt
		o.Lines.Ended(t, a)
		outcome = a.Outcome
	}
	if t.Status.Finished() || a.Decision.Reason == task.ReasonDeferred {
		o.Lines.Finished(t, runner.Result{Decision: a.Decision, Outcome: outcome})
	}
}

// Warn implements worker.Observer.
func (o Tell) Warn(err error) {
	if o.Also != nil {
		o.Also.Warn(err)
	}
	o.Lines.Warn(err)
}

// The garbage collector runs when the memory has grown by four times what is in use, as the memory in use is small; but
// a worker stays below 64 MiB as long as it can. A thousand slots or ten thousand clients need more: the collector
// would take half of the processor to stay below that.
const (
	collectPercent  = 400
	memoryLimit     = 56 << 20 // bytes
	memoryBase      = 44 << 20 // without goroutines
	goroutineMemory = 48 << 10 // its stack, its buffers, and as much again to be collected
)

// boundMemory limits the memory of a worker, from now on by how many goroutines there are.
func boundMemory() {
	debug.SetGCPercent(collectPercent)
	var limit int64
	afterCollections(func() {
		wanted := max(memoryLimit, memoryBase+goroutineMemory*int64(runtime.NumGoroutine()))
		if wanted > limit || wanted < limit-limit/8 { // to set it stops everything for a moment
			limit = wanted
			debug.SetMemoryLimit(limit)
		}
	})
}

// afterCollections calls do now and soon after each collection, as the finalizer of something that nobody uses.
func afterCollections(do func()) {
	var next func(*[1]*byte)
	next = func(*[1]*byte) {
		do()
		runtime.SetFinalizer(new([1]*byte), next)
	}
	next(nil)
}
