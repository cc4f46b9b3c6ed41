package runner

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/task"
)

// Survivors finds the processes that an attempt left running when its owner died or was stopped.
type Survivors interface {
	// Find describes the processes that are still alive; it returns "" where there are none.
	Find(t *task.Task, a task.Attempt) string
	// Signal sends them a signal.
	Signal(t *task.Task, a task.Attempt, sig os.Signal)
	// Unwanted reports whether to stop them (--kill-orphans) instead of waiting for their end.
	Unwanted() bool
}

// The pauses between two looks for survivors: the first one, and the longest after doubling.
const (
	firstLook   = 10 * time.Millisecond
	slowestLook = time.Second
)

// AwaitSurvivors returns when no process of the task's interrupted attempt runs any more, so that two attempts never
// run at the same time. It returns the signal that ended the wait, or nil.
func (r *Runner) AwaitSurvivors(ctx context.Context, t *task.Task) os.Signal {
	if r.Survivors == nil || !t.Last.CutOff() {
		return nil
	}
	found := r.Survivors.Find(t, t.Last)
	if found == "" {
		return nil
	}
	var kill <-chan time.Time
	if r.Survivors.Unwanted() {
		r.Observer.Warn(fmt.Errorf("attempt %d left %s running: stopping what is left", t.Last.Number, found))
		r.Survivors.Signal(t, t.Last, syscall.SIGTERM)
		kill = time.After(t.Policy.KillAfter)
	} else {
		r.Observer.Warn(fmt.Errorf("attempt %d left %s running: the next one waits for the end of that\nhint: --kill-orphans stops what is left", t.Last.Number, found))
	}
	for pause := firstLook; r.Survivors.Find(t, t.Last) != ""; pause = min(2*pause, slowestLook) {
		select {
		case <-time.After(pause):
		case <-kill:
			r.Survivors.Signal(t, t.Last, syscall.SIGKILL)
			kill = time.After(slowestLook) // for what was started while the others were killed
		case <-ctx.Done():
			return nil
		case sig := <-r.Signals:
			if task.Stops(sig) {
				return sig
			}
		}
	}
	return nil
}
