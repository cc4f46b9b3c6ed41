// Package runner is the loop that carries one task through its attempts: claim, execute, decide, record, wait. It
// reaches the world through its Executor, Journal and Observer.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Call is one execution of a task.
type Call struct {
	Number   int                       // of the attempt, from 1
	Signals  <-chan os.Signal          // to be passed on
	Starting func(process string)      // keeps it for the first moments, until Started is called
	Started  func(process string) bool // keeps with the attempt what a resume needs; false: another try may help
}

// Executor runs one attempt at a time.
type Executor interface {
	// Execute runs one attempt. It forwards the signals that arrive meanwhile, stops the attempt when the context ends,
	// and returns every failure as an Outcome. It may call Starting as soon as a process runs, and Started, from any
	// goroutine, before it returns; what the last call says stays with the attempt.
	Execute(ctx context.Context, t *task.Task, c Call) task.Outcome
	// Flush is called when the decision about the latest attempt is known. It writes the output that was held back, or
	// drops it. Where a signal asks to stop meanwhile, it returns that signal and task.ErrStopped.
	Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error)
	// HoldsOutput reports whether Flush may write anything. Writing takes as long as the reader does, and a signal may
	// stop it.
	HoldsOutput(t *task.Task) bool
}

// Journal stores tasks and attempts. Every write is guarded: task.ErrNotOwner says that another process has the task
// now.
type Journal interface {
	// Claim stores the intent of the task's next attempt before it starts. The first claim stores the task itself and
	// gives it its number and phase. It returns task.ErrStopped where a signal asked to stop while it waited.
	Claim(ctx context.Context, t *task.Task, now time.Time) error
	// NoteProcess adds to the attempt in flight how its processes can be found again. NoteStart does so for the next
	// moments, until other tasks begin, and hardly takes time. NoteProcess returns false where another try may help.
	NoteProcess(ctx context.Context, t *task.Task, process string) bool
	NoteStart(t *task.Task, process string)
	// Record writes an attempt's outcome and the decision, with the task as it stands after them.
	Record(ctx context.Context, t *task.Task, a task.Attempt) error
	// RecordAndClaim does what Record and then Claim do, in one transaction, which saves one of two commits. If it
	// fails, or would have to wait long, it has written nothing.
	RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error
	// Unclaim takes back a claim whose attempt did not begin because of a signal. The task is PENDING then, as decided.
	Unclaim(ctx context.Context, t *task.Task)
	// Settle writes a decision without an attempt, made while the task was Pending.
	Settle(ctx context.Context, t *task.Task, d task.Decision) error
	// NextAttempt returns when the waiting task is due: another process may have made that earlier.
	NextAttempt(ctx context.Context, t *task.Task) time.Time
	// CancelNested cancels the unfinished tasks of nested retry processes that have ended, made before a time; zero is
	// any. The attempts after those have made new ones.
	CancelNested(ctx context.Context, t *task.Task, before time.Time)
}

// Observer is told how a task proceeds, to show it to people.
type Observer interface {
	Started(t *task.Task)
	Ended(t *task.Task, a task.Attempt)
	// Waiting is called while the task waits. It returns the time after which it wants to be called again.
	Waiting(t *task.Task, left time.Duration) time.Duration
	Finished(t *task.Task, r Result)
	// Warn is told of an error that does not end the run; it may be a Loss.
	Warn(err error)
}

// Loss is a warning that -q shows too: output or input is lost, or a command may run again, or beside another one,
// where the journal does not know of it.
type Loss struct {
	Err error
	New bool // other lines do not say so either
}

func (l Loss) Error() string { return l.Err.Error() }

// The causes with which an attempt's context ends.
var (
	ErrTimeout   = errors.New("timed out")
	ErrBudgetEnd = errors.New("stopped at the end of the budget")
)

// Runner carries a task through its attempts.
type Runner struct {
	Journal   Journal
	Executor  Executor
	Observer  Observer
	Hooks     Hooks        // nil: a task's hooks are not run
	Survivors Survivors    // nil: nobody looks for processes that an interrupted attempt left running
	Earlier   []*task.Task // other runs of the task's name, of which something may be left as well
	Signals   <-chan os.Signal
	Terminal  bool           // this process has one: HUP says that it was closed
	LateStop  func()         // waits for a signal to stop that has ended a command, too; nil: there is none
	Random    func() float64 // uniform in [0, 1)
	Slots     chan struct{}  // its capacity limits the attempts of all runners that share it; nil for no limit
	Unsettled func() bool    // whether the next attempt's input may turn out to be a part of it in a moment; nil: never

	hadSlot, inLine bool // whether it has got a slot, and whether a signal ended its wait for the first one
	doubts          int  // how often it has looked whether the next attempt's input is settled
}

// Run attempts the task until a decision ends it or a signal stops the run. It fails only where the journal does.
func (r *Runner) Run(ctx context.Context, t *task.Task) (Result, error) {
	if t.AttemptCount == t.RequeuedAfter {
		if sig := r.hookWithinBudget(ctx, t, t.Options.OnStart); sig != nil {
			return r.Stop(ctx, t, sig)
		}
	}
	for {
		if sig := r.wait(ctx, t); sig != nil || ctx.Err() != nil {
			return r.Stop(ctx, t, sig)
		}
		result, err := r.attempt(ctx, t)
		switch {
		case errors.Is(err, errInDoubt):
			continue
		case err != nil:
			return r.endWithoutAttempt(ctx, t, err)
		case t.Status.Finished(), result.Outcome.Stop != nil, result.Decision.Reason == task.ReasonDeferred:
			return r.Finish(ctx, t, result), nil
		case result.Signal != nil: // it came after the decision
			return r.Stop(ctx, t, result.Signal)
		}
		if sig := r.hookWithinBudget(ctx, t, t.Options.OnRetry); sig != nil {
			return r.Stop(ctx, t, sig)
		}
	}
}

// Attempt carries a task through one attempt, which a worker has claimed. Afterwards the task waits for its next one,
// or has ended.
func (r *Runner) Attempt(ctx context.Context, t *task.Task) (Result, error) {
	sig := r.pendingStop()
	if sig == nil && !hasBegun(t) {
		sig = r.hookWithinBudget(ctx, t, t.Options.OnStart)
	}
	if sig != nil {
		return r.withoutBegin(ctx, t, task.Stopped(sig), "stopped before it began")
	}
	t.ClaimedAhead = true
	result, err := r.attempt(ctx, t)
	switch {
	case errors.Is(err, ErrBudgetEnd):
		ended := task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}
		return r.withoutBegin(ctx, t, ended, "the budget ended before it began")
	case err != nil:
		return Result{}, err
	case t.Status.Finished():
		return r.Finish(ctx, t, result), nil
	case result.Signal == nil && result.Decision.Verdict == task.VerdictRetry:
		r.hookWithinBudget(ctx, t, t.Options.OnRetry)
	}
	return result, nil
}

// withoutBegin ends a claimed attempt that did not begin.
func (r *Runner) withoutBegin(ctx context.Context, t *task.Task, d task.Decision, why string) (Result, error) {
	t.BeginAttempt()
	now := time.Now()
	a := task.Attempt{
		Number: t.AttemptCount, StartedAt: now, Decision: d, Outcome: task.Outcome{Exit: task.ExitInternal, Message: why},
	}
	t.ApplyDecision(a, now)
	if err := r.Journal.Record(context.WithoutCancel(ctx), t, a); err != nil && !errors.Is(err, task.ErrNotOwner) {
		return Result{}, err
	}
	r.Observer.Ended(t, a)
	result := Result{Decision: d, Outcome: a.Outcome}
	if t.Status.Finished() {
		return r.Finish(ctx, t, result), nil
	}
	return result, nil
}

// attempt claims the task's next attempt, executes it, records its outcome with the decision, and writes its output.
func (r *Runner) attempt(ctx context.Context, t *task.Task) (Result, error) {
	freeSlot := func() {}
	if r.Slots != nil {
		freeSlot = sync.OnceFunc(func() { <-r.Slots }) // which wait has taken
		defer time.AfterFunc(longestSlot, freeSlot).Stop()
	}
	defer freeSlot()
	if !hasTime(t) {
		return Result{}, ErrBudgetEnd // hooks, survivors or other tasks used up the rest
	}
	if !t.ClaimedAhead {
		if err := r.Journal.Claim(ctx, t, time.Now()); err != nil {
			return Result{}, err
		}
	}
	if r.inDoubt(t) { // since a signal came while the claim waited for other processes
		t.ClaimedAhead = true
		return Result{}, errInDoubt
	}
	r.doubts = 0
	t.BeginAttempt()
	r.Observer.Started(t)
	before := t.History
	a := r.execute(ctx, t)
	first := r.deliversFirst(t, a)
	if !first {
		if err := r.record(ctx, t, &a); err != nil {
			return Result{}, err
		}
	}
	freeSlot() // whoever reads the output may take long
	sig, lost := r.flush(t, a)
	switch {
	case first:
		r.undeliver(t, before, &a, sig, lost)
		if err := r.record(ctx, t, &a); err != nil {
			return Result{}, err
		}
	case tellsLost(t, a, lost):
		r.Observer.Warn(Loss{Err: lost, New: true})
	}
	r.Observer.Ended(t, a)
	return Result{Decision: a.Decision, Outcome: a.Outcome, Signal: sig, OutputErr: lost}, nil
}

// record writes the outcome with the decision. Another process may have cancelled the task meanwhile.
func (r *Runner) record(ctx context.Context, t *task.Task, a *task.Attempt) error {
	t.ClaimedAhead = r.followsAtOnce(ctx, t, *a) && r.Journal.RecordAndClaim(ctx, t, *a, time.Now()) == nil
	if t.ClaimedAhead {
		return nil
	}
	stored, last := *a, t.Last
	// A command that was stopped, and has ended with a status of its own, may have left something all the same.
	if sig, ok := a.Outcome.Stop.(syscall.Signal); ok && a.Decision.Reason == task.ReasonStdin && a.Outcome.Signal == "" {
		stored.Outcome.Signal = stopSignal(sig)
	}
	t.Last.Outcome.Signal = stored.Outcome.Signal // where this cannot be written, t is kept as it is
	err := r.Journal.Record(context.WithoutCancel(ctx), t, stored)
	t.Last = last
	if errors.Is(err, task.ErrNotOwner) {
		a.Decision = task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}
		t.Move(a.Decision, time.Now())
		err = nil
	}
	r.cancelNested(ctx, t, *a)
	return err
}

// execute runs the claimed attempt and decides what follows.
func (r *Runner) execute(ctx context.Context, t *task.Task) task.Attempt {
	a := task.Attempt{Number: t.AttemptCount, StartedAt: time.Now()}
	limit, cancel := withTimeout(ctx, t.Policy.Timeout)
	defer cancel()
	limit, release := withBudget(limit, t)
	defer release()
	a.Outcome = r.Executor.Execute(limit, t, Call{
		Number: a.Number, Signals: r.Signals,
		Starting: func(process string) { r.Journal.NoteStart(t, process) },
		Started:  func(process string) bool { return r.Journal.NoteProcess(ctx, t, process) },
	})
	now := time.Now()
	a.Decision = task.Decide(&t.Policy, t.History, a.Outcome, now, r.Random)
	if ends := a.Decision.Verdict; ends == task.VerdictFailed || ends == task.VerdictExhausted {
		if a.Outcome.Stop = r.lateStop(t, a.Outcome); a.Outcome.Stop != nil {
			a.Decision = task.Decide(&t.Policy, t.History, a.Outcome, now, r.Random)
		}
	}
	a.Decision = r.hungUp(a.Decision, a.Outcome.Stop)
	a.Outcome = a.Outcome.Masked(t.Options.Mask).TrimTails()
	t.ApplyDecision(a, now)
	if a.Decision.ConditionErr != nil {
		r.Observer.Warn(a.Decision.ConditionErr)
	}
	return a
}

// withTimeout returns a context that ends after the timeout; 0 is none.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, timeoutError(timeout))
}

// timeoutError is an ErrTimeout after so long. Most attempts make one that nobody reads.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("%v after %s", ErrTimeout, text.FormatDuration(time.Duration(e)))
}

func (e timeoutError) Unwrap() error { return ErrTimeout }

// Stop ends a run between two attempts.
func (r *Runner) Stop(ctx context.Context, t *task.Task, sig os.Signal) (Result, error) {
	d := task.Stopped(sig)
	if r.inLine { // who ends a resume of many does not give up those that have not had their turn
		d = task.Stopped(syscall.SIGTERM)
	}
	return r.settle(ctx, t, r.hungUp(d, sig), sig)
}

// settle ends a run with a decision without an attempt. A task that another process has cancelled meanwhile stays so.
func (r *Runner) settle(ctx context.Context, t *task.Task, d task.Decision, sig os.Signal) (Result, error) {
	if t.ClaimedAhead {
		r.Journal.Unclaim(context.WithoutCancel(ctx), t)
		t.ClaimedAhead = false
	}
	now := time.Now()
	due, reason := t.NextAttemptAt, t.Reason
	t.Move(d, now)
	if d.Verdict == task.VerdictInterrupted {
		t.NextAttemptAt = due
		if reason == task.ReasonDeferred {
			t.Reason = reason
		}
	}
	if err := r.Journal.Settle(context.WithoutCancel(ctx), t, d); errors.Is(err, task.ErrNotOwner) {
		d = task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}
		t.Move(d, now)
	}
	r.cancelNested(ctx, t, t.Last)
	result := Result{Decision: d, Outcome: t.Last.Outcome, Signal: sig}
	if t.Status == task.Exhausted {
		r.flushBefore(t, &result)
	}
	return r.Finish(ctx, t, result), nil
}

// endWithoutAttempt ends a run whose next attempt could not be claimed.
func (r *Runner) endWithoutAttempt(ctx context.Context, t *task.Task, err error) (Result, error) {
	switch {
	case errors.Is(err, task.ErrStopped): // while it waited for others' writes
		sig := <-r.Signals
		for !task.Stops(sig) {
			sig = <-r.Signals
		}
		return r.Stop(ctx, t, sig)
	case errors.Is(err, ErrBudgetEnd):
		return r.Expire(ctx, t)
	case !errors.Is(err, task.ErrNotOwner):
		return Result{}, err
	}
	d := task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}
	t.Move(d, time.Now())
	return r.Finish(ctx, t, Result{Decision: d, Outcome: t.Last.Outcome}), nil
}

// Finish reports the end of the run and runs the last hook: on-retry where a later run goes on, none where a signal
// ended the run. The last hook has its time whatever the budget says, since it is the alert.
func (r *Runner) Finish(ctx context.Context, t *task.Task, result Result) Result {
	before := len(r.Signals)
	r.Observer.Finished(t, result)
	if len(r.Signals) > before && result.Signal == nil { // nobody may read what it writes
		result.LateSignal = r.pendingStop()
	}
	switch {
	case result.Signal != nil, result.LateSignal != nil:
	case result.Decision.Reason == task.ReasonDeferred: // another run makes the next attempt
		result.LateSignal = r.hookWithinBudget(ctx, t, t.Options.OnRetry)
	case result.Lost(): // the journal has a success, but nobody has it
		failed := *t
		failed.Status = task.Failed
		result.LateSignal = r.hook(ctx, &failed, t.Options.OnFailure)
	default:
		result.LateSignal = r.hook(ctx, t, t.Options.FinalHook(t.Status))
	}
	return result
}

// followsAtOnce reports whether the next attempt begins at once: without a delay, without a wait for a slot or for
// output, and without anything that may end the run before.
func (r *Runner) followsAtOnce(ctx context.Context, t *task.Task, a task.Attempt) bool {
	switch {
	case a.Decision.Verdict != task.VerdictRetry, untilDue(t.NextAttemptAt, time.Now()) > 0:
		return false
	case a.Outcome.Error == task.ErrorTimeout: // its nested tasks are cancelled first
		return false
	case ctx.Err() != nil, len(r.Signals) > 0:
		return false
	case r.Slots != nil, r.inDoubt(t), r.Hooks != nil && t.Options.OnRetry != "":
		return false
	case t.Unsafe(): // its claim has to be on the disk
		return false
	}
	return !r.Executor.HoldsOutput(t)
}
