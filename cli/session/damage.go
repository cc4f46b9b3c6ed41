package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
)

// replaceJournal sets a damaged journal aside and opens a new one. Of the processes that find the damage, one does so
// and tells.
func replaceJournal(ctx context.Context, p *Host, stateDir string, warn func(error), damage error) (state.Store, error) {
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
