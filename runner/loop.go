package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/10f93571/retry/backoff"
)

// Executor runs one attempt. It passes on the signals that arrive meanwhile, stops the attempt when the context ends, and
// reports every failure as an Outcome.
type Executor interface {
	Execute(ctx context.Context, t *Task, number int, signals <-chan os.Signal) Outcome
}

// Journal remembers. Each write is guarded: ErrTaken says that the task is no longer the caller's.
type Journal interface {
	// Claim makes the intent of the task's next attempt durable before it starts. The first claim makes the task itself, and
	// gives it its number and phase.
	Claim(ctx context.Context, t *Task, now time.Time) error
	// Record writes an attempt's outcome and the decision, with the task as it stands after them.
	Record(ctx context.Context, t *Task, a Attempt) error
	// Settle writes a decision that no attempt led to, taken while the task was Pending.
	Settle(ctx context.Context, t *Task, d Decision) error
}

// Observer is told of a task's progress, so that people can be.
type Observer interface {
	Started(t *Task)
	Ended(t *Task, a Attempt)
	// Waiting is called as often as it asks for: it returns the time until it wants to be called again.
	Waiting(t *Task, left time.Duration) time.Duration
	Finished(t *Task, r Result)
}

// The causes of the end of an attempt's context.
var (
	ErrTimeout   = errors.New("timed out")
	ErrBudgetEnd = errors.New("stopped at the end of the budget")
)

// Runner carries a task through its attempts.
type Runner struct {
	Journal  Journal
	Executor Executor
	Observer Observer
	Signals  <-chan os.Signal
	Random   func() float64 // uniform in [0, 1)
	Slots    chan struct{}  // its capacity bounds how many runners that share it attempt at once; nil for no bound
}

// Run attempts the task until a decision ends it or a signal stops the run. It fails only where the journal does.
func (r *Runner) Run(ctx context.Context, t *Task) (Result, error) {
	for {
		if sig := r.wait(ctx, t); sig != nil || ctx.Err() != nil {
			return r.stop(ctx, t, sig)
		}
		a, err := r.attempt(ctx, t)
		if err != nil {
			return r.refused(t, err)
		}
		r.Observer.Ended(t, a)
		if t.Status.Finished() || a.Outcome.Stop != nil {
			return r.finish(t, Result{Decision: a.Decision, Outcome: a.Outcome, Signal: a.Outcome.Stop}), nil
		}
	}
}

// attempt claims the task's next attempt, executes it, and records what it led to.
func (r *Runner) attempt(ctx context.Context, t *Task) (Attempt, error) {
	defer r.leave()
	if err := r.Journal.Claim(ctx, t, time.Now()); err != nil {
		return Attempt{}, err
	}
	t.claimed()
	r.Observer.Started(t)
	a := r.execute(ctx, t)
	err := r.Journal.Record(context.WithoutCancel(ctx), t, a)
	if errors.Is(err, ErrTaken) {
		a.Decision = Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
		t.Move(a.Decision, time.Now())
		err = nil
	}
	return a, err
}

// execute runs the claimed attempt and decides what follows.
func (r *Runner) execute(ctx context.Context, t *Task) Attempt {
	a := Attempt{Number: t.AttemptCount, StartedAt: time.Now()}
	ctx, cancel := limited(ctx, t, a.StartedAt)
	defer cancel()
	a.Outcome = r.Executor.Execute(ctx, t, a.Number, r.Signals)
	now := time.Now()
	a.Decision = Decide(&t.Policy, t.History, a.Outcome, now, r.Random)
	t.Decided(a, now)
	return a
}

// limited returns a context that ends with the attempt's timeout or the task's budget, whichever comes first.
func limited(ctx context.Context, t *Task, start time.Time) (context.Context, context.CancelFunc) {
	end, cause := time.Time{}, error(nil)
	if t.Policy.Timeout > 0 {
		end, cause = start.Add(t.Policy.Timeout), fmt.Errorf("%w after %s", ErrTimeout, backoff.FormatDuration(t.Policy.Timeout))
	}
	if deadline, ok := t.Deadline(); ok && (end.IsZero() || deadline.Before(end)) {
		end, cause = deadline, ErrBudgetEnd
	}
	if end.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, end, cause)
}

// stop ends a run between two attempts. Whoever cancelled the task meanwhile has the last word.
func (r *Runner) stop(ctx context.Context, t *Task, sig os.Signal) (Result, error) {
	now := time.Now()
	d := stopped(sig)
	due := t.NextAttemptAt
	t.Move(d, now)
	if d.Verdict == VerdictInterrupted {
		t.NextAttemptAt = due
	}
	if err := r.Journal.Settle(context.WithoutCancel(ctx), t, d); errors.Is(err, ErrTaken) {
		d = Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
		t.Move(d, now)
	}
	return r.finish(t, Result{Decision: d, Outcome: t.Last.Outcome, Signal: sig}), nil
}

func (r *Runner) refused(t *Task, err error) (Result, error) {
	if !errors.Is(err, ErrTaken) {
		return Result{}, err
	}
	d := Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
	t.Move(d, time.Now())
	return r.finish(t, Result{Decision: d, Outcome: t.Last.Outcome}), nil
}

func (r *Runner) finish(t *Task, result Result) Result {
	r.Observer.Finished(t, result)
	return result
}
