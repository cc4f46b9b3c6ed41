package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// ResumeOptions say how an interrupted task goes on.
type ResumeOptions struct {
	ExecOptions
	flags.SurvivorFlags
	Now bool // do not wait for the time of the next attempt
}

func survivors(f flags.SurvivorFlags) proc.Survivors {
	return proc.Survivors{Kill: f.KillOrphans, AssumeDead: f.AssumeDead}
}

// longWait is the longest wait that a resume does not announce.
const longWait = time.Minute

// Resume runs an adopted task to its end.
func (p *Host) Resume(ctx context.Context, t *task.Task, journal *Journal, lines render.Observer,
	how ResumeOptions) (runner.Result, error) {
	run, err := p.NewResumer(t, journal, lines, how)
	if err != nil {
		return runner.Result{}, err
	}
	defer run.Close()
	run.Signals = p.Listen()
	return run.Resume(ctx, t)
}

// Resume runs the adopted task to its end.
func (r *taskRunner) Resume(ctx context.Context, t *task.Task) (runner.Result, error) {
	result, err := r.Runner.Resume(ctx, t)
	if err != nil {
		err = fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err)
	}
	return result, err
}

// NewResumer puts together the runner of an interrupted task, in its directory and with its kept environment.
func (p *Host) NewResumer(t *task.Task, journal *Journal, lines render.Observer,
	how ResumeOptions) (*taskRunner, error) {
	info, err := os.Stat(t.Directory)
	if t.Kind == task.KindCommand && (err != nil || !info.IsDir()) { // a request has absolute paths
		return nil, fmt.Errorf("resume %s: its directory %q is gone"+
			"\nhint: make it again, or retry cancel %[1]s", render.ShortID(t.ID), t.Directory)
	}
	if how.Now {
		t.NextAttemptAt = time.Time{}
	}
	journal.warn = lines.Warn
	before := t.Options.Source
	run, err := p.newTaskRunner(t, journal, lines, how.ExecOptions, true)
	switch {
	case how.ownStdin && errors.Is(err, state.ErrInputLost):
		lines.Say("its stdin was not kept to the end: reads this one's")
		run, err = p.newTaskRunner(t, journal, lines, how.ExecOptions, false)
	case how.ownStdin && t.KeepsInput() && err == nil:
		lines.Say("reads the stdin that was kept for it, not this one's")
	}
	if err == nil && t.Options.Source != before { // a later resume goes on with this one
		err = journal.Journal.Amend(context.Background(), t)
	}
	if err != nil {
		return nil, text.WithHint(fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err),
			"start it anew, and end this one with retry cancel "+render.ShortID(t.ID))
	}
	if now := time.Now(); t.NextAttemptAt.Sub(now) > longWait {
		lines.Say(render.ShortID(t.ID) + " waits until " + render.Stamp(t.NextAttemptAt, now))
	}
	run.commands.Dir = t.Directory
	run.Survivors = survivors(how.SurvivorFlags)
	return run, nil
}

// Adopt adopts a task together with its name, which no other run may use until this process has ended.
func Adopt(ctx context.Context, journal state.Store, t *task.Task) (*task.Task, error) {
	adopted, err := adopt(ctx, journal, t)
	if err != nil {
		return nil, fmt.Errorf("resume %s: %w%s", render.ShortID(t.ID), err, adoptHint(err, t))
	}
	return adopted, nil
}

func adopt(ctx context.Context, journal state.Store, t *task.Task) (*task.Task, error) {
	switch {
	case t.Status.Finished(): // its name may belong to another task by now
		return nil, state.ErrFinished
	case t.Name == "":
		return journal.Adopt(ctx, t.Number)
	}
	if owned, _, err := journal.OwnName(t.Name); err != nil || !owned {
		return nil, cmp.Or(err, state.ErrOwned)
	}
	adopted, err := journal.Adopt(ctx, t.Number)
	if err != nil {
		_ = journal.ReleaseName(t.Name)
	}
	return adopted, err
}

// Requeue gives a finished task fresh attempts, and makes this process its owner; to run it here, that of its name too.
func Requeue(ctx context.Context, journal state.Store, t *task.Task, here bool) error {
	if here && t.Name != "" && t.Status.Finished() {
		if owned, _, err := journal.OwnName(t.Name); err != nil || !owned {
			return cmp.Or(err, state.ErrOwned)
		}
	}
	return journal.Requeue(ctx, t, time.Now())
}

// adoptHint says what to do where a task cannot be adopted.
func adoptHint(err error, t *task.Task) string {
	switch {
	case errors.Is(err, state.ErrOwned):
		return "\nhint: its owner lives; retry resume --now " + render.ShortID(t.ID) + " ends its wait, retry cancel stops it"
	case errors.Is(err, state.ErrDamaged):
		return "\nhint: retry cancel " + render.ShortID(t.ID) + ", and start it anew"
	case errors.Is(err, state.ErrFinished):
		return fmt.Sprintf(": %s\nhint: retry requeue --run %s gives it fresh attempts", render.StatusWord(t.Status), render.ShortID(t.ID))
	}
	return ""
}
