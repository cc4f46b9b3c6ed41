package runner

import (
	"context"
	"time"
)

// Resume goes on with a task that lost its owner. The attempt that was in flight then has no outcome; the budget went on.
func (r *Runner) Resume(ctx context.Context, t *Task) (Result, error) {
	if err := r.recover(ctx, t, time.Now()); err != nil {
		return r.refused(ctx, t, err)
	}
	if t.Status.Finished() {
		return r.finish(ctx, t, Result{Decision: t.end(), Outcome: t.Last.Outcome}), nil
	}
	if sig := r.Outlive(ctx, t); sig != nil || ctx.Err() != nil {
		return r.stop(ctx, t, sig)
	}
	r.Journal.CancelNested(ctx, t)
	return r.Run(ctx, t)
}

// crashed is the outcome of an attempt whose owner died: a request may have taken effect by then.
func (t *Task) crashed() Outcome {
	o := Crashed()
	if t.Request != nil && !t.Request.Safe() {
		o.HTTP = &Exchange{Default: Eligibility{Class: ClassFatal, Ambiguous: true}}
	}
	return o
}

// end is the decision that ended a task.
func (t *Task) end() Decision {
	if t.Status == Failed {
		return Decision{Verdict: VerdictFailed, Reason: t.Reason}
	}
	return Decision{Verdict: VerdictExhausted, Reason: t.Reason}
}

// catchUpWithClock bounds what a clock that was set back since then would make longer: the wait, and the budget.
func (t *Task) catchUpWithClock(now time.Time) {
	if latest := now.Add(t.History.Delay); t.NextAttemptAt.After(latest) {
		t.NextAttemptAt = latest
	}
	if t.History.Began.After(now) {
		t.History.Began = now
	}
}

// recover writes down what the dead owner could not, and ends the task where going on is of no use.
func (r *Runner) recover(ctx context.Context, t *Task, now time.Time) error {
	t.catchUpWithClock(now)
	if t.Status == InFlight {
		a := t.Last
		a.Outcome = t.crashed()
		a.Decision = Decide(&t.Policy, t.History, a.Outcome, now, r.Random)
		t.Decided(a, now)
		if err := r.Journal.Record(ctx, t, a); err != nil || t.Status.Finished() {
			return err
		}
	}
	d := DecideResume(&t.Policy, t.History, t.NextAttemptAt, now)
	if d.Verdict != VerdictExhausted {
		return nil
	}
	t.Move(d, now)
	return r.Journal.Settle(ctx, t, d)
}
