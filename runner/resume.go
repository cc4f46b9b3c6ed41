package runner

import (
	"context"
	"time"

	"github.com/10f93571/retry/task"
)

// Resume continues a task whose owner died. An attempt that was in flight has no outcome; the budget went on meanwhile.
func (r *Runner) Resume(ctx context.Context, t *task.Task) (Result, error) {
	if err := r.recover(ctx, t, time.Now()); err != nil {
		return r.endWithoutAttempt(ctx, t, err)
	}
	if t.Status.Finished() {
		return r.finish(ctx, t, Result{Decision: t.EndDecision(), Outcome: t.Last.Outcome}), nil
	}
	if sig := r.AwaitSurvivors(ctx, t); sig != nil || ctx.Err() != nil {
		return r.stop(ctx, t, sig)
	}
	r.Journal.CancelNested(ctx, t)
	return r.Run(ctx, t)
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
	d := task.DecideResume(&t.Policy, t.History, t.NextAttemptAt, now)
	if d.Verdict != task.VerdictExhausted {
		return nil
	}
	t.Move(d, now)
	return r.Journal.Settle(ctx, t, d)
}
