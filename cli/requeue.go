package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

type requeueCommand struct {
	flags.StateFlag
	flags.OutputFlags
	flags.ReportFlags
	flags.ProcessGroupFlags
	flags.SurvivorFlags
	flags.InputFlags
	RunHere bool     `name:"run" help:"Run it here and now; else retry resume takes it."`
	Tasks   []string `arg:"" optional:"" name:"task" help:"The tasks: an id, a beginning or an end of it, or a name."`
}

const requeueUsage = `Give tasks that have finished fresh attempts: their numbers go on, their keys stay, their budgets begin anew.
They wait for retry resume, unless --run runs one here.

Usage:
  retry requeue [flags] TASK…

Examples:
  retry requeue --run nightly            try it again, here and now
  retry requeue b88690eb 1f4c0a52        several; then: retry resume --all
`

func (c *requeueCommand) Run(p *Process) (int, error) {
	switch {
	case len(c.Tasks) == 0:
		return 0, errors.New("no task to give fresh attempts\nhint: retry requeue TASK…; retry status lists the tasks")
	case c.RunHere && len(c.Tasks) > 1:
		return 0, errors.New("--run goes with a single task" +
			"\nhint: without it, retry resume --all runs them side by side")
	case c.Report != "" && !c.RunHere:
		return 0, errors.New("--report goes with --run\nhint: retry status TASK --json tells of any task")
	}
	if c.Mode() != "" && !c.RunHere {
		return 0, errors.New("--stdin goes with --run\nhint: retry resume --stdin says it of any other")
	}
	if err := p.fillIn(c); err != nil {
		return 0, err
	}
	ctx := context.Background()
	journal, err := session.ChangeJournal(ctx, &p.Host, c.State)
	if err != nil {
		return 0, err
	}
	defer func() { _ = journal.Close() }()
	if c.RunHere {
		return c.runHere(ctx, p, journal)
	}
	return 0, each(c.Tasks, func(ref string) error {
		tk, err := c.requeue(ctx, journal, ref)
		if err == nil {
			_ = journal.Release(tk.Number)
			_, _ = fmt.Fprintf(p.Stdout, "requeued %s; to run it: retry resume %[1]s\n", render.ShortID(tk.ID))
		}
		return err
	})
}

// runHere runs the one task as retry resume would.
func (c *requeueCommand) runHere(ctx context.Context, p *Process, journal state.Store) (int, error) {
	tk, err := c.requeue(ctx, journal, c.Tasks[0])
	if err == nil {
		tk.Status = task.Pending // as the journal has it now
		tk, err = session.Adopt(ctx, journal, tk)
	}
	if err != nil {
		return 0, err
	}
	resume := &resumeCommand{OutputFlags: c.OutputFlags, ReportFlags: c.ReportFlags,
		ProcessGroupFlags: c.ProcessGroupFlags, SurvivorFlags: c.SurvivorFlags,
		InputFlags: c.InputFlags}
	return resume.resumeOne(ctx, p, journal, tk)
}

func (c *requeueCommand) requeue(ctx context.Context, journal state.Store, ref string) (*task.Task, error) {
	tk, err := journal.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if tk.Status.Finished() && c.Mode() == "" {
		if err := session.CheckInput(tk); err != nil {
			return nil, err
		}
	}
	if err := session.Requeue(ctx, journal, tk, c.RunHere); err != nil {
		interrupted, _ := journal.Interrupted(ctx, tk)
		return nil, fmt.Errorf("requeue %s: %w%s", render.ShortID(tk.ID), err, requeueHint(err, tk, interrupted))
	}
	return tk, nil
}

func requeueHint(err error, t *task.Task, interrupted bool) string {
	switch {
	case errors.Is(err, state.ErrUnfinished) && !interrupted:
		return "\nhint: it is running; retry status " + render.ShortID(t.ID) + " shows how far it is"
	case errors.Is(err, state.ErrUnfinished):
		return "\nhint: retry resume " + render.ShortID(t.ID) + " goes on with it where it was interrupted"
	case errors.Is(err, state.ErrOwned):
		return "\nhint: its command has not ended since it was cancelled: requeue it when that has"
	case errors.Is(err, state.ErrNamed):
		return fmt.Sprintf("\nhint: retry status %q shows that one", t.Name)
	case errors.Is(err, state.ErrInputDropped), errors.Is(err, state.ErrDamaged):
		return "\nhint: start it anew"
	}
	return ""
}
