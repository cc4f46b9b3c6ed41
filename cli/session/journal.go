package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Journal keeps a failing store from failing the command: it warns once, and the run goes on without a journal.
type Journal struct {
	Journal  state.Store // nil where none is kept
	lost     error       // the damage of the one that was replaced; nil: none was
	moved    bool        // the damaged one was set aside, and no new one could be begun
	named    bool        // the run has a name, which only a journal can keep from running twice
	broken   atomic.Bool // it failed; it stays open all the same, for the locks that say who owns the tasks
	gone     atomic.Bool // no later command finds the task: the journal was set aside, or moved away
	began    time.Time   // the latest attempt, whether the journal has it or not
	left     int64       // the number that the task has in a journal that is gone; 0 in any other
	warn     func(error)
	required bool            // fail instead, as long as nothing has run
	Resumes  bool            // fail instead until the task ends: a resume has nothing but its journal
	Stopping context.Context // ends with the first signal that asks to stop; nil: with none
	// signalled reports whether a signal that this process outlives may have ended the writer of stdin, whose end was read
	// then. nil: nobody knows.
	signalled func(ended time.Time) bool
	outer     outerAttempt                // what this process runs in, where that matters
	waited    atomic.Int64                // nanoseconds, for other processes
	reopen    func() (state.Store, error) // begins a new one in place of a damaged one; nil where this process must not
}

// Claim implements runner.Journal.
func (g *Journal) Claim(ctx context.Context, t *task.Task, now time.Time) error {
	if g.began = now; g.absent() {
		return nil
	}
	ctx, stored := cmp.Or(g.Stopping, ctx), t.Number != 0
	if err := g.endWithOuter(ctx, t); err != nil {
		return err
	}
	limited, done := g.limit(ctx)
	err := g.Journal.Claim(limited, t, now)
	done()
	if t.Number == 0 && g.lost == nil && errors.Is(err, state.ErrCorrupt) {
		if err = g.ownAgain(t, g.replace(err)); err == nil {
			return g.Claim(ctx, t, now)
		}
	}
	// The journal has the task, and says that the attempt has not begun: a resume would send the request once more. A
	// damaged journal is set aside, and nobody resumes its tasks.
	if hasFailed(err) && !errors.Is(err, state.ErrCorrupt) && stored && t.Unsafe() {
		return fmt.Errorf("%s is not sent: the journal could not say so, and a resume would send it once more: %w"+
			"\nhint: to go on: retry resume %s", t.Target.Verb(), err, render.ShortID(t.ID))
	}
	return g.failed(err, t, g.required && t.AttemptCount == 0)
}

// create stores a task that has to wait before its first attempt, so that a resume takes it up where this run is ended
// meanwhile.
func (g *Journal) create(ctx context.Context, t, instead *task.Task) error {
	if g.absent() {
		return nil
	}
	limited, done := g.limit(cmp.Or(g.Stopping, ctx))
	err := g.Journal.Create(limited, t, instead)
	done()
	if err != nil || instead == nil {
		return g.failed(err, t, g.required)
	}
	if err := g.Journal.CancelNested(ctx, instead, time.Time{}, time.Now()); err != nil { // a resume cancels them, too
		g.warn(err)
	}
	_ = g.Journal.Release(instead.Number)
	return nil
}

// amend stores what a line has changed of the task that it continues, before anything of that begins. A later resume
// does not know of it where that fails; whether the run goes on then is for the claim of its next attempt to say.
func (g *Journal) amend(ctx context.Context, t *task.Task, changed bool) error {
	if !changed {
		return nil
	}
	limited, done := g.limit(ctx)
	defer done()
	err := g.Journal.Amend(limited, t)
	if !hasFailed(err) || g.Resumes || g.required {
		return err
	}
	g.warn(runner.Loss{Err: fmt.Errorf("what this line says holds for this run alone: %w", err), New: true})
	return nil
}

// NoteProcess implements runner.Journal.
func (g *Journal) NoteProcess(ctx context.Context, t *task.Task, process string) bool {
	if g.Journal == nil || g.gone.Load() || t.Number == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	broken := g.broken.Load()
	var err error
	if broken {
		err = g.Journal.ClaimLate(ctx, t, g.began, process)
	} else {
		err = g.Journal.NoteProcess(ctx, t, process)
	}
	if errors.Is(err, state.ErrFull) || errors.Is(err, state.ErrLocked) {
		return false // where it lasts, the write of the attempt's end says so
	}
	if !broken {
		_ = g.failed(err, t, false) // it warns, or leaves a resume to its next write
	}
	return true
}

// NoteStart implements runner.Journal. Where the journal cannot be written for now, the note is all that a resume knows
// of the attempt.
func (g *Journal) NoteStart(t *task.Task, process string) {
	if g.Journal != nil && !g.gone.Load() {
		g.Journal.NoteStart(t, process)
	}
}

// Record implements runner.Journal.
func (g *Journal) Record(ctx context.Context, t *task.Task, a task.Attempt) error {
	err := g.write(ctx, t, func(ctx context.Context) error { return g.Journal.Record(ctx, t, a) })
	return cmp.Or(err, g.endCutOff(ctx, t, a.Decision))
}

// endCutOff ends a task that a signal has cut off with its outer one.
func (g *Journal) endCutOff(ctx context.Context, t *task.Task, d task.Decision) error {
	if d.Verdict != task.VerdictInterrupted {
		return nil
	}
	return g.endWithOuter(ctx, t)
}

// endWithOuter cancels a task where its outer one was cancelled, which ends all of that; in a group of its own, as that
// of timeout(1), it has had no signal. The error is that of a task that another process has cancelled.
func (g *Journal) endWithOuter(ctx context.Context, t *task.Task) error {
	if !g.endsWithOuter(ctx, t) {
		return nil
	}
	if t.Number != 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shortly)
		defer cancel()
		_ = g.Journal.Cancel(ctx, t.Number, time.Now()) // where it fails, resume --all does it
	}
	return task.ErrNotOwner
}

// endsWithOuter reports whether a task was cancelled in which this one is nested, however deep.
func (g *Journal) endsWithOuter(ctx context.Context, t *task.Task) bool {
	if t.Parent == "" || g.absent() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shortly)
	defer cancel()
	inner := &task.Task{ID: t.ID, Parent: t.Parent, CreatedAt: started}
	if t.Number != 0 {
		var err error
		inner, err = g.Journal.Find(ctx, t.ID)
		if err != nil || inner.Status == task.Cancelled { // a requeue of the outer one may have cancelled it, or freed it
			return err == nil
		}
	}
	if g.outerWasCancelled(ctx, t) {
		return true
	}
	for range 100 {
		outer, err := OuterOf(ctx, g.Journal, inner)
		if err != nil || outer == nil || outer.Status == task.Cancelled {
			return err == nil && outer != nil
		}
		inner = outer
	}
	return false
}

// started is when this process began: the end of its input may be that of a writer which a cancel has ended.
var started = time.Now()

// RecordAndClaim implements runner.Journal. It waits shortly and does not warn: where it fails, Record and Claim
// follow.
func (g *Journal) RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error {
	switch {
	case g.absent() || t.Number == 0:
		return errors.New("there is no journal to write to")
	case t.Parent != "":
		return errors.New("the claim asks whether the outer task was cancelled")
	}
	ctx, done := g.limitTo(cmp.Or(g.Stopping, ctx), shortly)
	defer done()
	return g.Journal.RecordAndClaim(ctx, t, a, now)
}

// Unclaim implements runner.Journal.
func (g *Journal) Unclaim(ctx context.Context, t *task.Task) {
	if g.absent() {
		return
	}
	ctx, done := g.limit(ctx)
	defer done()
	_ = g.failed(g.Journal.Unclaim(ctx, t), t, false) // it warns; Settle finds out where the task was cancelled
}

// Settle implements runner.Journal.
func (g *Journal) Settle(ctx context.Context, t *task.Task, d task.Decision) error {
	err := g.write(ctx, t, func(ctx context.Context) error { return g.Journal.Settle(ctx, t, d) })
	return cmp.Or(err, g.endCutOff(ctx, t, d))
}

// write writes what became of a task. Where the journal fails, or failed earlier in the run, the end of the task is
// written all the same if that is possible by then, so that no resume runs it again.
func (g *Journal) write(ctx context.Context, t *task.Task, write func(context.Context) error) error {
	ended, untold := max(g.left, t.Number) != 0 && t.Status.Finished(), false
	if !g.absent() {
		limited, done := g.limit(ctx)
		err := write(limited)
		done()
		if untold = ended && (errors.Is(err, state.ErrLocked) || errors.Is(err, state.ErrFull)); untold {
			g.broken.Store(true)
		} else if err := g.failed(err, t, false); err != nil {
			return err
		}
	}
	switch {
	case g.gone.Load():
		g.left = max(g.left, t.Number)
		if t.Number = g.left; ended {
			g.endMoved(ctx, t)
		}
		t.Number = 0 // as of a run without a journal, whose last line names no task
	case g.broken.Load() && ended:
		return g.catchUp(ctx, t, untold)
	}
	return nil
}

// endMoved writes the end of a task to a journal that was moved away, and keeps it for a backup in its place: either
// may have the task, unfinished. The run has warned already.
func (g *Journal) endMoved(ctx context.Context, t *task.Task) {
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	_ = g.Journal.CatchUp(ctx, t)
	_ = g.Journal.KeepEnd(t)
}

// catchUp writes the end of a task, or keeps it beside the journal. It warns of a failure that nobody was told of yet.
func (g *Journal) catchUp(ctx context.Context, t *task.Task, untold bool) error {
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	err := g.Journal.CatchUp(ctx, t)
	switch {
	case !hasFailed(err):
		return err
	case !errors.Is(err, state.ErrCorrupt) && g.Journal.KeepEnd(t) == nil:
		const kept = "the end of the task is kept beside the journal, for the next resume to write it there"
		if o := t.Last.Outcome; o.Stdout+o.Stderr != "" {
			g.warn(runner.Loss{Err: fmt.Errorf(kept+", without the captured output: %w", err), New: true})
			return nil
		}
		g.warn(fmt.Errorf(kept+": %w", err))
		return nil
	}
	err = stillShown(fmt.Errorf("the end of the task is not in the journal: %w", err), t)
	g.warn(runner.Loss{Err: err, New: untold})
	return nil
}

// NextAttempt implements runner.Journal.
func (g *Journal) NextAttempt(ctx context.Context, t *task.Task) time.Time {
	if g.absent() || t.Number == 0 {
		return t.NextAttemptAt
	}
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	due, err := g.Journal.NextAttempt(ctx, t.Number)
	if err != nil { // the wait goes on as it was decided; the next write says what is wrong
		return t.NextAttemptAt
	}
	return due
}

// CancelNested implements runner.Journal.
func (g *Journal) CancelNested(ctx context.Context, t *task.Task, before time.Time) {
	if !g.absent() && t.Number != 0 && t.Kind == task.KindCommand {
		_ = g.failed(g.Journal.CancelNested(ctx, t, before, time.Now()), t, false) // it warns
	}
}

// A run waits for other processes with patience in all, and shortly in a call that it can do without.
const (
	patience = 5 * time.Second
	shortly  = 100 * time.Millisecond
)

// limit returns the context of a call, which ends with what is left of the run's patience. done must follow the call.
func (g *Journal) limit(ctx context.Context) (limited context.Context, done func()) {
	return g.limitTo(ctx, max(shortly, patience-time.Duration(g.waited.Load())))
}

func (g *Journal) limitTo(ctx context.Context, most time.Duration) (limited context.Context, done func()) {
	limited, cancel := context.WithTimeout(ctx, most)
	begun := time.Now()
	return limited, func() {
		cancel()
		if took := time.Since(begun); took > shortly {
			g.waited.Add(int64(took))
		}
	}
}

// hasFailed reports whether the journal failed. That the task has another owner, or that a signal came, is its answer.
func hasFailed(err error) bool {
	return err != nil && !errors.Is(err, task.ErrNotOwner) && !errors.Is(err, task.ErrStopped) &&
		!nameIsTaken(err)
}

// nameIsTaken reports whether the store has refused a new task for the sake of another one with its name.
func nameIsTaken(err error) bool {
	return errors.Is(err, state.ErrNamed) || errors.Is(err, state.ErrSucceeded) || errors.Is(err, state.ErrMayBeDone)
}

// failed turns a failure of the journal into a warning, unless it is fatal. Other errors are returned.
func (g *Journal) failed(err error, t *task.Task, fatal bool) error {
	switch {
	case !hasFailed(err), fatal && t == nil:
		return err
	case fatal:
		return stillShown(err, t)
	case g.Resumes && !t.Status.Finished(): // each later resume would run the same attempt again
		return fmt.Errorf("it goes no further than the journal can say: %w", err)
	}
	g.broken.Store(true)
	g.gone.Store(errors.Is(err, state.ErrMoved) || errors.Is(err, state.ErrCorrupt) && g.reopen != nil)
	what, without := "going on without a journal", true
	if t != nil && t.Number != 0 && !g.gone.Load() {
		what, without = "the journal cannot be written for now", false
	}
	moved, err := g.setAside(err)
	err = fmt.Errorf("%s: %w", what, err)
	if t != nil && !g.gone.Load() {
		err = stillShown(err, t)
	}
	if moved || g.moved || without && g.named {
		err = runner.Loss{Err: err, New: true}
	}
	g.warn(err)
	return nil
}

// stillShown says what to do where a task stays in a journal that could not be written.
func stillShown(err error, t *task.Task) error {
	if t.Number == 0 || errors.Is(err, state.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w; should it show %s as interrupted later, end it with retry cancel %[2]s", err,
		render.ShortID(t.ID))
}

// attempts returns the stored attempts of a task. Where the journal failed during the run, the attempts that the run
// has seen since then replace the stored ones: a journal that cannot be written can often be read.
func (g *Journal) attempts(ctx context.Context, t *task.Task, seen []task.Attempt) ([]task.Attempt, error) {
	if g.Journal == nil || t.Number == 0 {
		return seen, nil
	}
	stored, err := g.Journal.Attempts(ctx, t.Number)
	if !g.broken.Load() {
		return stored, err
	}
	stored = slices.DeleteFunc(stored, func(a task.Attempt) bool { return len(seen) > 0 && a.Number >= seen[0].Number })
	return append(stored, seen...), nil
}

// tryAgain has a new task try the journal that has failed for the one before it: what it cannot write then, it tells.
func (g *Journal) tryAgain() {
	if !g.gone.Load() {
		g.broken.Store(false)
	}
}

func (g *Journal) absent() bool {
	return g.Journal == nil || g.broken.Load()
}
