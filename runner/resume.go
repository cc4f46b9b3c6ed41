package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/task"
)

// Resume continues a task whose owner died. An attempt that was in flight has no outcome; the budget went on meanwhile.
func (r *Runner) Resume(ctx context.Context, t *task.Task) (Result, error) {
	if err := r.recover(ctx, t, time.Now()); err != nil {
		result, err := r.endWithoutAttempt(ctx, t, err)
		r.stopLeft(t)
		return result, err
	}
	if t.Status.Finished() {
		r.Journal.CancelNested(ctx, t, time.Time{})
		return r.Finish(ctx, t, Result{Decision: t.EndDecision(), Outcome: t.Last.Outcome}), nil
	}
	sig, err := r.AwaitLeft(ctx, t)
	switch {
	case errors.Is(err, ErrBudgetEnd):
		result, err := r.Expire(ctx, t)
		result.LeftRuns = true
		return result, err
	case err != nil:
		return Result{}, err
	case sig != nil || ctx.Err() != nil:
		result, err := r.Stop(ctx, t, sig)
		r.stopLeft(t)
		return result, err
	}
	r.Journal.CancelNested(ctx, t, time.Time{})
	if t.AttemptCount == 0 { // it waited like this when its owner died
		t.BeginNow(time.Now())
	}
	return r.Run(ctx, t)
}

// stopLeft sends TERM to what the last attempt has left of a task, where that was cancelled: the process that has
// cancelled it may have seen this one alone.
func (r *Runner) stopLeft(t *task.Task) {
	if t.Status == task.Cancelled && r.Survivors != nil && t.Last.CutOff() {
		r.Survivors.Signal(t, t.Last, syscall.SIGTERM)
	}
}

// AwaitLeft waits for what was left by an earlier attempt of the task, and of the other runs of its name. It returns
// the signal that ended the wait, or nil, and ErrBudgetEnd where the budget has.
func (r *Runner) AwaitLeft(ctx context.Context, t *task.Task) (sig os.Signal, err error) {
	limited := ctx
	if left := t.Policy.Budget; left > 0 {
		if t.Policy.Deadline || t.AttemptCount > 0 { // else it begins after the wait, and this is as long at most
			left = t.Policy.Left(t.History.Began, time.Now())
		}
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, left, ErrBudgetEnd)
		defer cancel()
	}
	for _, earlier := range r.Earlier {
		if sig, err = r.AwaitSurvivors(limited, earlier); sig != nil || err != nil || ctx.Err() != nil {
			return sig, err
		}
	}
	return r.AwaitSurvivors(limited, t)
}

// cancelNested ends what nested retry processes have left: all where they were stopped with their attempt, or the task
// was cancelled. At another end of the task, a resume would run what the last attempt has done again.
func (r *Runner) cancelNested(ctx context.Context, t *task.Task, last task.Attempt) {
	switch ctx := context.WithoutCancel(ctx); {
	case last.Outcome.Error == task.ErrorTimeout, last.Outcome.Stop != nil, t.Status == task.Cancelled,
		last.Outcome.IsCrash() && t.Status.Finished():
		r.Journal.CancelNested(ctx, t, time.Time{})
	case t.Status.Finished() && t.AttemptCount > 1:
		r.Journal.CancelNested(ctx, t, last.StartedAt)
	}
}

// recover writes what the dead owner could not: the end of the attempt in flight. It ends the task where another
// attempt is useless.
func (r *Runner) recover(ctx context.Context, t *task.Task, now time.Time) error {
	t.CatchUpWithClock(now)
	if t.Status == task.InFlight {
		a := t.Last
		a.Outcome = t.Crashed()
		a.Decision = task.Decide(&t.Policy, t.History, a.Outcome, now, r.Random)
		t.ApplyDecision(a, now)
		if err := r.Journal.Record(ctx, t, a); err != nil || t.Status.Finished() {
			return err
		}
	}
	if t.AttemptCount == 0 {
		return nil
	}
	d := task.DecideResume(&t.Policy, t.History, t.NextAttemptAt, now)
	if d.Verdict != task.VerdictExhausted {
		return nil
	}
	t.Move(d, now)
	return r.Journal.Settle(ctx, t, d)
}

// Expire ends a task that waited until no attempt was worth it any more: its budget has ended, or its key is too old.
func (r *Runner) Expire(ctx context.Context, t *task.Task) (Result, error) {
	d := task.DecideResume(&t.Policy, t.History, t.NextAttemptAt, time.Now())
	if d.Verdict != task.VerdictExhausted { // the clock was set back since somebody saw that
		d = task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}
	}
	if t.AttemptCount == 0 {
		t.Last.Outcome = task.Outcome{Error: task.ErrorTimeout, Message: "the budget ended before it began"}
		if t.Policy.Deadline {
			t.Last.Outcome.Message = "the deadline passed before it began"
		}
	}
	return r.settle(ctx, t, d, nil)
}

// Survivors finds the processes that an attempt left running when its owner died or was stopped.
type Survivors interface {
	// Find describes the processes that are still alive; it returns "" where there are none, and an error where nobody
	// can see that from here.
	Find(t *task.Task, a task.Attempt) (string, error)
	// Signal sends them a signal; without an attempt, what FindUnrecorded describes.
	Signal(t *task.Task, a task.Attempt, sig os.Signal)
	// FindUnrecorded describes what runs of a hook that was cut off with retry, or of an attempt after the task's last
	// one, which began while the journal could not be written, or what a nested retry has left; "" is nothing. It
	// returns an error where nobody can see that from here.
	FindUnrecorded(t *task.Task) (string, error)
	// Unwanted reports whether to stop them (--kill-orphans) instead of waiting for their end.
	Unwanted() bool
}

// The pauses between two looks for survivors: the first one, and the longest after doubling.
const (
	firstLook   = 10 * time.Millisecond
	slowestLook = time.Second
)

// AwaitSurvivors returns when no process of the task's interrupted attempt runs any more, so that two attempts never
// run at the same time. It returns the signal that ended the wait, or nil, and an error where nobody can see them.
func (r *Runner) AwaitSurvivors(ctx context.Context, t *task.Task) (os.Signal, error) {
	if r.Survivors == nil {
		return nil, nil
	}
	found, by, err := r.findLeft(t)
	if found == "" || err != nil {
		return nil, err
	}
	who := "a hook, a nested retry, or an attempt that is not in the journal,"
	if by.Latest() > 0 {
		who = fmt.Sprintf("attempt %d", by.Latest())
	}
	var kill <-chan time.Time
	if r.Survivors.Unwanted() {
		r.Observer.Warn(fmt.Errorf("%s left %s running: stopping what is left", who, found))
		r.Survivors.Signal(t, by, syscall.SIGTERM)
		patience := t.Policy.KillAfter
		if end, ok := ctx.Deadline(); ok {
			patience = min(patience, time.Until(end)/2)
		}
		kill = time.After(patience)
	} else {
		r.Observer.Warn(fmt.Errorf("%s left %s running: the next one waits for the end of that"+
			"\nhint: --kill-orphans stops what is left", who, found))
	}
	for pause := firstLook; ; pause = min(2*pause, slowestLook) {
		if found, by, err = r.findLeft(t); found == "" || err != nil {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-kill:
			r.Survivors.Signal(t, by, syscall.SIGKILL)
			kill = time.After(slowestLook) // for what was started while the others were killed
		case <-ctx.Done():
			if found, _, err = r.findLeft(t); found == "" || err != nil || !errors.Is(context.Cause(ctx), ErrBudgetEnd) {
				return nil, err
			}
			err = fmt.Errorf("%s left %s running until the budget ended: nothing is run", who, found)
			if !r.Survivors.Unwanted() {
				err = fmt.Errorf("%w\nhint: --kill-orphans stops what is left", err)
			}
			r.Observer.Warn(Loss{Err: err, New: true})
			return nil, ErrBudgetEnd
		case sig := <-r.Signals:
			if task.Stops(sig) {
				return sig, nil
			}
		}
	}
}

// FindLeft describes the processes that the task's last attempt has left, or what came after it; "" is none. It returns
// an error where nobody can see them.
func (r *Runner) FindLeft(t *task.Task) (string, error) {
	found, _, err := r.findLeft(t)
	return found, err
}

// findLeft also returns the attempt, which is empty where the journal does not know it.
func (r *Runner) findLeft(t *task.Task) (found string, by task.Attempt, err error) {
	what := fmt.Sprintf("attempt %d", t.Last.Latest())
	if t.Last.CutOff() {
		by = t.Last
		found, err = r.Survivors.Find(t, by)
	}
	if found == "" && err == nil {
		what, by = "what a nested retry has left of "+what, task.Attempt{}
		found, err = r.Survivors.FindUnrecorded(t)
	}
	if err != nil {
		err = fmt.Errorf("%s may still be running, and cannot be seen from here: %w"+
			"\nhint: go on where it ran; or, if nothing of it runs any more, with --assume-dead", what, err)
	}
	return found, by, err
}
