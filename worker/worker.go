// Package worker carries queued tasks: it claims what is due, has it executed, and settles the outcomes. Several
// workers share a store, in one process or in many.
package worker

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Config says what a worker works with.
type Config struct {
	Queue state.Queue
	Name  string                                 // for people: host and process id
	Open  func(t *task.Task) (*Execution, error) // prepares an attempt
	// Left returns an error while the next attempt has to wait for what an earlier one has left running, or where nobody
	// can see whether it has; nil: nothing is waited for.
	Left        func(ctx context.Context, t *task.Task) error
	FollowUp    func(t *task.Task) (*task.Task, error) // makes the task of Options.Exhausted; nil: none are made
	Ready       func()                                 // called once the worker is registered; may be nil
	Observer    Observer                               // may be nil
	Random      func() float64                         // uniform in [0, 1)
	Concurrency int                                    // attempts at once
	PerHost     int                                    // of them to one host
	Commands    int                                    // of them commands
	Visibility  time.Duration                          // how long a worker that does not renew keeps its attempts
	Grace       time.Duration                          // how long attempts may go on after Run was told to stop
	LateStop    func()                                 // as in runner.Runner; may be nil
	Drain       Drain
}

// Execution is what runs one attempt.
type Execution struct {
	Executor runner.Executor
	Hooks    runner.Hooks
	Observer runner.Observer // nil: only warnings are passed on
	Close    func()
}

// Observer is told what a worker does. Its methods are called by many goroutines.
type Observer interface {
	// Began tells how much later than it was due an attempt begins; Ended, how it ended; follows is nil for most.
	Began(t *task.Task, late time.Duration)
	Ended(t *task.Task, a task.Attempt)
	Warn(err error)
}

// Drain says when Run ends by itself.
type Drain int

// The kinds of drain.
const (
	DrainNever Drain = iota
	DrainDue         // when no queued task is due
	DrainAll         // when no queued task is unfinished
)

// Defaults of Config.
const (
	DefaultConcurrency = 64
	DefaultPerHost     = 16
	DefaultVisibility  = 30 * time.Second
	DefaultGrace       = 25 * time.Second
)

// Worker is one worker of a process.
type Worker struct {
	Config

	number     int64
	plan       *schedule
	slots      int            // that are free
	claiming   int            // claims under way
	loading    bool           // the queue is read
	missed     []state.Change // that came during the read
	generation int            // how often everything was loaded anew
	anew       time.Time      // when it was last
	freed      chan slot
	jobs       chan *job // for goroutines that have nothing to do
	answers    chan func()
	again      time.Time // a failed store is not asked before
	held       map[int64]*held
	told       atomic.Pointer[time.Time] // when to stop; nil: not yet
	renewed    atomic.Int64
	failing    atomic.Pointer[failure] // nil: the latest claim has succeeded
	failed     atomic.Int64            // tasks that ended without success
	settling   atomic.Int64            // attempts that have given their slot back, and whose outcome is not written yet

	mutex    sync.Mutex
	running  map[int64]*carried
	claims   int           // under way
	early    map[int64]int // attempts of tasks that were cancelled during these, and may be what they claim
	stopping bool          // what was just claimed does not begin
	group    sync.WaitGroup
	gaveUp   chan struct{} // closed when outcomes are not worth waiting for any more
}

// slot is what an attempt gives back.
type slot struct {
	lane           state.Lane
	class          int
	asked, replied bool
}

// New checks nothing: the zero values of Config stand for the defaults.
func New(c Config) *Worker {
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.PerHost = cmp.Or(c.PerHost, DefaultPerHost)
	c.Visibility = cmp.Or(c.Visibility, DefaultVisibility)
	w := &Worker{
		Config: c, slots: c.Concurrency, plan: newSchedule(c.PerHost, c.Concurrency),
		freed: make(chan slot, c.Concurrency), jobs: make(chan *job), answers: make(chan func(), 16),
		running: map[int64]*carried{}, held: map[int64]*held{},
		early: map[int64]int{}, gaveUp: make(chan struct{}),
	}
	w.setTargets(nil)
	return w
}

// Number is the worker's in the store, once Run has begun.
func (w *Worker) Number() int64 { return w.number }

// Running is how many attempts run.
func (w *Worker) Running() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return max(0, len(w.running)-int(w.settling.Load()))
}

// Failed is how many tasks have ended without success in this worker.
func (w *Worker) Failed() int { return int(w.failed.Load()) }

// Alive reports whether the worker has renewed its lease in time, and can read and claim what is due: one that could
// not for stuckAfter does nothing.
func (w *Worker) Alive() bool {
	if failed := w.failing.Load(); failed != nil && failed.last.Sub(failed.first) > stuckAfter &&
		time.Since(failed.last) < stuckAfter {
		return false
	}
	return time.Since(time.Unix(0, w.renewed.Load())) < w.Visibility
}

const stuckAfter = 5 * storePause

// failure is a number of claims, or of reads of what is due, that have failed one after another.
type failure struct{ first, last time.Time }

// claimed notes whether a claim, or the read before it, has failed.
func (w *Worker) claimed(err error) {
	now := time.Now()
	switch before := w.failing.Load(); {
	case err == nil:
		w.failing.Store(nil)
	case before == nil:
		w.failing.Store(&failure{now, now})
	default:
		w.failing.Store(&failure{before.first, now})
	}
}

// Run carries tasks until stop ends, or until the queue is drained. After stop it claims no more and waits for the
// attempts that run, for Grace at most and not longer than until kill ends; then it stops them.
func (w *Worker) Run(stop, kill context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
	defer cancel()
	context.AfterFunc(stop, func() { w.told.Store(new(time.Now())) })
	changes := w.Queue.Changes(ctx)
	var err error
	w.number, err = w.Queue.Register(ctx, state.Worker{Name: w.Name, Concurrency: w.Concurrency, Visibility: w.Visibility})
	if err != nil {
		return fmt.Errorf("register the worker: %w", err)
	}
	w.renewed.Store(time.Now().UnixNano())
	if w.Ready != nil {
		w.Ready()
	}
	var helpers sync.WaitGroup
	helpers.Go(func() { w.keepLease(ctx) })
	helpers.Go(func() { w.rescue(ctx) })
	w.dispatch(stop, ctx, changes)
	w.finish(kill, changes)
	cancel()
	helpers.Wait()
	return w.Queue.Unregister(context.WithoutCancel(ctx), w.number)
}

// finish waits for the attempts that run, and stops them when their time is over. An outcome that cannot be written
// even then is left to who rescues this worker's tasks.
func (w *Worker) finish(kill context.Context, changes <-chan state.Change) {
	w.mutex.Lock()
	w.stopping = true
	w.mutex.Unlock()
	ended := make(chan struct{})
	go func() { w.group.Wait(); close(ended) }()
	over := time.After(w.Grace)
	for told := 0; ; {
		select {
		case <-ended:
			return
		case <-w.freed:
			continue
		case answer := <-w.answers:
			answer()
			continue
		case c, open := <-changes:
			if changes = onlyOpen(changes, open); c.Status == task.Cancelled {
				w.cancelled(c)
			}
			continue
		case <-over:
		case <-kill.Done():
			kill = context.Background()
		}
		if told++; told == 2 {
			close(w.gaveUp)
		}
		over = time.After(secondStop)
		w.stopAll(func(*carried) bool { return true })
	}
}

// secondStop is when an attempt that was told to stop is told again, which kills a command.
const secondStop = 5 * time.Second

// onlyOpen returns nil for a channel that is closed, from which nothing ever comes.
func onlyOpen[T any](c <-chan T, open bool) <-chan T {
	if open {
		return c
	}
	return nil
}

// stopAll tells attempts to stop. Those that are cut off count for nothing, and wait for another worker.
func (w *Worker) stopAll(which func(*carried) bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, c := range w.running {
		if which(c) {
			c.stop()
		}
	}
}

func (w *Worker) observe(tell func(Observer)) {
	if w.Observer != nil {
		tell(w.Observer)
	}
}

func (w *Worker) warn(err error) { w.observe(func(o Observer) { o.Warn(err) }) }
