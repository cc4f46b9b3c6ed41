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

// A run tidies up now and then, so little at once that nobody feels it: one of sixteen does, and each that made so many attempts that
// sixteen of its kind are more than one step removes. So at least as much goes as comes.
const (
	tidyEvery    = 16
	tidyRows     = 250                          // about 2 ms
	tidyAttempts = (tidyRows/tidyEvery - 1) / 2 // a task is one row, an attempt up to two
	tidyPatience = 100 * time.Millisecond       // for a journal that another process is writing to
)

// tidy removes a few of the tasks that finished longer ago than they are kept.
func (g *Journal) tidy(ctx context.Context, t *task.Task, kept time.Duration) error {
	if g.absent() || kept == 0 || t.Number == 0 || !t.Status.Finished() || !tidies(t) {
		return nil
	}
	before := time.Now().Add(-kept)
	if before.After(t.FinishedAt) {
		before = t.FinishedAt // a process does not see its own locks
	}
	ctx, cancel := context.WithTimeout(ctx, tidyPatience)
	defer cancel()
	if _, _, err := g.Journal.Prune(ctx, state.Retention{Before: before, Rows: tidyRows}); err != nil {
		return fmt.Errorf("remove old tasks from the journal: %w", err)
	}
	return nil
}

func tidies(t *task.Task) bool {
	return t.Number%tidyEvery == 0 || t.AttemptCount > tidyAttempts
}
