package runner

import (
	"context"
	"time"

	"github.com/10f93571/retry/task"
)

// Chainer is a Journal that can write an outcome and the claim of the next attempt in one transaction. That saves one
// of two commits where an attempt follows without delay.
type Chainer interface {
	// RecordAndClaim does what Record and then Claim do. Where it fails, or would have to wait long, it has written
	// nothing.
	RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error
	// Unclaim takes that claim back where a signal came before the attempt began. The task is PENDING then, as decided.
	Unclaim(ctx context.Context, t *task.Task)
}

// OutputHolder is an Executor that can tell whether Flush has something to do.
type OutputHolder interface {
	// HoldsOutput reports whether Flush would write anything. Writing takes as long as the reader does, and a signal
	// may stop it.
	HoldsOutput(t *task.Task) bool
}

// chain records an attempt and claims the next one together, where nothing comes between the two. It reports whether it
// did.
func (r *Runner) chain(ctx context.Context, t *task.Task, a task.Attempt) bool {
	chainer, ok := r.Journal.(Chainer)
	t.ClaimedAhead = ok && r.followsAtOnce(ctx, t, a) && chainer.RecordAndClaim(ctx, t, a, time.Now()) == nil
	return t.ClaimedAhead
}

// unclaim takes back a claim by chain for an attempt that will not begin.
func (r *Runner) unclaim(ctx context.Context, t *task.Task) {
	if chainer, ok := r.Journal.(Chainer); ok && t.ClaimedAhead {
		chainer.Unclaim(context.WithoutCancel(ctx), t)
	}
	t.ClaimedAhead = false
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
	case r.Slots != nil, r.Hooks != nil && t.Options.OnRetry != "":
		return false
	}
	holder, ok := r.Executor.(OutputHolder)
	return ok && !holder.HoldsOutput(t)
}
