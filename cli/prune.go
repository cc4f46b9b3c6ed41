package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

type pruneCommand struct {
	flags.StateFlag
	OlderThan *flags.Duration `placeholder:"TIME" help:"Tasks that finished this long ago; 0 = all that have finished. Default $RETRY_RETENTION, or 30d."`
	Status    []wantedStatus  `placeholder:"S" help:"Only tasks of these statuses: succeeded, gave-up, failed, cancelled, or fail for failed and gave-up."`
	DryRun    bool            `help:"Say what would go, and remove nothing."`
	Vacuum    bool            `help:"Give the room back to the disk. Others have to wait for the journal meanwhile."`
}

const pruneUsage = `Remove finished tasks from the journal. Others can write to it meanwhile. What has not finished stays, and so does a success that
--once remembers, and a run that was cut off and of which something may still run.

Usage:
  retry prune [flags]

Examples:
  retry prune --older-than 7d --status succeeded    keep what went wrong
  retry prune --older-than 90d --vacuum             and give the room back to the disk
`

// pruneRows is the most that one transaction removes: other processes can write between two transactions.
const pruneRows = 2000

func (c *pruneCommand) Run(p *Process) (int, error) {
	retention, err := c.retention(p.Getenv, time.Now())
	if err != nil {
		return 0, err
	}
	return 0, p.withJournal(session.ChangeJournal, c.State, func(ctx context.Context, journal state.Store) error {
		if !c.DryRun && session.JournalAbsent(&p.Host, c.State) != nil {
			_, err := fmt.Fprintln(p.Stdout, "pruned 0 tasks")
			return err
		}
		done := p.Busy("looks for what can go")
		defer done()
		alive, err := p.LookAt(ctx, journal, &retention, 0)
		if err != nil {
			return err
		}
		if !c.DryRun {
			done()
			return c.prune(ctx, p, journal, retention, alive)
		}
		would, err := journal.Prunable(ctx, retention)
		done()
		if err != nil {
			return err
		}
		if err := render.Prunable(p.Stdout, would.Tasks, would.Oldest, would.Newest, time.Now()); err != nil {
			return err
		}
		return render.Kept(p.Stdout, alive)
	})
}

func (c *pruneCommand) prune(ctx context.Context, p *Process, journal state.Store, r state.Retention,
	alive []*task.Task) error {
	before, err := journal.Size()
	if err != nil {
		return err
	}
	done := p.Busy("removes tasks")
	defer done()
	tasks := 0
	for more := true; more; {
		var n int
		n, more, err = journal.Prune(ctx, r)
		tasks += n
		if err != nil {
			return fmt.Errorf("prune, after %s: %w", text.Count(tasks, "task"), err)
		}
	}
	done()
	_, _ = fmt.Fprintln(p.Stdout, "pruned", text.Count(tasks, "task"))
	_ = render.Kept(p.Stdout, alive)
	if !c.Vacuum {
		return nil
	}
	return vacuum(ctx, p, journal, before)
}

// retention says which tasks to remove. Where the variable keeps tasks for ever, a flag has to say.
func (c *pruneCommand) retention(getenv func(string) string, now time.Time) (r state.Retention, err error) {
	if c.DryRun && c.Vacuum {
		return r, errors.New("--dry-run and --vacuum exclude each other\nhint: give one of them")
	}
	kept, err := session.RetentionOf(c.OlderThan, getenv)
	switch {
	case err != nil:
		return r, err
	case kept == 0 && c.OlderThan == nil:
		return r, fmt.Errorf("%s=%s has finished tasks kept for ever"+
			"\nhint: --older-than 30d says which go; 0 is all of them",
			session.RetentionVariable, getenv(session.RetentionVariable))
	}
	r.Rows = pruneRows
	if kept > 0 {
		r.Before = now.Add(-kept)
	}
	for _, s := range c.Status {
		if !s.stored()[0].Finished() {
			word := strings.ReplaceAll(strings.ToLower(string(s)), "_", " ")
			return r, fmt.Errorf("--status: a task that is %s has not finished, and stays"+
				"\nhint: retry cancel TASK ends it; then --status cancelled", word)
		}
		r.Statuses = append(r.Statuses, s.stored()...)
	}
	slices.Sort(r.Statuses)
	r.Statuses = slices.Compact(r.Statuses)
	return r, nil
}

func vacuum(ctx context.Context, p *Process, journal state.Store, before state.Size) error {
	done := p.Busy("gives the room back")
	err := journal.Compact(ctx)
	done()
	if err != nil {
		return fmt.Errorf("give the room back: %w"+
			"\nhint: it needs as much free room as the journal takes, and nobody else writing; "+
			"what was pruned is gone all the same", err)
	}
	after, err := journal.Size()
	if err != nil {
		return err
	}
	freed := flags.Size(max(before.Total()-after.Total(), 0))
	_, _ = fmt.Fprintf(p.Stdout, "gave %v back to the disk; the journal takes %v now\n", freed, flags.Size(after.Total()))
	return nil
}
