package runner

import (
	"context"
	"time"
)

// Chainer is a Journal that writes an outcome and the claim of the attempt that follows at once in one transaction.
type Chainer interface {
	// RecordAndClaim is Record followed by Claim, or nothing: it fails where it cannot write both, or not soon.
	RecordAndClaim(ctx context.Context, t *Task, a Attempt, now time.Time) error
	// Unclaim takes that claim back, where a signal came before the attempt began: the task waits after the last one, as decided.
	Unclaim(ctx context.Context, t *Task)
}

// Holder is an Executor that knows what Release would do.
type Holder interface {
	// Holds reports whether Release would pass anything on, which takes as long as its reader does, and may be stopped.
	Holds(t *Task) bool
}

// chain records an attempt and claims the next one, where nothing comes between the two. It reports whether it did.
func (r *Runner) chain(ctx context.Context, t *Task, a Attempt) bool {
	chainer, ok := r.Journal.(Chainer)
	t.chained = ok && r.nothingBetween(ctx, t, a) && chainer.RecordAndClaim(ctx, t, a, time.Now()) == nil
	return t.chained
}

// claim makes the next attempt the task's own, unless it is.
func (r *Runner) claim(ctx context.Context, t *Task) error {
	if t.chained {
		return nil
	}
	return r.Journal.Claim(ctx, t, time.Now())
}

// unclaim takes back the claim of an attempt that will not begin.
func (r *Runner) unclaim(ctx context.Context, t *Task) {
	if chainer, ok := r.Journal.(Chainer); ok && t.chained {
		chainer.Unclaim(context.WithoutCancel(ctx), t)
	}
	t.chained = false
}

// nothingBetween reports whether the next attempt follows at once: no wait, for time or for others, nothing that takes time, and nothing
// that may end the run.
func (r *Runner) nothingBetween(ctx context.Context, t *Task, a Attempt) bool {
	switch {
	case a.Decision.Verdict != VerdictRetry, untilDue(t.NextAttemptAt, time.Now()) > 0:
		return false
	case a.Outcome.Error == ErrorTimeout: // first its nested tasks are cancelled
		return false
	case ctx.Err() != nil, len(r.Signals) > 0:
		return false
	case r.Slots != nil, r.Hooks != nil && t.Options.OnRetry != "":
		return false
	}
	holder, ok := r.Executor.(Holder)
	return ok && !holder.Holds(t)
}
