package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// cancelCommand is `retry cancel TASK…`. What Ctrl-C does to a task is decided by task.Stopped.
type cancelCommand struct {
	flags.StateFlag
	All       bool            `help:"Every task that has not finished."`
	Status    []wantedStatus  `placeholder:"S" help:"Every task of these statuses: running, waiting, interrupted."`
	OlderThan *flags.Duration `placeholder:"TIME" help:"Every task made longer ago, of --status where that is given."`
	DryRun    bool            `help:"Say what would be cancelled, and cancel nothing."`
	Tasks     []string        `arg:"" optional:"" name:"task" help:"The tasks: an id, a beginning or an end of it, or a name."`
}

const cancelUsage = `Cancel tasks that have not finished. The running attempt of one gets TERM.

Usage:
  retry cancel [flags] TASK…
  retry cancel [flags] --all | --status S | --older-than TIME

Examples:
  retry cancel nightly                                    by its name; retry status shows names and ids
  retry cancel --status interrupted --older-than 7d       what nobody will go on with; --dry-run lists it
`

func (c *cancelCommand) Run(p *Process) (int, error) {
	many := c.All || len(c.Status) > 0 || c.OlderThan != nil
	switch {
	case !many && len(c.Tasks) == 0:
		return 0, errors.New("no task to cancel\nhint: retry cancel TASK…, or --all; retry status lists the tasks")
	case many && len(c.Tasks) > 0:
		return 0, errors.New("--all, --status and --older-than exclude a task\nhint: leave them out, or leave the task out")
	}
	if many {
		w, done := p.BusyUntilShown("looks for the tasks", p.Stdout)
		defer done()
		return 0, p.withJournal(session.ChangeJournal, c.State, func(ctx context.Context, journal state.Store) error {
			return c.cancelMany(ctx, w, journal)
		})
	}
	return 0, p.withJournal(session.ChangeJournal, c.State, func(ctx context.Context, journal state.Store) error {
		return each(c.Tasks, func(ref string) error {
			tk, err := journal.Find(ctx, ref)
			if err != nil {
				return err
			}
			return c.cancelOne(ctx, p.Stdout, journal, tk)
		})
	})
}

func (c *cancelCommand) cancelMany(ctx context.Context, w io.Writer, journal state.Store) error {
	filter := filterFlags{Status: c.Status}
	stored := filter.stored(0)
	if c.OlderThan != nil {
		stored.Until = time.Now().Add(-time.Duration(*c.OlderThan))
	}
	out := bufio.NewWriter(w) // flushed after each line but of --dry-run: there may be a million
	none := true
	var failures []error
	for view, err := range filter.of(ctx, journal, stored, false) {
		none = false
		switch {
		case err != nil:
		case c.DryRun:
			if err := wouldCancel(out, view.Task); err != nil {
				return err
			}
		default:
			err = c.cancelOne(ctx, out, journal, view.Task)
			if gone := out.Flush(); errors.Is(gone, syscall.EPIPE) { // as head does, to stop it
				return errors.Join(append(failures, gone)...)
			}
		}
		if err != nil && !errors.Is(err, state.ErrFinished) { // meanwhile, by itself or with its parent
			failures = append(failures, err)
		}
	}
	if none {
		_, _ = fmt.Fprintln(out, "nothing to cancel")
	}
	return errors.Join(append(failures, out.Flush())...)
}

func wouldCancel(w io.Writer, tk *task.Task) error {
	_, err := fmt.Fprintf(w, "would cancel %s: %s\n", render.ShortID(tk.ID), render.Title(tk))
	return err
}

func (c *cancelCommand) cancelOne(ctx context.Context, w io.Writer, journal state.Store, tk *task.Task) error {
	if c.DryRun && !tk.Status.Finished() {
		return wouldCancel(w, tk)
	}
	if err := journal.Cancel(ctx, tk.Number, time.Now()); err != nil {
		return fmt.Errorf("cancel %s: %w", render.ShortID(tk.ID), err)
	}
	note, err := session.StopCancelled(ctx, journal, tk)
	if err != nil {
		return fmt.Errorf("cancel %s: %w", render.ShortID(tk.ID), err)
	}
	_, _ = fmt.Fprintf(w, "cancelled %s%s\n", render.ShortID(tk.ID), note)
	return nil
}
