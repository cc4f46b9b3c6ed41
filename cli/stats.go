package cli

import (
	"context"
	"io"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/state"
)

type statsCommand struct {
	flags.StateFlag
	session.PagerFlag
	Since *flags.Since `placeholder:"TIME" help:"Only tasks made since then: 2h, yesterday, 15:04, 2026-11-20, or RFC 3339."`
	JSON  bool         `help:"Print JSON; its fields are stable."`
	Limit *flags.Count `placeholder:"N" help:"Show the first N commands; 0 = all. Default 20, with --json all."`
}

const statsUsage = `Sum the tasks of the journal up by name, or by command line where they have none. What is broken now comes first: whose last run
failed. LAST is that run, or "running"; cancelled ones say nothing.
P50 and P95 are of a run's duration, waits included: half and 95 % of the runs that ended took no longer. WAITED is the time
between attempts, OPEN what has not finished. On a narrow terminal some columns give way to the command lines; a pipe gets all.

Usage:
  retry stats [flags]

Examples:
  retry stats --since 7d        the last week
  retry stats --limit 0         all commands, not the first 20
`

func (c *statsCommand) Run(p *Process) (int, error) {
	var from time.Time
	if c.Since != nil {
		from = time.Time(*c.Since)
	}
	limit := tableLimit
	switch {
	case c.Limit != nil:
		limit = int(*c.Limit)
	case c.JSON:
		limit = 0
	}
	return 0, p.withJournal(session.ReadJournal, c.State, func(ctx context.Context, journal state.Store) error {
		done := p.Busy("sums up the tasks")
		shown, all, err := journal.Stats(ctx, from, limit)
		done()
		if err != nil {
			return err
		}
		if c.JSON {
			return render.StatsJSON(p.Stdout, shown, from)
		}
		return p.Paged(c.PagerFlag, func(w io.Writer, s render.Screen) error {
			return render.Stats(w, s, shown, all-len(shown), from, time.Now())
		})
	})
}
