package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// settle writes an outcome. A store that cannot be written is asked again and again: what was done must not be done
// once more.
func (w *Worker) settle(ctx context.Context, t *task.Task, a task.Attempt) (err error) {
	follows, unfollowed := w.followUp(t)
	kept := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err = w.Queue.Settle(ctx, t, a, follows)
		if e, written := errors.AsType[*state.UnfollowedError](err); written {
			unfollowed, err = e, nil
		}
		if err == nil || errors.Is(err, task.ErrNotOwner) {
			break
		}
		w.warn(fmt.Errorf("write the outcome of attempt %d of task %s: %w", a.Number, t.ID, err))
		if !kept && isToKeep(t, a, follows, err) { // this process may be killed while it tries again
			kept = w.Queue.KeepEnd(t) == nil
		}
		if errors.Is(err, state.ErrCorrupt) || !w.sleep(ctx, pause) {
			break
		}
	}
	if err != nil && !errors.Is(err, task.ErrNotOwner) {
		err = w.endKept(t, a, kept, err)
	}
	if err == nil {
		if t.Status.Finished() && t.Status != task.Succeeded {
			w.failed.Add(1)
		}
		if unfollowed != nil {
			w.warn(unfollowed)
			w.Queue.TellUnfollowed(t)
		}
		w.observe(func(o Observer) { o.Ended(t, a) })
	}
	return err
}

// isToKeep reports whether the end of an attempt is kept beside a store that cannot be written. Settle alone makes what
// follows an end: such a task runs once more. Of others, who rescues the task decides the same.
func isToKeep(t *task.Task, a task.Attempt, follows *task.Task, why error) bool {
	return isEnd(t, a) && follows == nil && !errors.Is(why, state.ErrCorrupt)
}

func isEnd(t *task.Task, a task.Attempt) bool {
	return t.Status.Finished() && a.Number > 0 && !a.Outcome.IsCrash()
}

// endKept says what became of the end of an attempt that could not be settled. It returns nil where that is kept, and a
// Loss where it is not.
func (w *Worker) endKept(t *task.Task, a task.Attempt, kept bool, why error) error {
	switch {
	case kept:
		w.warn(fmt.Errorf("the end of task %s is kept beside the journal, for the next worker to write it there: %w",
			t.ID, why))
		return nil
	case !isEnd(t, a):
		return why
	}
	return runner.Loss{Err: fmt.Errorf("its end is not in the journal, and it may run again: %w", why), New: true}
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// sleep waits, and reports whether it is worth going on afterwards: not where the worker ends.
func (w *Worker) sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
	case <-w.gaveUp:
	}
	return false
}

// followUp makes what follows a task that is dead; nil for most.
func (w *Worker) followUp(t *task.Task) (*task.Task, *state.UnfollowedError) {
	if t.Options.Exhausted == "" || t.Status != task.Exhausted && t.Status != task.Failed || w.FollowUp == nil {
		return nil, nil
	}
	follows, err := w.FollowUp(t)
	if err != nil {
		return nil, &state.UnfollowedError{ID: t.ID, Err: err}
	}
	return follows, nil
}

// carried is an attempt that runs.
type carried struct {
	task    *task.Task // changes while it runs, but not its Target
	attempt int
	signals chan os.Signal
	end     atomic.Pointer[context.CancelCauseFunc] // of a request that is under way

	cancelled bool         // it was told so
	executed  bool         // its outcome is known, and a hook may run
	ended     bool         // its task has ended with that
	next      []state.Item // what waits for its end
}

// job is an attempt for one of the worker's goroutines.
type job struct {
	*carried
	due  time.Time
	slot slot
	free bool // its slot is free again
	hook bool // other workers wait for the one after it
}

// free gives the slot of an attempt back, once.
func (w *Worker) free(j *job) {
	if !j.free {
		j.free = true
		w.freed <- j.slot
	}
}

// stop tells the attempt to stop. A command that is told twice is killed.
func (c *carried) stop() {
	select {
	case c.signals <- syscall.SIGTERM:
	default: // it was told twice, and has not listened yet
	}
	if end := c.end.Load(); end != nil {
		(*end)(&runner.StopError{Signal: syscall.SIGTERM})
	}
}

func (c *carried) isRequest() bool { return c.task.Target != nil }

// isSent reports whether it is a request that may be under way.
func (c *carried) isSent() bool { return c.isRequest() && !c.executed }

// beginClaim and endClaim surround a claim, until its attempts have begun.
func (w *Worker) beginClaim() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.claims++
}

func (w *Worker) endClaim() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.claims--; w.claims == 0 {
		clear(w.early)
	}
}

// begin makes a claimed attempt known.
func (w *Worker) begin(t *task.Task) *carried {
	c := &carried{task: t, attempt: t.AttemptCount + 1, signals: make(chan os.Signal, 2)}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.running[t.Number] = c
	if w.stopping || w.early[t.Number] >= c.attempt {
		c.stop()
	}
	return c
}

// awaits reports whether a task waits for the end of what this worker still carries: its hook, that of another task of
// its name, or an attempt whose lease was lost, which is stopped. The dispatcher gets the item again then.
func (w *Worker) awaits(t *task.Task, item state.Item) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	before := w.running[t.Number]
	if before != nil && !before.executed {
		before.stop()
	}
	if before == nil && t.Name != "" {
		for _, other := range w.running {
			if other.task.Name == t.Name {
				before = other
			}
		}
	}
	if before != nil {
		before.next = append(before.next, item)
	}
	return before != nil
}

// carries reports whether anything runs: the hooks of a request have no slot.
func (w *Worker) carries() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.running) > 0
}

// end has what waits for the end of an attempt, and of its hook, claimed.
func (w *Worker) end(j *job) {
	if j.hook {
		_ = w.Queue.EndHook(j.task.Number)
	}
	w.mutex.Lock()
	if w.running[j.task.Number] == j.carried { // the end of a budget without a hook may have taken its place
		delete(w.running, j.task.Number)
	}
	w.mutex.Unlock()
	if len(j.next) > 0 {
		w.answers <- func() {
			for _, item := range j.next {
				w.plan.push(item, time.Now())
			}
		}
	}
}

// stoppable is an Executor of a worker that may be stopped together with its commands, as a container runtime and a
// service manager do. What such a signal has ended is cut off, and no failure. So is a command that fails soon
// after it, or that leaves a part of its group running: a script may catch the signal, and what it runs ignore it.
type stoppable struct {
	runner.Executor
	worker *Worker
	job    *job
}

// Execute implements runner.Executor. A request that is not safe to repeat is not sent where this process stood still
// since its claim: another worker may have it by now, or it was requeued.
func (s stoppable) Execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	if t.Unsafe() && (!s.worker.leased(ctx) || len(c.Signals) > 0) {
		return task.Outcome{Exit: task.ExitInternal, Message: "not sent: another worker may have it", Stop: syscall.SIGTERM}
	}
	var o task.Outcome
	if s.job.isRequest() {
		o = s.send(ctx, t, c)
	} else {
		o = s.Executor.Execute(ctx, t, c)
	}
	if o.Stop != nil || s.worker.told.Load() == nil {
		return o
	}
	stopped := task.Stops(syscall.Signal(o.Exit - task.ExitSignalBase))
	if stopped || o.GroupLeft || t.Target == nil && o.Exit != 0 && o.Error == task.ErrorNone && s.worker.justTold(t) {
		o.Stop = syscall.SIGTERM // whatever ended the command: after INT, the task would be cancelled
	}
	return o
}

// send executes a request. What stops it also ends its context, so that nobody has to listen to signals meanwhile: a
// goroutine for that would cost each request several microseconds.
func (s stoppable) send(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.job.end.Store(&end)
	defer s.job.end.Store(nil)
	if len(c.Signals) > 0 { // it was told before
		end(&runner.StopError{Signal: syscall.SIGTERM})
	}
	o := s.Executor.Execute(ctx, t, c)
	if o.Stop != nil {
		select {
		case <-c.Signals: // which has stopped it, and stops no hook
		default: // the executor has listened
		}
	}
	return o
}

// justTold reports whether the worker was told to stop within the time that a command has to end after a signal.
func (w *Worker) justTold(t *task.Task) bool {
	told := w.told.Load()
	return told != nil && time.Since(*told) <= t.Policy.KillAfter
}

// lateStop waits a moment for a signal that stops the worker, too, after the command that has just failed.
func (w *Worker) lateStop(j *job) {
	if w.LateStop == nil {
		return
	}
	w.LateStop()
	if w.justTold(j.task) {
		j.stop()
	}
}

// leftPause is how long a task that waits for what it has left running is left alone at first, and leftMost at last:
// each look reads the processes of the machine.
const (
	leftPause = 250 * time.Millisecond
	leftMost  = 4 * time.Second
)

// held is a task that waits for what it has left running.
type held struct {
	inPlan bool // else its claim is under way
	pause  time.Duration
}

// hasLeft reports whether something of an earlier attempt may run, and notes what.
func (w *Worker) hasLeft(ctx context.Context, t *task.Task, left map[int64]error) bool {
	if w.Left != nil {
		left[t.Number] = w.Left(ctx, t)
	}
	return left[t.Number] != nil
}

// hold puts tasks off that were not claimed since something of an earlier attempt may still run. They are put off in
// memory alone: they use up no attempt, and another worker may see more. What was loaded twice is kept once.
func (w *Worker) hold(items []state.Item, left map[int64]error) {
	now := time.Now()
	for _, item := range items {
		reason := left[item.Number]
		if reason == nil {
			delete(w.held, item.Number)
			continue
		}
		h := w.held[item.Number]
		if h == nil {
			w.warn(reason)
			h = &held{pause: leftPause}
			w.held[item.Number] = h
		}
		if !h.inPlan {
			h.inPlan = true
			item.Due = now.Add(h.pause)
			h.pause = min(2*h.pause, leftMost)
			w.plan.push(item, now)
		}
	}
}

// carry executes a claimed attempt and settles it.
func (w *Worker) carry(ctx context.Context, j *job) {
	defer w.end(j)
	if ahead := time.Until(j.due); ahead > 0 { // more than claimAhead only where the clock was set back
		w.sleep(ctx, min(ahead, claimAhead))
	}
	t := j.task
	w.observe(func(o Observer) { o.Began(t, time.Since(j.due)) })
	j.slot.asked, j.slot.replied = true, true // unless Record knows better
	r, done := w.open(ctx, j)
	defer done()
	if t.Last.Outcome.IsCrash() { // or a resume would run beside this attempt what that one had nested
		r.Journal.CancelNested(ctx, t, time.Time{})
	}
	run := r.Attempt
	if t.Nonce == 0 { // its budget has ended while it waited
		run = r.Expire
	}
	if _, err := run(ctx, t); err != nil {
		w.warn(fmt.Errorf("task %s: %w", t.ID, err))
	}
}

// open prepares what runs an attempt and its hooks.
func (w *Worker) open(ctx context.Context, j *job) (r *runner.Runner, done func()) {
	e, err := w.Open(j.task)
	if err != nil {
		e = &Execution{Executor: unprepared{err}}
	}
	if e.Observer == nil {
		e.Observer = silent{w}
	}
	if e.Close == nil {
		e.Close = func() {}
	}
	return &runner.Runner{
		Journal: &journal{w, ctx, j}, Executor: stoppable{e.Executor, w, j}, Hooks: e.Hooks, Observer: e.Observer,
		Signals: j.signals, Random: w.Random, LateStop: func() { w.lateStop(j) },
	}, e.Close
}
