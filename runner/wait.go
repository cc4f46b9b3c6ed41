package runner

import (
	"context"
	"os"
	"time"

	"github.com/10f93571/retry/task"
)

// maxSleep bounds one sleep, so that a machine that was suspended, whose timers stood still, notices that the time has come.
const maxSleep = 30 * time.Second

// wait sleeps until the task's next attempt is due and there is a slot for it. It returns the signal that ended the wait, nil where none did.
func (r *Runner) wait(ctx context.Context, t *task.Task) os.Signal {
	started := time.Now()
	due := started.Add(t.NextAttemptAt.Sub(started)) // has a monotonic reading also after a resume
	for {
		left := untilDue(due, time.Now())
		if left <= 0 {
			return r.enter(ctx)
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

// enter takes a slot. A signal that asked to stop while nobody listened goes first, so that no further attempt starts.
func (r *Runner) enter(ctx context.Context) os.Signal {
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

// nextStop returns a signal that asked to stop, and that is known to have come.
func (r *Runner) nextStop() os.Signal {
	for {
		if sig := <-r.Signals; task.Stops(sig) {
			return sig
		}
	}
}

// leave gives the slot back.
func (r *Runner) leave() {
	if r.Slots != nil {
		<-r.Slots
	}
}

// untilDue is the shorter of the monotonic and the wall clock's way, so that neither a suspended machine nor a clock that
// was set back makes the wait longer.
func untilDue(due, now time.Time) time.Duration {
	return min(due.Sub(now), due.Round(0).Sub(now.Round(0)))
}
