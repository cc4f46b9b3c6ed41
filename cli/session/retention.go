package session

import (
	"context"
	"fmt"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// How long finished tasks are kept, and the variable that says otherwise.
const (
	retentionDefault  = 30 * 24 * time.Hour
	RetentionVariable = "RETRY_RETENTION"
)

// RetentionOf returns how long finished tasks are kept: as the flag says, or the variable; 0 is for ever.
func RetentionOf(flag *flags.Duration, getenv func(string) string) (time.Duration, error) {
	if flag != nil {
		return time.Duration(*flag), nil
	}
	txt := getenv(RetentionVariable)
	if txt == "" {
		return retentionDefault, nil
	}
	kept, err := text.ParseDuration(txt)
	if err != nil {
		return 0, fmt.Errorf("in the environment (%s): %w", RetentionVariable, err)
	}
	return kept, nil
}

// One run in sixteen removes a few old tasks, and so does each run with so many attempts that sixteen like it write
// more rows than one step removes: the journal does not grow for ever.
const (
	tidyEvery    = 16
	tidyRows     = 250                          // about 2 ms
	tidyAttempts = (tidyRows/tidyEvery - 1) / 2 // a task is one row, an attempt up to two
	tidyPatience = 100 * time.Millisecond       // for a journal that another process is writing to
)

// tidy removes a few of the tasks that finished longer ago than they are kept.
func (g *Journal) tidy(ctx context.Context, p *Host, t *task.Task, kept time.Duration) error {
	if g.absent() || kept == 0 || t.Number == 0 || !t.Status.Finished() ||
		t.Number%tidyEvery != 0 && t.AttemptCount <= tidyAttempts {
		return nil
	}
	before := time.Now().Add(-kept)
	if before.After(t.FinishedAt) {
		before = t.FinishedAt // a process does not see its own locks
	}
	if err := p.tidy(ctx, g.Journal, state.Retention{Before: before, Rows: tidyRows}); err != nil {
		return fmt.Errorf("remove old tasks from the journal: %w", err)
	}
	return nil
}

func (p *Host) tidy(ctx context.Context, journal state.Store, r state.Retention) (err error) {
	asking, asked := context.WithTimeout(ctx, tidyPatience)
	_, err = p.LookAt(asking, journal, &r, tidyRows)
	asked()
	if err != nil {
		return err
	}
	pruning, cancel := context.WithTimeout(ctx, tidyPatience)
	defer cancel()
	_, _, err = journal.Prune(pruning, r)
	return err
}

// LookAt looks at the tasks that a retention selects and whose last attempt was cut off; with most, only among so many
// of the oldest tasks. It notes in the retention those of which nothing runs, and returns the others: the next run of
// their name, and of what they ran in, has to wait for what they left. Where the context ends, it knows less.
func (p *Host) LookAt(ctx context.Context, journal state.Store, r *state.Retention, most int) (alive []*task.Task,
	err error) {
	found, err := journal.CutOff(ctx, *r, most)
	left := p.newSurvivors(flags.SurvivorFlags{}, &Journal{Journal: journal})
	for _, t := range found {
		if ctx.Err() != nil {
			break
		}
		if what, err := left.Find(t, t.Last); what == "" && err == nil {
			r.Ended = append(r.Ended, t.Number)
			continue
		}
		alive = append(alive, t)
		for id := t.Parent; id != ""; {
			outer, err := journal.Find(ctx, id)
			if err != nil { // it is gone
				break
			}
			r.Outer, id = append(r.Outer, id), outer.Parent
		}
	}
	return alive, err
}
