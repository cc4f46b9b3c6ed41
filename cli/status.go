package cli

import (
	"context"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
)

// statusCommand is `retry status [TASK]`.
type statusCommand struct {
	stateFlag
	JSON  bool    `help:"Print JSON; its fields are stable."`
	Limit *count  `placeholder:"N" help:"Show the newest N tasks; 0 = all. Default 20, with --json all."`
	Task  *string `arg:"" optional:"" help:"One task in detail: its id, a beginning or an end of it, or its name."`
}

// tableLimit is how many tasks a table shows.
const tableLimit = 20

func (c *statusCommand) run(p *Process) (int, error) {
	ctx := context.Background()
	journal, err := c.read(ctx, p)
	if err != nil {
		return 0, err
	}
	defer func() { _ = journal.Close() }()
	if c.Task != nil {
		return 0, c.one(ctx, p, journal)
	}
	return 0, c.table(ctx, p, journal)
}

func (c *statusCommand) one(ctx context.Context, p *Process, journal *state.Journal) error {
	task, err := journal.Find(ctx, *c.Task)
	if err != nil {
		return err
	}
	attempts, err := journal.Attempts(ctx, task.Number)
	if err != nil {
		return err
	}
	view, err := viewOf(ctx, journal, task)
	if err != nil {
		return err
	}
	if c.JSON {
		return render.TaskJSON(p.Stdout, view, attempts)
	}
	return render.Task(p.Stdout, render.ScreenOf(p.Stdout, p.getenv), view, attempts, time.Now())
}

func (c *statusCommand) table(ctx context.Context, p *Process, journal *state.Journal) error {
	tasks, err := journal.List(ctx, state.Filter{Limit: c.limit()})
	if err != nil {
		return err
	}
	views := make([]render.TaskView, 0, len(tasks))
	for _, t := range tasks {
		view, err := viewOf(ctx, journal, t)
		if err != nil {
			return err
		}
		views = append(views, view)
	}
	if c.JSON {
		return render.TasksJSON(p.Stdout, views)
	}
	hidden := 0
	if len(tasks) == c.limit() {
		total, err := journal.Count(ctx)
		if err != nil {
			return err
		}
		hidden = total - len(tasks)
	}
	return render.Tasks(p.Stdout, render.ScreenOf(p.Stdout, p.getenv), views, hidden, time.Now())
}

func (c *statusCommand) limit() int {
	switch {
	case c.Limit != nil:
		return int(*c.Limit)
	case c.JSON:
		return 0
	}
	return tableLimit
}

func viewOf(ctx context.Context, journal *state.Journal, t *runner.Task) (render.TaskView, error) {
	interrupted, err := journal.Interrupted(ctx, t)
	return render.TaskView{Task: t, Interrupted: interrupted}, err
}
