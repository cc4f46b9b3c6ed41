package runner

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/10f93571/retry/task"
)

// maxSleep bounds one sleep: timers stop while a machine is suspended, so the wall clock is read again after each. So
// is the journal, for what another process has written there without a signal.
const maxSleep = 30 * time.Second

// wait sleeps until the task's next attempt is due, and takes a slot for it. It returns the signal that ended the wait,
// or nil.
func (r *Runner) wait(ctx context.Context, t *task.Task) os.Signal {
	started := time.Now()
	due := started.Add(t.NextAttemptAt.Sub(started)) // has a monotonic reading also after a resume
	looked := started
	for {
		left := untilDue(due, time.Now())
		if left <= 0 && r.inDoubt(t) {
			r.doubts++
			left = doubtPause
		}
		if left <= 0 {
			return r.acquireSlot(ctx)
		}
		look, asleep := false, time.Now()
		timer := time.NewTimer(min(left, r.Observer.Waiting(t, left), maxSleep))
		select {
		case <-timer.C:
			look = time.Since(looked) >= maxSleep
		case <-ctx.Done():
			return nil
		case sig := <-r.Signals:
			if task.Stops(sig) {
				return sig
			}
			look = true // retry resume --now sends one that nobody else minds
		}
		timer.Stop()
		if r.Unsettled != nil && time.Since(asleep) > left+stoodStill {
			time.Sleep(doubtPause) // what it has missed is told meanwhile
		}
		if look {
			looked = time.Now()
			if next := r.Journal.NextAttempt(ctx, t); next.Before(t.NextAttemptAt.Truncate(time.Microsecond)) {
				t.NextAttemptAt, due = next, next
			}
		}
	}
}

// The next attempt waits in doubt about its input for ten seconds at the most, with pauses between two looks. Only the
// looks of a process that runs count. One that sleeps so much longer than it wanted was stopped with its job.
const (
	doubtPause = 50 * time.Millisecond
	mostDoubts = 200
	stoodStill = 20 * time.Millisecond
)

var errInDoubt = errors.New("the input is not settled")

func (r *Runner) inDoubt(t *task.Task) bool {
	return r.Unsettled != nil && r.doubts < mostDoubts && r.Unsettled() && hasTime(t)
}

// hasTime reports whether something of the task's budget is left for another attempt.
func hasTime(t *task.Task) bool {
	limited := t.Policy.Budget > 0 && (t.AttemptCount > 0 || t.Policy.Deadline)
	return !limited || t.Policy.Left(t.History.Began, time.Now()) > 0
}

// clockInterval is the time between two looks at the clocks while a budget lasts: timers stop while the machine sleeps,
// and do not notice that the wall clock is set.
const clockInterval = time.Second

// withBudget returns a context that ends with the task's budget.
func withBudget(ctx context.Context, t *task.Task) (context.Context, context.CancelFunc) {
	if t.Policy.Budget == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	policy, began := t.Policy, t.History.Began
	go func() {
		for left := policy.Left(began, time.Now()); left > 0; left = policy.Left(began, time.Now()) {
			select {
			case <-time.After(min(left, clockInterval)):
			case <-ctx.Done():
				return
			}
		}
		cancel(ErrBudgetEnd)
	}()
	return ctx, func() { cancel(nil) }
}

// longestSlot is how long an attempt has its slot at the most. Some never end, as a server, and some wait for another
// task that has none.
const longestSlot = time.Minute

// acquireSlot takes a slot. A signal that has arrived already goes first, so that no further attempt starts after it.
func (r *Runner) acquireSlot(ctx context.Context) os.Signal {
	for {
		slots := r.Slots
		if len(r.Signals) > 0 {
			slots = nil // no slot can be taken before the signal was received
		} else if slots == nil {
			return nil
		}
		select {
		case slots <- struct{}{}:
			r.hadSlot = true
			return nil
		case <-ctx.Done():
			return nil
		case sig := <-r.Signals:
			if task.Stops(sig) {
				r.inLine = r.Slots != nil && !r.hadSlot
				return sig
			}
		}
	}
}

// untilDue returns the shorter time of the monotonic and of the wall clock, so that neither a suspended machine nor a
// clock that was set back makes the wait longer.
func untilDue(due, now time.Time) time.Duration {
	return min(due.Sub(now), due.Round(0).Sub(now.Round(0)))
}
