package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// maxName is in bytes: a name is typed, and stands in tables and metrics.
const maxName = 200

// checkName refuses flags about a name that make no sense.
func (w *Wrapper) checkName(typed []string) error {
	name := flags.OrEmpty(w.ID)
	aboutNames := func(flag string) bool { // a variable may say them for the runs that have a name
		return slices.Contains([]string{"fresh", "once", "kill-orphans", "assume-dead", "if-running"}, flag)
	}
	switch {
	case w.ID != nil && *w.ID == "":
		return errors.New("--id is empty\nhint: a variable that is not set?")
	case w.ID == nil && slices.ContainsFunc(typed, aboutNames):
		return errors.New("--fresh, --once, --kill-orphans, --assume-dead and --if-running are about a name" +
			"\nhint: give the task one with --id KEY")
	case len(name) > maxName:
		return fmt.Errorf("--id: the name has %d bytes, and %d are the most"+
			"\nhint: what tells one run from another belongs to the command, not to the name", len(name), maxName)
	case w.ID != nil && w.NoState:
		return errors.New("--id needs a journal, and --no-state keeps none\nhint: give one of them")
	case w.Fresh && w.Once:
		return errors.New("--fresh and --once exclude each other\nhint: give one of them")
	}
	return nil
}

// The pause between two checks whether a running task of the name has ended grows from the first to the longest.
const (
	firstNamePause   = 10 * time.Millisecond
	longestNamePause = 500 * time.Millisecond
)

// nameResult says what to do about earlier tasks with the name of a new one.
type nameResult struct {
	interrupted *task.Task   // the task to resume, which this process owns; nil: the new one is started
	amended     bool         // it differs from what is stored, since this line says so
	done        bool         // nothing is to be run
	discarded   *task.Task   // a task that the new one replaces, and that may have left processes running
	cutOff      []*task.Task // other tasks of the name that may have done so too
	before      *task.Source // the stdin of a run of the same work that was cut off, and has been ended since
	waited      bool         // for another run of the name
}

// sourceBefore returns the stdin of the task that the new one takes the place of; nil for none.
func (r nameResult) sourceBefore(fresh bool) *task.Source {
	switch {
	case r.interrupted != nil:
		return &r.interrupted.Options.Source
	case r.discarded != nil && !fresh: // it cannot go on
		return &r.discarded.Options.Source
	}
	return r.before
}

// acquire makes this process the one that may start a task of the name. Where another process runs one, the flags say
// whether to wait for its end, at most until the deadline.
func (w *Wrapper) acquire(ctx context.Context, p *Host, journal *Journal, t *task.Task,
	lines render.Observer) (nameResult, error) {
	if w.ID == nil || journal.absent() {
		return nameResult{}, nil
	}
	limited := w.Deadline != nil || p.Getenv(cmdexec.EnvDeadline) != "" // a budget begins after the wait
	told := false
	for pause := firstNamePause; ; pause = min(2*pause, longestNamePause) {
		found, err := w.tryAcquire(ctx, journal.Journal, t, p.Typed, lines)
		if err == nil && !found.done {
			var latest *task.Task
			found.cutOff, latest, err = cutOffRuns(ctx, journal.Journal, t)
			found.before = w.cutOffSource(latest, t)
		}
		switch d := found.discarded; {
		case d == nil || d.Queue != task.QueueWorker:
		case slices.Contains(cmdexec.OuterTasks(p.Getenv), d.ID):
			err = fmt.Errorf("%w: %s is what this command runs in, and --fresh would end that"+
				"\nhint: give the inner task another name", errName, text.Escape(t.Name))
		case isInHand(ctx, journal.Journal, d):
			_ = journal.Journal.ReleaseName(t.Name)
			err = &runningError{name: t.Name, queued: render.ShortID(d.ID)}
		}
		running, isRunning := errors.AsType[*runningError](err)
		switch {
		case !isRunning:
			found.waited = told
			return found, journal.failed(err, nil, journal.required || errors.Is(err, errName))
		case w.IfRunning == "fail":
			return found, fmt.Errorf("%w"+
				"\nhint: --if-running wait waits for its end, --if-running skip does nothing then", running)
		case runsInside(ctx, p, journal.Journal, t.Name): // what the outer one is there for would never be done
			return found, fmt.Errorf("%w: %s is what this command runs in, and would wait for itself, or do nothing"+
				"\nhint: give the inner task another name", errName, text.Escape(t.Name))
		case w.IfRunning == "skip":
			lines.Say(running.Error() + ": nothing is done")
			warnOfNoWorker(ctx, journal.Journal, running, lines.Warn)
			return nameResult{done: true}, nil
		case limited && t.Policy.Left(t.History.Began, time.Now()) < 0:
			return found, fmt.Errorf("%w while %s", policies.ErrDeadlinePassed, running.Error())
		case !told:
			lines.Say(running.Error() + ": waiting for its end")
			warnOfNoWorker(ctx, journal.Journal, running, lines.Warn)
			told = true
		}
		select { // there is nothing to clean up yet
		case <-time.After(pause):
		case sig := <-p.signals: // before Listen was called, a signal ends retry itself
			if task.Stops(sig) {
				DieOf(sig)
			}
		}
	}
}

// warnOfNoWorker warns where a name is queued and no worker runs: each line of it would do nothing, for ever.
func warnOfNoWorker(ctx context.Context, journal state.Store, running *runningError, warn func(error)) {
	if workers, err := journal.ListWorkers(ctx); running.queued != "" && err == nil && len(workers) == 0 {
		warn(runner.Loss{New: true, Err: fmt.Errorf("%w, and no worker runs"+
			"\nhint: retry worker carries it, retry cancel %s ends it", running, running.queued)})
	}
}

// cutOffSource returns the stdin of the latest task of the name, where that was cut off; nil for none.
func (w *Wrapper) cutOffSource(latest, t *task.Task) *task.Source {
	if latest == nil || !latest.EndedCutOff() || !sameWork(latest, t) || w.Fresh {
		return nil
	}
	return &latest.Options.Source
}

// runsInside reports whether the task that runs under the name is one that this process is a part of: of its command,
// or of its last hook, after its end.
func runsInside(ctx context.Context, p *Host, journal state.Store, name string) bool {
	outer := cmdexec.OuterTasks(p.Getenv)
	running, err := journal.Named(ctx, name)
	switch {
	case err == nil && running != nil:
		return slices.Contains(outer, running.ID)
	case p.Getenv(cmdexec.EnvStatus) == "": // it is no hook's
		return false
	}
	return slices.ContainsFunc(outer, func(id string) bool {
		t, err := journal.Find(ctx, id)
		if err != nil || t.Name != name {
			return false
		}
		pid, err := journal.Owner(t.Number)
		return pid != 0 && err == nil
	})
}

// isInHand reports whether a living worker makes an attempt of a queued task.
func isInHand(ctx context.Context, journal state.Store, t *task.Task) bool {
	dead, err := journal.Interrupted(ctx, t)
	return t.Status == task.InFlight && err == nil && !dead
}

// tryAcquire returns a runningError where another process has the name.
func (w *Wrapper) tryAcquire(ctx context.Context, journal state.Store, t *task.Task,
	typed []string, lines render.Observer) (nameResult, error) {
	if done, err := w.succeeded(ctx, journal, t, lines); done || err != nil {
		return nameResult{done: done}, err
	}
	owned, pid, err := journal.OwnName(t.Name)
	if err != nil {
		return nameResult{}, fmt.Errorf("ask who has the name: %w", err)
	}
	if !owned {
		return nameResult{}, &runningError{name: t.Name, pid: pid}
	}
	// Ask again: the process that had the name a moment ago may have succeeded.
	if done, err := w.succeeded(ctx, journal, t, lines); done || err != nil {
		return nameResult{done: done}, err
	}
	earlier, err := journal.Named(ctx, t.Name)
	if err != nil || earlier == nil {
		return nameResult{}, err
	}
	interrupted, err := journal.Adopt(ctx, earlier.Number)
	switch {
	case errors.Is(err, state.ErrOwned): // by a resume
		pid, _ := journal.Owner(earlier.Number)
		return nameResult{}, &runningError{name: t.Name, pid: pid}
	case errors.Is(err, state.ErrFinished):
		return w.tryAcquire(ctx, journal, t, typed, lines)
	case errors.Is(err, state.ErrEndKept) && w.Once:
		return nameResult{}, endUnknown(t, err)
	case errors.Is(err, state.ErrDamaged) && w.Fresh, errors.Is(err, state.ErrQueued) && w.Fresh:
		return nameResult{discarded: earlier}, nil
	case errors.Is(err, state.ErrQueued):
		_ = journal.ReleaseName(t.Name)
		return nameResult{}, &runningError{name: t.Name, queued: render.ShortID(earlier.ID)}
	case errors.Is(err, state.ErrDamaged):
		return nameResult{}, fmt.Errorf("%w: %s was interrupted, and cannot go on: %w"+
			"\nhint: retry cancel %s ends it; --fresh does so and runs this one",
			errName, t.Name, err, render.ShortID(earlier.ID))
	case err != nil:
		return nameResult{}, err
	case w.Fresh:
		if isWithin(ctx, journal, t.Parent, interrupted.ID) { // what that has left runs this one, which takes its place
			t.Parent = unfinished(ctx, journal, interrupted.Parent)
		}
		return nameResult{discarded: interrupted}, nil
	}
	if err := w.sameTask(interrupted, t); err != nil {
		_ = journal.Release(interrupted.Number)
		return nameResult{}, err
	}
	switch lost := bodyLost(journal, interrupted); {
	case lost && isPipeOf(interrupted, t.Options.Source):
		_ = journal.Release(interrupted.Number)
		return nameResult{}, fmt.Errorf("%w: %s, %s: %w\nhint: --fresh cancels it and sends what is left",
			errName, text.Escape(t.Name), render.ShortID(interrupted.ID), errBodyRead)
	case lost && (w.Once || interrupted.Once):
		_ = journal.Release(interrupted.Number)
		return nameResult{}, fmt.Errorf("%w: %s may have succeeded before (%s), its body was not kept to its end, "+
			"and --once sends nothing twice\nhint: look at the server; to send this one: retry cancel %[3]s, and again",
			errName, text.Escape(t.Name), render.ShortID(interrupted.ID))
	case lost:
		sayInput(lines, fmt.Sprintf("the body of %s was not kept to its end, and its idempotency key stands for that: "+
			"it is cancelled, and this one's body is sent with another key", render.ShortID(interrupted.ID)), true)
		return nameResult{discarded: interrupted}, nil
	case filesChanged(interrupted, t):
		sayInput(lines, fmt.Sprintf("a file that %s sends has changed since: it is cancelled, and this one is sent",
			render.ShortID(interrupted.ID)), true)
		return nameResult{discarded: interrupted}, nil
	}
	amended, err := w.amend(interrupted, t, typed, lines)
	if err != nil {
		_ = journal.Release(interrupted.Number)
		return nameResult{}, err
	}
	return nameResult{interrupted: interrupted, amended: amended}, nil
}

// lookedAt is how many tasks of a name that have begun are looked at: each of them has waited for what the ones before
// it had left, and few are requeued after that many others.
const lookedAt = 16

// cutOffRuns returns the other tasks of t's name that may have left processes running. The one that ran last is not
// enough: it may have been cancelled while it still waited for what another one had left. The latest of them that has
// begun is returned, too, or has read its input to begin.
func cutOffRuns(ctx context.Context, journal state.Store, t *task.Task,
) (found []*task.Task, latest *task.Task, err error) {
	if t.Name == "" {
		return nil, nil, nil
	}
	begun, unbegun := 0, 0
	for other, err := range journal.All(ctx, state.Filter{Name: t.Name}) {
		if err != nil {
			return nil, nil, err
		}
		mayBeLast := begun == 0 || !other.RequeuedAt.IsZero() // it may have run after those with a higher number
		if other.AttemptCount == 0 {
			unbegun++
		} else {
			begun++
		}
		read := other.Target != nil || other.Queue == task.QueueWorker && other.KeepsInput() // when it was made
		if latest == nil && other.ID != t.ID && (other.AttemptCount > 0 || read) {
			latest = other
		}
		switch {
		case begun > lookedAt:
			return found, latest, nil
		case other.ID == t.ID, other.AttemptCount == 0 && unbegun > lookedAt:
		case other.Last.CutOff(), mayBeLast && (other.MayHaveLeft() || hasHook(journal, other)):
			found = append(found, other)
		}
	}
	return found, latest, nil
}

// hasHook reports whether a worker runs the last hook of a task.
func hasHook(journal state.Store, t *task.Task) bool {
	if t.Options.FinalHook(t.Status) == "" {
		return false
	}
	pid, err := journal.HookOwner(t.Number)
	return pid != 0 && err == nil
}

// succeeded reports whether --once leaves nothing to do, since a task of the name has succeeded.
func (w *Wrapper) succeeded(ctx context.Context, journal state.Store, t *task.Task,
	lines render.Observer) (bool, error) {
	if !w.Once {
		return false, nil
	}
	success, err := journal.Success(ctx, t.Name)
	switch {
	case errors.Is(err, state.ErrEndKept):
		err = endUnknown(t, err)
	case err == nil && success == nil:
		err = w.refuseAmbiguous(ctx, journal, t)
	}
	if err != nil || success == nil {
		return false, err
	}
	if w.ownKey && success.IdempotencyKey != t.IdempotencyKey {
		lines.Warn(fmt.Errorf("%s succeeded with another idempotency key: %s"+
			"\nhint: another name runs this one", t.Name, success.IdempotencyKey))
	}
	if !sameWork(success, t) {
		lines.Warn(fmt.Errorf("%s succeeded with another %s: %s"+
			"\nhint: another name runs this one", t.Name, work(success), render.Title(success)))
	}
	lines.Say(fmt.Sprintf("%s succeeded before (%s): nothing is done", text.Escape(t.Name), render.ShortID(success.ID)))
	return true, journal.Remember(ctx, success)
}

// endUnknown refuses a task with --once while the end of an earlier one cannot be written to the journal: it may have
// succeeded.
func endUnknown(t *task.Task, err error) error {
	return fmt.Errorf("%w: %s: %w\nhint: run it again when the journal can be written", errName, text.Escape(t.Name), err)
}

// refuseAmbiguous returns an error where a request of the name may have taken effect: --once sends none twice. Like a
// success, that is not pruned.
func (w *Wrapper) refuseAmbiguous(ctx context.Context, journal state.Store, t *task.Task) error {
	sent, err := journal.MayBeDone(ctx, t)
	if err != nil || sent == nil {
		return err
	}
	what := string(sent.Reason)
	if sent.Status == task.Cancelled {
		what = "cancelled after it was sent"
	}
	_ = journal.Remember(ctx, sent) // it is refused all the same
	return fmt.Errorf("%w: %s may have succeeded before (%s, %s), and --once sends nothing twice"+
		"\nhint: look at the server; to send it again: %s",
		errName, text.Escape(t.Name), render.ShortID(sent.ID), what, render.Requeue(sent))
}

// errName says that a name belongs to another task. The journal itself has not failed then.
var errName = errors.New("the name is taken")

// sameTask returns an error where the interrupted task is not the one that was asked for.
func (w *Wrapper) sameTask(interrupted, t *task.Task) error {
	const hint = "\nhint: retry resume %s goes on with that one; --fresh cancels it and runs this one"
	id := render.ShortID(interrupted.ID)
	switch {
	case !sameWork(interrupted, t):
		return fmt.Errorf("%w: %s was interrupted with another %s, %s"+hint,
			errName, t.Name, work(interrupted), render.Title(interrupted), id)
	case interrupted.Directory != t.Directory:
		return fmt.Errorf("%w: %s was interrupted in another directory, %s"+hint,
			errName, t.Name, interrupted.Directory, id)
	case w.ownKey && interrupted.IdempotencyKey != t.IdempotencyKey:
		return fmt.Errorf("%w: %s was interrupted with another idempotency key, %s"+hint,
			errName, t.Name, interrupted.IdempotencyKey, id)
	}
	return nil
}

// sameWork reports whether two tasks execute the same.
func sameWork(a, b *task.Task) bool {
	return slices.Equal(a.Command, b.Command) && (a.Target == b.Target || a.Target != nil && a.Target.SameWork(b.Target))
}

// work is the word for what a task executes.
func work(t *task.Task) string {
	if t.Kind != task.KindCommand {
		return "request"
	}
	return "command"
}

// runningError says that another process runs a task of the name.
type runningError struct {
	name   string
	pid    int
	queued string // the short id of a task that a worker carries; else empty
}

func (e *runningError) Error() string {
	if e.queued != "" {
		return text.Escape(e.name) + " is queued for a worker, as " + e.queued
	}
	if e.pid <= 0 {
		return text.Escape(e.name) + " is running"
	}
	return fmt.Sprintf("%s is running as process %d", text.Escape(e.name), e.pid)
}
