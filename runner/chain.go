package runner

import (
	"context"
	"time"

	"github.com/10f93571/retry/task"
)

// Chainer is a Journal that writes an outcome and the claim of the attempt that follows at once in one transaction.
type Chainer interface {
	// RecordAndClaim is Record followed by Claim, or nothing: it fails where it cannot write both, or not soon.
	RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error
	// Unclaim takes that claim back, where a signal came before the attempt began: the task waits after the last one, as decided.
	Unclaim(ctx context.Context, t *task.Task)
}

// Holder is an Executor that knows what Release would do.
type Holder interface {
	// Holds reports whether Release would pass anything on, which takes as long as its reader does, and may be stopped.
	Holds(t *task.Task) bool
}

// chain records an attempt and claims the next one, where nothing comes between the two. It reports whether it did.
func (r *Runner) chain(ctx context.Context, t *task.Task, a task.Attempt) bool {
	chainer, ok := r.Journal.(Chainer)
	t.Chained = ok && r.nothingBetween(ctx, t, a) && chainer.RecordAndClaim(ctx, t, a, time.Now()) == nil
	return t.Chained
}

// claim makes the next attempt the task's own, unless it is.
func (r *Runner) claim(ctx context.Context, t *task.Task) error {
	if t.Chained {
		return nil
	}
	return r.Journal.Claim(ctx, t, time.Now())
}

// unclaim takes back the claim of an attempt that will not begin.
func (r *Runner) unclaim(ctx context.Context, t *task.Task) {
	if chainer, ok := r.Journal.(Chainer); ok && t.Chained {
		chainer.Unclaim(context.WithoutCancel(ctx), t)
	}
	t.Chained = false
}

// nothingBetween reports whether the next attempt follows at once: no wait, for time or for others, nothing that takes time, and nothing
// that may end the run.
func (r *Runner) nothingBetween(ctx context.Context, t *task.Task, a task.Attempt) bool {
	switch {
	case a.Decision.Verdict != task.VerdictRetry, untilDue(t.NextAttemptAt, time.Now()) > 0:
		return false
	case a.Outcome.Error == task.ErrorTimeout: // first its nested tasks are cancelled
		return false
	case ctx.Err() != nil, len(r.Signals) > 0:
		return false
	case r.Slots != nil, r.Hooks != nil && t.Options.OnRetry != "":
		return false
	}
	holder, ok := r.Executor.(Holder)
	return ok && !holder.Holds(t)
}
