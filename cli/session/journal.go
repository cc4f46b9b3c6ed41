package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// OpenJournal opens the journal, and makes it where there is none.
func OpenJournal(ctx context.Context, p *Host, stateDir string) (state.Store, error) {
	return openWith(ctx, sqlite.Open, p, stateDir)
}

// ReadJournal opens the journal for a report, which writes nothing. Where none is yet, there are no tasks.
func ReadJournal(ctx context.Context, p *Host, stateDir string) (state.Store, error) {
	journal, err := openWith(ctx, sqlite.OpenReader, p, stateDir)
	if errors.Is(err, state.ErrNoJournal) {
		return openWith(ctx, func(context.Context, string) (*sqlite.Journal, error) { return sqlite.OpenEmpty() }, p, stateDir)
	}
	return journal, err
}

func openWith(ctx context.Context, open func(context.Context, string) (*sqlite.Journal, error), p *Host,
	stateDir string) (state.Store, error) {
	dir, err := lock.Dir(stateDir, p.Getenv)
	if err != nil {
		return nil, err
	}
	journal, err := open(ctx, dir)
	if err != nil {
		return nil, text.WithHint(err, "retry doctor "+render.Command([]string{"--state", dir})+" says what is wrong")
	}
	return journal, nil
}

// openForRun opens the journal of a run. A journal that cannot be used never stops the command, unless it is required.
func openForRun(ctx context.Context, p *Host, stateDir string, f *flags.JournalFlags, warn func(error)) (*Journal, error) {
	g := &Journal{warn: warn, required: f.RequireState, Stopping: p.Stopping()}
	if f.NoState {
		if f.RequireState {
			return nil, errors.New("--no-state and --require-state exclude each other\nhint: give one of them")
		}
		return g, nil
	}
	journal, err := openWith(ctx, func(ctx context.Context, dir string) (*sqlite.Journal, error) {
		j, err := sqlite.Open(ctx, dir)
		if err == nil {
			j.SyncFirst = f.RequireState
		}
		return j, err
	}, p, stateDir)
	if !f.RequireState {
		g.replace = func(damage error) (state.Store, error) {
			g.lost = damage
			return replaceJournal(ctx, p, stateDir, warn, damage)
		}
		if errors.Is(err, state.ErrCorrupt) {
			journal, err = g.replace(err)
		}
	}
	if err != nil {
		return g, g.failed(err, nil, f.RequireState)
	}
	g.Journal = journal
	return g, nil
}

// Journal keeps a failing journal from failing the command: it warns once, and goes on without.
type Journal struct {
	Journal  state.Store // nil where none is kept
	lost     error       // the damage of the one that was there before; nil: none was lost
	broken   atomic.Bool // it failed; it stays open all the same, for the locks that say who owns the tasks
	warn     func(error)
	required bool                                    // fail instead, as long as nothing has run
	Stopping context.Context                         // ends with the first signal that asks to stop; nil: with none
	waited   atomic.Int64                            // nanoseconds, for other processes
	replace  func(damage error) (state.Store, error) // sets it aside and begins a new one; nil where that is not ours to do
}

// Claim implements runner.Journal.
func (g *Journal) Claim(ctx context.Context, t *task.Task, now time.Time) error {
	if g.absent() {
		return nil
	}
	if g.Stopping != nil {
		ctx = g.Stopping
	}
	limited, done := g.limit(ctx)
	err := g.Journal.Claim(limited, t, now)
	done()
	if t.Number == 0 && errors.Is(err, state.ErrCorrupt) && g.replaceInPlace(err) {
		limited, done := g.limit(ctx)
		err = g.Journal.Claim(limited, t, now)
		done()
	}
	if isTrouble(err) && !errors.Is(err, state.ErrCorrupt) &&
		t.Number != 0 && t.Target != nil && !t.Target.Safe() { // a damaged journal is set aside: nobody resumes what it holds
		return fmt.Errorf("%s is not sent again: the journal could not say so, and a resume would send it once more: %w"+
			"\nhint: to go on: retry resume %s", t.Target.Verb(), err, render.ShortID(t.ID))
	}
	return g.failed(err, t, g.required && t.AttemptCount == 0)
}

// NoteProcess implements runner.Journal.
func (g *Journal) NoteProcess(ctx context.Context, t *task.Task, process string) {
	if g.absent() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	// A disk that the command has just filled, or a lock, may yet let the attempt's end pass: that decides.
	if err := g.Journal.NoteProcess(ctx, t, process); !errors.Is(err, state.ErrFull) && !errors.Is(err, state.ErrLocked) {
		_ = g.failed(err, t, false) // it warns
	}
}

// Record implements runner.Journal.
func (g *Journal) Record(ctx context.Context, t *task.Task, a task.Attempt) error {
	return g.write(ctx, t, func(ctx context.Context) error { return g.Journal.Record(ctx, t, a) })
}

// RecordAndClaim implements runner.Chainer. It gives up soon: then Record is patient, and warns, and a signal can end
// the wait of Claim.
func (g *Journal) RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error {
	if g.absent() || t.Number == 0 {
		return errors.New("there is no journal to write to")
	}
	if g.Stopping != nil {
		ctx = g.Stopping
	}
	limited, done := g.limit(ctx)
	defer done()
	limited, cancel := context.WithTimeout(limited, shortly)
	defer cancel()
	return g.Journal.RecordAndClaim(limited, t, a, now)
}

// Unclaim implements runner.Chainer.
func (g *Journal) Unclaim(ctx context.Context, t *task.Task) {
	if g.absent() {
		return
	}
	limited, done := g.limit(ctx)
	err := g.Journal.Unclaim(limited, t)
	done()
	_ = g.failed(err, t, false) // it warns; a task that was cancelled is Settle's to find
}

// Settle implements runner.Journal.
func (g *Journal) Settle(ctx context.Context, t *task.Task, d task.Decision) error {
	return g.write(ctx, t, func(ctx context.Context) error { return g.Journal.Settle(ctx, t, d) })
}

// write writes what became of a task. A journal that knows the task but could not follow gets its end, so that no
// resume runs it again.
func (g *Journal) write(ctx context.Context, t *task.Task, write func(context.Context) error) error {
	if !g.absent() {
		limited, done := g.limit(ctx)
		err := write(limited)
		done()
		if err := g.failed(err, t, false); err != nil {
			return err
		}
	}
	if !g.broken.Load() || t.Number == 0 || !t.Status.Finished() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	if err := g.Journal.CatchUp(ctx, t); errors.Is(err, task.ErrNotOwner) {
		return err
	}
	return nil // what to do then was said with the first failure
}

// CancelNested implements runner.Journal.
func (g *Journal) CancelNested(ctx context.Context, t *task.Task) {
	if g.absent() || t.Number == 0 {
		return
	}
	_ = g.failed(g.Journal.CancelNested(ctx, t, time.Now()), t, false) // it warns
}

// patience is how long a run waits for other processes in all, and shortly how long for what can do without.
const (
	patience = 5 * time.Second
	shortly  = 100 * time.Millisecond
)

// limit lets a write wait for other processes for what is left of the run's patience: the waits of many attempts must
// not add up. done ends the write.
func (g *Journal) limit(ctx context.Context) (limited context.Context, done func()) {
	limited, cancel := context.WithTimeout(ctx, max(shortly, patience-time.Duration(g.waited.Load())))
	begun := time.Now()
	return limited, func() {
		cancel()
		if took := time.Since(begun); took > shortly {
			g.waited.Add(int64(took))
		}
	}
}

// isTrouble reports whether an error is one of the journal. That a task was taken is none.
func isTrouble(err error) bool {
	return err != nil && !errors.Is(err, task.ErrNotOwner) && !errors.Is(err, task.ErrStopped) && !errors.Is(err, state.ErrNamed)
}

// failed turns an error of the journal into a warning.
func (g *Journal) failed(err error, t *task.Task, fatal bool) error {
	if fatal || !isTrouble(err) {
		return err
	}
	g.broken.Store(true)
	err = fmt.Errorf("going on without a journal: %w", g.setAside(err))
	if t != nil && t.Number != 0 && !errors.Is(err, state.ErrCorrupt) {
		err = fmt.Errorf("%w; should it show %s as interrupted later, end it with retry cancel %[2]s", err, render.ShortID(t.ID))
	}
	g.warn(err)
	return nil
}

// attempts returns the task's attempts as the journal has them. What was seen since it failed takes the place of what
// it lacks: a journal that cannot be written can often be read.
func (g *Journal) attempts(ctx context.Context, t *task.Task, seen []task.Attempt) ([]task.Attempt, error) {
	if g.Journal == nil || t.Number == 0 {
		return seen, nil
	}
	stored, err := g.Journal.Attempts(ctx, t.Number)
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

func (g *Journal) absent() bool {
	return g.Journal == nil || g.broken.Load()
}

// JournalAbsent says that no journal is where one is looked for, which most commands take for one without tasks. It is
// nil where a journal is, or where something keeps us from looking.
func JournalAbsent(p *Host, stateDir string) error {
	place, err := lock.Locate(stateDir, p.Getenv)
	if err != nil || sqlite.Exists(place.Dir) {
		return nil
	}
	return fmt.Errorf("%s (%s): no journal there yet"+
		"\nhint: the first run makes it; do the jobs run as another user, or with another RETRY_STATE_DIR?",
		text.Escape(place.Dir), place.Source)
}
