package runner

import (
	"context"
	"fmt"
	"os"
)

// Hooks runs the commands that a task wants run when something happened to it.
type Hooks interface {
	// Run runs a shell command and passes on the signals that arrive meanwhile. It returns the first that asked to stop.
	Run(ctx context.Context, t *Task, command string, signals <-chan os.Signal) (os.Signal, error)
}

// hook runs one of the task's hooks, where it has it. A hook that fails changes nothing.
func (r *Runner) hook(ctx context.Context, t *Task, command string) os.Signal {
	if command == "" || r.Hooks == nil {
		return nil
	}
	sig, err := r.Hooks.Run(ctx, t, command, r.Signals)
	if err != nil {
		r.Observer.Warn(fmt.Errorf("hook %q: %w", command, err))
	}
	return sig
}

// finalHook is the hook for a task that ended. One that was cancelled did not fail: somebody wanted it to end.
func (o *Options) finalHook(s Status) string {
	switch s {
	case Succeeded:
		return o.OnSuccess
	case Failed, Exhausted:
		return o.OnFailure
	}
	return ""
}
