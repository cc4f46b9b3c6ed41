package runner

import (
	"context"
	"os"
	"time"

	"github.com/10f93571/retry/task"
)

// maxSleep bounds one sleep: timers stand still while a machine is suspended, and the wall clock has to be looked at
// after.
const maxSleep = 30 * time.Second

// wait sleeps until the task's next attempt is due, and takes a slot for it. It returns the signal that ended the wait,
// or nil.
func (r *Runner) wait(ctx context.Context, t *task.Task) os.Signal {
	started := time.Now()
	due := started.Add(t.NextAttemptAt.Sub(started)) // has a monotonic reading also after a resume
	for {
		left := untilDue(due, time.Now())
		if left <= 0 {
			return r.acquireSlot(ctx)
		}
		timer := time.NewTimer(min(left, r.Observer.Waiting(t, left), maxSleep))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		case sig := <-r.Signals:
			if task.Stops(sig) {
				return sig
			}
		}
		timer.Stop()
	}
}

// acquireSlot takes a slot. A signal that arrived before goes first, so that no further attempt starts after it.
func (r *Runner) acquireSlot(ctx context.Context) os.Signal {
	for {
		select {
		case sig := <-r.Signals:
			if task.Stops(sig) {
				return sig
			}
			continue
		default:
		}
		if r.Slots == nil {
			return nil
		}
		select {
		case r.Slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return nil
		case sig := <-r.Signals:
			if task.Stops(sig) {
				return sig
			}
		}
	}
}

// nextStop receives the signal that asked to stop. It must be known to have arrived.
func (r *Runner) nextStop() os.Signal {
	for {
		if sig := <-r.Signals; task.Stops(sig) {
			return sig
		}
	}
}

// releaseSlot gives the slot back.
func (r *Runner) releaseSlot() {
	if r.Slots != nil {
		<-r.Slots
	}
}

// untilDue returns the shorter time of the monotonic and of the wall clock, so that neither a suspended machine nor a
// clock that was set back makes the wait longer.
func untilDue(due, now time.Time) time.Duration {
	return min(due.Sub(now), due.Round(0).Sub(now.Round(0)))
}
