package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

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
	deadFlags
	Since   *flags.Since `placeholder:"TIME" help:"With --dead: only tasks made since then: 2h, yesterday, 15:04, 2026-11-20, or RFC 3339."`
	Rate    float64      `default:"50" placeholder:"N" help:"With --dead: so many become due in a second. Default 50."`
	DryRun  bool         `help:"With --dead: show the groups, and requeue nothing."`
	RunHere bool         `name:"run" help:"Run it here and now; else a worker or retry resume takes it."`
	Tasks   []string     `arg:"" optional:"" name:"task" help:"The tasks: an id, a beginning or an end of it, or a name."`
}

const requeueUsage = `Give tasks that have finished fresh attempts: their numbers go on, their keys stay, their budgets begin anew.
A worker takes them, or retry resume; --run runs one here.

Usage:
  retry requeue [flags] TASK…
  retry requeue --dead [--host H] [--policy P] [--error E] [--since T] [--rate N]

Examples:
  retry requeue --run nightly            try it again, here and now
  retry requeue b88690eb 1f4c0a52        several; then: retry resume --all
  retry requeue --dead --host api.example.org --rate 5   what one host refused, 5 a second; retry status --dead
`

func (c *requeueCommand) Run(p *Process) (int, error) {
	if err := c.deadFlags.check(); err != nil {
		return 0, err
	}
	switch many := c.Dead && len(c.Tasks) == 0; {
	case c.Dead && (!many || c.RunHere):
		return 0, errors.New("--dead goes without a task and without --run\nhint: workers carry what it requeues: retry worker")
	case !c.Dead && (c.Since != nil || c.DryRun || slices.Contains(p.Typed, "rate")):
		return 0, errors.New("--since, --rate and --dry-run go with --dead\nhint: retry requeue TASK needs none of them")
	case c.Rate < 0.01 || c.Rate > mostRate || math.IsNaN(c.Rate):
		return 0, fmt.Errorf("--rate %v: want a number from 0.01 to %d", c.Rate, mostRate)
	case many:
		return 0, c.requeueDead(context.Background(), p)
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
	if !c.RunHere && session.JournalAbsent(&p.Host, c.State) == nil {
		return 0, c.hand(ctx, p)
	}
	journal, err := session.ChangeJournal(ctx, &p.Host, c.State)
	if err != nil {
		return 0, err
	}
	defer func() { _ = journal.Close() }()
	return c.runHere(ctx, p, journal)
}

// hand gives the tasks to workers, and to resumes.
func (c *requeueCommand) hand(ctx context.Context, p *Process) error {
	queue, err := session.OpenQueue(ctx, &p.Host, c.State)
	if err != nil {
		return err
	}
	defer func() { _ = queue.Close() }()
	workers, err := queue.ListWorkers(ctx)
	if err != nil {
		return err
	}
	return each(c.Tasks, func(ref string) error {
		tk, err := c.requeue(ctx, queue.Journal, ref, func(t *task.Task) error {
			return queue.Requeue(ctx, t.Number, time.Now())
		})
		if err != nil {
			return err
		}
		then := "to run it: retry resume " + render.ShortID(tk.ID)
		switch {
		case anyLives(workers):
			then = "a worker takes it"
		case tk.Queue == task.QueueWorker:
			then = noWorker
		}
		_, err = fmt.Fprintf(p.Stdout, "requeued %s; %s\n", render.ShortID(tk.ID), then)
		return err
	})
}

// noWorker is said where something waits for one.
const noWorker = "no worker runs: retry worker"

// runHere runs the one task as retry resume would.
func (c *requeueCommand) runHere(ctx context.Context, p *Process, journal state.Store) (int, error) {
	tk, err := c.requeue(ctx, journal, c.Tasks[0], func(t *task.Task) error { return session.Requeue(ctx, journal, t) })
	if err == nil {
		tk.Status, tk.Queue = task.Pending, task.QueueShared // as the journal has it now
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

func (c *requeueCommand) requeue(ctx context.Context, journal state.Store, ref string,
	do func(*task.Task) error) (*task.Task, error) {
	tk, err := journal.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if c.RunHere {
		if err := session.CheckCarrier(tk); err != nil {
			return nil, err
		}
	}
	if tk.Status.Finished() && c.Mode() == "" {
		if err := session.CheckInput(tk); err != nil {
			return nil, err
		}
	}
	if err := do(tk); err != nil {
		interrupted, _ := journal.Interrupted(ctx, tk)
		return nil, fmt.Errorf("requeue %s: %w%s", render.ShortID(tk.ID), err, requeueHint(err, tk, interrupted))
	}
	return tk, nil
}

func requeueHint(err error, t *task.Task, interrupted bool) string {
	switch {
	case errors.Is(err, state.ErrUnfinished) && t.Queue == task.QueueWorker:
		return "\nhint: a worker carries it; retry status " + render.ShortID(t.ID) + " shows how far it is"
	case errors.Is(err, state.ErrUnfinished) && !interrupted:
		return "\nhint: it is running; retry status " + render.ShortID(t.ID) + " shows how far it is"
	case errors.Is(err, state.ErrUnfinished):
		return "\nhint: retry resume " + render.ShortID(t.ID) + " goes on with it where it was interrupted"
	case errors.Is(err, state.ErrOwned):
		return "\nhint: its command has not ended since it was cancelled: requeue it when that has"
	case errors.Is(err, state.ErrNamed):
		return fmt.Sprintf("\nhint: retry status %q shows that one", t.Name)
	case errors.Is(err, state.ErrSucceeded):
		return fmt.Sprintf("\nhint: retry status %q shows that one; without --once the name runs again", t.Name)
	case errors.Is(err, state.ErrReply):
		return "\nhint: retry requeue --run " + render.ShortID(t.ID) + " sends it from here"
	case errors.Is(err, state.ErrInputDropped), errors.Is(err, state.ErrDamaged):
		return "\nhint: start it anew"
	}
	return ""
}
