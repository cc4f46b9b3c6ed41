package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
)

// stateFlag says where the journal is; every subcommand has it.
type stateFlag struct {
	State string `group:"Journal" placeholder:"DIR" help:"The journal's directory. Default $RETRY_STATE_DIR, $XDG_STATE_HOME/retry or ~/.local/state/retry."`
}

// open opens the journal.
func (f *stateFlag) open(ctx context.Context, p *Process) (*state.Journal, error) {
	dir, err := state.Dir(f.State, p.getenv)
	if err != nil {
		return nil, err
	}
	journal, err := state.Open(ctx, dir)
	if err != nil {
		return nil, withHint(err, "retry doctor "+render.Command([]string{"--state", dir})+" says what is wrong")
	}
	return journal, nil
}

// read opens the journal for a report, which writes nothing. Where none is yet, there are no tasks.
func (f *stateFlag) read(ctx context.Context, p *Process) (*state.Journal, error) {
	dir, err := state.Dir(f.State, p.getenv)
	if err != nil {
		return nil, err
	}
	journal, err := state.OpenReader(ctx, dir)
	switch {
	case errors.Is(err, state.ErrNoJournal):
		return state.OpenEmpty(ctx)
	case err != nil:
		return nil, withHint(err, "retry doctor "+render.Command([]string{"--state", dir})+" says what is wrong")
	}
	return journal, nil
}

// journalFlags say what a run does with the journal.
type journalFlags struct {
	stateFlag
	NoState      bool `group:"Journal" help:"Keep no journal."`
	RequireState bool `group:"Journal" help:"Run nothing where the journal cannot be written."`

	Retention *duration `group:"Journal" placeholder:"TIME" help:"Keep finished tasks this long; 0 = for ever. Default $RETRY_RETENTION, or 30d."`
}

// openForRun opens the journal of a run. A journal that cannot be used never stops the command, unless it is required.
func (f *journalFlags) openForRun(ctx context.Context, p *Process, warn func(error)) (*guardedJournal, error) {
	g := &guardedJournal{warn: warn, required: f.RequireState, patience: p.stopping()}
	if f.NoState {
		if f.RequireState {
			return nil, errors.New("--no-state and --require-state exclude each other\nhint: give one of them")
		}
		return g, nil
	}
	journal, err := f.open(ctx, p)
	if !f.RequireState {
		g.renew = func(damage error) (*state.Journal, error) { return f.renew(ctx, p, warn, damage) }
		journal, err = g.renewed(journal, err)
	}
	if err != nil {
		return g, g.failed(err, f.RequireState)
	}
	g.journal = journal
	return g, nil
}

// guardedJournal keeps a failing journal from failing the command: it warns once, and goes on without.
type guardedJournal struct {
	journal  *state.Journal // nil where none is kept
	broken   atomic.Bool    // it failed; it stays open all the same, for the locks that say who owns the tasks
	warn     func(error)
	required bool                                       // fail instead, as long as nothing has run
	patience context.Context                            // how long a claim waits for other processes; nil: as long as it takes
	renew    func(damage error) (*state.Journal, error) // sets it aside and begins a new one; nil where that is not ours to do
}

// Claim implements runner.Journal.
func (g *guardedJournal) Claim(ctx context.Context, t *runner.Task, now time.Time) error {
	if g.absent() {
		return nil
	}
	if g.patience != nil {
		ctx = g.patience
	}
	err := g.journal.Claim(ctx, t, now)
	if t.Number == 0 && errors.Is(err, state.ErrCorrupt) && g.renewInPlace(err) {
		err = g.journal.Claim(ctx, t, now)
	}
	return g.failed(err, g.required && t.AttemptCount == 0)
}

// Note implements runner.Journal.
func (g *guardedJournal) Note(ctx context.Context, t *runner.Task, process string) {
	if g.absent() {
		return
	}
	// A disk that the command has just filled may still take the attempt's end: that has a reserve, and decides.
	if err := g.journal.Note(ctx, t, process); !errors.Is(err, state.ErrFull) {
		_ = g.failed(err, false) // it warns
	}
}

// Record implements runner.Journal.
func (g *guardedJournal) Record(ctx context.Context, t *runner.Task, a runner.Attempt) error {
	if g.absent() {
		return g.catchUp(ctx, t)
	}
	if err := g.failed(g.journal.Record(ctx, t, a), false); err != nil {
		return err
	}
	return g.catchUp(ctx, t)
}

// Settle implements runner.Journal.
func (g *guardedJournal) Settle(ctx context.Context, t *runner.Task, d runner.Decision) error {
	if g.absent() {
		return g.catchUp(ctx, t)
	}
	if err := g.failed(g.journal.Settle(ctx, t, d), false); err != nil {
		return err
	}
	return g.catchUp(ctx, t)
}

// CancelNested implements runner.Journal.
func (g *guardedJournal) CancelNested(ctx context.Context, t *runner.Task) {
	if g.absent() || t.Number == 0 {
		return
	}
	_ = g.failed(g.journal.CancelNested(ctx, t, time.Now()), false) // it warns
}

// catchUp writes the end of a task that the journal knows but could not follow, so that no resume runs it again.
func (g *guardedJournal) catchUp(ctx context.Context, t *runner.Task) error {
	if !g.broken.Load() || t.Number == 0 || !t.Status.Finished() {
		return nil
	}
	err := g.journal.CatchUp(ctx, t)
	switch {
	case err == nil, errors.Is(err, runner.ErrTaken):
		return err
	case errors.Is(err, state.ErrCorrupt): // that was said
		return nil
	}
	g.warn(fmt.Errorf("the journal still shows this task as unfinished: %w\nhint: do not resume it; when the journal can be written again: retry cancel %s", err, render.ShortID(t.ID)))
	return nil
}

// failed turns an error of the journal into a warning. That a task was taken is no error of the journal.
func (g *guardedJournal) failed(err error, fatal bool) error {
	switch {
	case err == nil, errors.Is(err, runner.ErrTaken), errors.Is(err, runner.ErrStopped), errors.Is(err, state.ErrNamed), fatal:
		return err
	}
	g.broken.Store(true)
	g.warn(fmt.Errorf("going on without a journal: %w", g.setAside(err)))
	return nil
}

// attempts returns the task's attempts as the journal has them. What was seen since it failed takes the place of what it lacks: a
// journal that cannot be written can often be read.
func (g *guardedJournal) attempts(ctx context.Context, t *runner.Task, seen []runner.Attempt) ([]runner.Attempt, error) {
	if g.journal == nil || t.Number == 0 {
		return seen, nil
	}
	stored, err := g.journal.Attempts(ctx, t.Number)
	if !g.broken.Load() {
		return stored, err
	}
	for i, a := range stored {
		if len(seen) > 0 && a.Number >= seen[0].Number {
			stored = stored[:i]
			break
		}
	}
	return append(stored, seen...), nil
}

func (g *guardedJournal) absent() bool {
	return g.journal == nil || g.broken.Load()
}

func (g *guardedJournal) close() {
	if g.journal != nil {
		_ = g.journal.Close() // every write was committed already
	}
}
