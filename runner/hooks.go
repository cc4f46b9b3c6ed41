package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/10f93571/retry/task"
)

// Hooks runs the shell commands of --on-start, --on-retry, --on-success and --on-failure.
type Hooks interface {
	// Run runs a shell command, forwards the signals that arrive meanwhile, and stops it when the context ends. It returns
	// the first signal that asked to stop.
	Run(ctx context.Context, t *task.Task, command string, signals <-chan os.Signal) (os.Signal, error)
}

// hasBegun reports whether an attempt of a task has begun since that was made, or requeued. A worker claims an attempt
// before --on-start, which may be cut off; of an unsafe request that was cut off nobody knows whether it was sent.
func hasBegun(t *task.Task) bool {
	o := t.Last.Outcome
	cutOff := t.Last.Decision.Verdict == task.VerdictInterrupted && t.Last.Process == "" &&
		(o.Exit == task.ExitInternal || o.IsCrash() && !t.Unsafe())
	since := t.AttemptCount - t.RequeuedAfter
	return since > 0 && !(cutOff && t.History.Interrupted == since)
}

// hookWithinBudget runs a hook that another attempt follows.
func (r *Runner) hookWithinBudget(ctx context.Context, t *task.Task, command string) os.Signal {
	if command == "" {
		return nil
	}
	ctx, release := withBudget(ctx, t)
	defer release()
	return r.hook(ctx, t, command)
}

// hook runs one of the task's hooks; an empty command is none. A hook that fails is a warning and changes nothing.
func (r *Runner) hook(ctx context.Context, t *task.Task, command string) os.Signal {
	if command == "" || r.Hooks == nil {
		return nil
	}
	ctx, cancel := withTimeout(ctx, cmp.Or(t.Options.HookTimeout, task.DefaultHookTimeout))
	defer cancel()
	sig, err := r.Hooks.Run(ctx, t, command, r.Signals)
	if err != nil {
		r.Observer.Warn(fmt.Errorf("hook %q: %w", command, err))
	}
	return sig
}
