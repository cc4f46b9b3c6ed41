package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// deadFlags choose among the dead letters: the tasks that gave up or failed.
type deadFlags struct {
	Dead   bool    `help:"The tasks that gave up or failed, in groups of the same error, target and policy."`
	Host   *string `placeholder:"HOST" help:"With --dead: only requests to this host, as the groups name it; - = only commands."`
	Policy *string `placeholder:"NAME" help:"With --dead: only tasks of this policy; - = only those whose policy has no name."`
	Error  *string `placeholder:"WORD" help:"With --dead: only tasks whose last attempt ended so, as the groups name it: connect, 'status 503', 'exit 1'."`
}

var deadStatuses = []task.Status{task.Exhausted, task.Failed}

func (f *deadFlags) check() error {
	if !f.Dead && (f.Host != nil || f.Policy != nil || f.Error != nil) {
		return errors.New("--host, --policy and --error go with --dead\nhint: retry status --dead shows the groups that they name")
	}
	return nil
}

// filter selects dead tasks made since a time.
func (f *deadFlags) filter(since *flags.Since) state.Filter {
	filter := state.Filter{Statuses: deadStatuses, Host: orNone(f.Host), PolicyID: orNone(f.Policy)}
	if f.Error != nil {
		filter.Error = *f.Error
	}
	if since != nil {
		filter.Since = time.Time(*since)
	}
	return filter
}

// orNone reads a dash as the empty text.
func orNone(word *string) *string {
	if word != nil && *word == "-" {
		return new("")
	}
	return word
}

// groups returns the groups that the filter selects.
func (f *deadFlags) groups(ctx context.Context, journal state.Store, since *flags.Since) ([]state.Group, error) {
	filter := f.filter(since)
	page := state.PageFilter{Error: filter.Error, Since: filter.Since}
	if filter.Host != nil { // for commands it is empty, which selects all here; and so for no policy
		page.Host = *filter.Host
	}
	if filter.PolicyID != nil {
		page.PolicyID = *filter.PolicyID
	}
	all, err := journal.Groups(ctx, page, math.MaxInt32)
	return slices.DeleteFunc(all, func(g state.Group) bool {
		return filter.Host != nil && g.Host != *filter.Host || filter.PolicyID != nil && g.PolicyID != *filter.PolicyID
	}), err
}

// mostRate is how many dead letters may become due in a second, as in the API.
const mostRate = 10_000

// requeueDead gives many dead letters fresh attempts. They become due one after the other, so that whoever was down is
// not run over.
func (c *requeueCommand) requeueDead(ctx context.Context, p *Process) error {
	if session.JournalAbsent(&p.Host, c.State) != nil {
		_, err := fmt.Fprintln(p.Stdout, "no dead letters")
		return err
	}
	what := "requeues the tasks"
	if c.DryRun {
		what = "reads the tasks"
	}
	done := p.Busy(what)
	defer done()
	queue, err := session.OpenQueue(ctx, &p.Host, c.State)
	if err != nil {
		return err
	}
	defer func() { _ = queue.Close() }()
	if c.DryRun {
		groups, err := c.groups(ctx, queue.Journal, c.Since)
		done()
		if err != nil {
			return err
		}
		return render.Groups(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), groups, time.Now())
	}
	begun := time.Now()
	due, requeued, skipped := begun, 0, map[string]int{}
	for t, err := range queue.All(ctx, c.filter(c.Since)) {
		if err != nil {
			return err
		}
		switch err := c.requeueOne(ctx, queue, t, due); {
		case err == nil:
			requeued++
			due = due.Add(time.Duration(float64(time.Second) / c.Rate))
		case isRefusal(err):
			skipped[refusal(err)]++
		default:
			return fmt.Errorf("requeue, after %s: %w", text.Count(requeued, "task"), err)
		}
	}
	done()
	return c.tellRequeued(ctx, p, queue.Journal, begun, due, requeued, skipped)
}

// queueRequeuer is what requeueOne needs of a queue.
type queueRequeuer interface {
	RequeueDead(ctx context.Context, t *task.Task, due time.Time) error
}

func (c *requeueCommand) requeueOne(ctx context.Context, queue queueRequeuer, t *task.Task, due time.Time) error {
	if err := session.CheckInput(t); err != nil {
		return fmt.Errorf("%w: %w", state.ErrInputDropped, err)
	}
	return queue.RequeueDead(ctx, t, due)
}

// refusals are the reasons why a single task gets no fresh attempts.
var refusals = []error{state.ErrInputDropped, state.ErrDamaged, state.ErrNamed, state.ErrSucceeded,
	state.ErrNested, state.ErrReply, state.ErrOwned, state.ErrUnfinished, state.ErrNotFound}

func isRefusal(err error) bool {
	return slices.ContainsFunc(refusals, func(reason error) bool { return errors.Is(err, reason) })
}

func refusal(err error) string {
	for _, reason := range refusals {
		if errors.Is(err, reason) {
			return reason.Error()
		}
	}
	return ""
}

// tellRequeued says how many tasks were requeued, until when they become due, and why others were not.
func (c *requeueCommand) tellRequeued(ctx context.Context, p *Process, journal state.Store, begun, due time.Time,
	requeued int, skipped map[string]int) error {
	line := "requeued " + text.Count(requeued, "task")
	if requeued > 1 && due.Sub(begun) >= time.Second {
		line += fmt.Sprintf(", due until %s at %v a second", render.Stamp(due, begun), c.Rate)
	}
	if requeued > 0 {
		workers, err := journal.ListWorkers(ctx)
		if err == nil && !anyLives(workers) {
			line += "; " + noWorker
		}
	}
	if _, err := fmt.Fprintln(p.Stdout, line); err != nil {
		return err
	}
	for _, reason := range refusals {
		if n := skipped[reason.Error()]; n > 0 {
			_, _ = fmt.Fprintf(p.Stdout, "left %s: %v\n", text.Count(n, "task"), reason)
		}
	}
	return nil
}

// exported yields the tasks that --jsonl writes.
func (c *statusCommand) exported(ctx context.Context, journal state.Store) iter.Seq2[render.TaskView, error] {
	limit := 0
	if c.Limit != nil {
		limit = int(*c.Limit)
	}
	if c.Dead {
		filter := c.filter(c.Since)
		filter.Limit = limit
		return c.passing(ctx, journal, filter)
	}
	return c.views(ctx, journal, limit)
}

// writeLines writes each task with its attempts as a line of JSON.
func writeLines(ctx context.Context, w io.Writer, journal state.Store, tasks iter.Seq2[render.TaskView, error]) error {
	out := bufio.NewWriter(w)
	for view, err := range tasks {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		attempts, err := journal.Attempts(ctx, view.Number)
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if err := render.TaskLine(out, view, attempts); err != nil {
			return err
		}
	}
	return out.Flush()
}
