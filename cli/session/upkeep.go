package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// replaceJournal sets a damaged journal aside and opens a new one. Of the processes that find the damage, one does so
// and tells.
func replaceJournal(ctx context.Context, p *Host, stateDir string, warn func(error), damage error) (*sqlite.Journal, error) {
	aside, err := sqlite.SetAside(ctx, damage)
	if err != nil {
		return nil, err
	}
	journal, err := OpenJournal(ctx, p, stateDir)
	switch {
	case aside == "":
		return journal, err
	case err != nil:
		return nil, fmt.Errorf("the damaged one is now in %s, and no new one could be begun: %w", aside, err)
	}
	warn(fmt.Errorf("the journal was damaged (%w); it is now in %s, and a new one was begun%s", withoutHint(damage), aside, recovery(aside)))
	return journal, nil
}

// withoutHint returns an error without its hint.
func withoutHint(err error) error {
	var fault *state.Fault
	if errors.As(err, &fault) {
		return fault.Err
	}
	return err
}

func recovery(aside string) string {
	return fmt.Sprintf(""+
		"\nhint: its tasks are not resumed; retry doctor %s says what is wrong with it, and sqlite3 %s .recover saves what can be read",
		render.Command([]string{"--state", aside}), render.Command([]string{filepath.Join(aside, "journal.db")}))
}

// replaceDamaged replaces a journal that could not be opened for its damage.
func (g *Journal) replaceDamaged(journal *sqlite.Journal, err error) (*sqlite.Journal, error) {
	if !errors.Is(err, state.ErrCorrupt) {
		return journal, err
	}
	return g.replace(err)
}

// replaceInPlace replaces a journal that turned out to be damaged before it knew of the task. It reports whether there
// is another.
func (g *Journal) replaceInPlace(damage error) bool {
	if g.replace == nil {
		return false
	}
	journal, err := g.replace(damage)
	if err != nil {
		return false
	}
	_ = g.Journal.Close()
	g.Journal = journal
	return true
}

// setAside sees to it that the next run has a new journal. This one goes on without: its task is in the damaged one.
func (g *Journal) setAside(damage error) error {
	if g.replace == nil || !errors.Is(damage, state.ErrCorrupt) {
		return damage
	}
	aside, err := sqlite.SetAside(context.Background(), damage)
	if err != nil || aside == "" {
		return damage
	}
	return fmt.Errorf("%w; it is now in %s%s", withoutHint(damage), aside, recovery(aside))
}

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

// A run tidies up now and then, so little at once that nobody feels it: one of sixteen does, and each that made so many
// attempts that sixteen of its kind are more than one step removes. So at least as much goes as comes.
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
