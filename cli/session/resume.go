package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// ResumeOptions say how an interrupted task goes on.
type ResumeOptions struct {
	ExecOptions
	flags.SurvivorFlags
	Now     bool // do not wait for the time of the next attempt
	amended bool // the task differs from what is stored
}

// survivors finds what a task's attempt left running, and what the tasks nested in it did.
type survivors struct {
	proc.Survivors
	assumeDead bool // what cannot be seen has ended
	journal    *Journal
	outer      []string // the tasks that this process is a part of
}

func (p *Host) newSurvivors(f flags.SurvivorFlags, journal *Journal) survivors {
	return survivors{proc.Survivors{Kill: f.KillOrphans}, f.AssumeDead, journal, cmdexec.OuterTasks(p.Getenv)}
}

// Find implements runner.Survivors.
func (s survivors) Find(t *task.Task, a task.Attempt) (string, error) {
	found, err := s.findOrAssume(t, a)
	for _, n := range s.nested(t) {
		if found != "" || err != nil {
			break
		}
		found, err = s.findOrAssume(n, n.Last)
	}
	if found != "" || err != nil || s.journal.absent() || !s.inHand(t) {
		return found, err
	}
	return "its retry", nil
}

// FindUnrecorded implements runner.Survivors. What a nested retry of a hook has left is of the hook; and where a nested
// one was killed before its outer one, that has seen the end of its attempt, but not of what the nested one has left.
func (s survivors) FindUnrecorded(t *task.Task) (string, error) {
	if !s.journal.absent() && t.Number != 0 {
		switch pid, err := s.journal.Journal.HookOwner(t.Number); {
		case pid == 0 || err != nil:
		case slices.Contains(s.outer, t.ID): // it would wait for itself
			return "", nil
		default:
			return "its hook", nil
		}
	}
	found, err := s.Survivors.FindUnrecorded(t)
	if found != "" || err != nil {
		return found, err
	}
	hooked := t.Options.OnStart != "" || t.Options.OnRetry != ""
	ended := t.Last.StartedAt.Add(t.Last.Outcome.Duration)
	oldest := time.Now().Add(-cmp.Or(t.Options.HookTimeout, task.DefaultHookTimeout))
	for _, n := range s.nested(t) {
		if ofHook := !n.CreatedAt.Before(ended); ofHook && (!hooked || n.CreatedAt.Before(oldest)) {
			continue // a daemon has begun it, or the hook has left it on purpose
		} else if pid, err := s.journal.Journal.Owner(n.Number); !ofHook && pid != 0 && err == nil {
			continue // its retry lives, and carries a daemon
		}
		if found, err = s.findOrAssume(n, n.Last); found != "" || err != nil {
			break
		}
	}
	return found, err
}

// findOrAssume has --assume-dead hold for the later runs of the name that cannot see the processes either. Where that
// cannot be written, they ask again. A request has no processes.
func (s survivors) findOrAssume(t *task.Task, a task.Attempt) (string, error) {
	if t.Target != nil || !s.journal.absent() && containerEnded(s.journal.Journal, a) {
		return "", nil
	}
	found, err := s.Survivors.Find(t, a)
	if err == nil || !s.assumeDead {
		return found, err
	}
	if !s.journal.absent() && t.Number != 0 && a.Number == t.Last.Number && a.CutOff() {
		ctx, cancel := context.WithTimeout(context.Background(), shortly)
		defer cancel()
		_ = s.journal.Journal.NoteAssumed(ctx, t, proc.AssumeDead(a.Process))
	}
	return "", nil
}

// inHand reports whether the process that carries a cancelled attempt lives: it may be about to start the command, or
// wait for the reply to the request.
func (s survivors) inHand(t *task.Task) bool {
	if t.Number == 0 || t.Last.Decision.Verdict != task.VerdictCancelled || slices.Contains(s.outer, t.ID) {
		return false
	}
	pid, err := s.journal.Journal.Owner(t.Number)
	if pid != 0 || err != nil || t.Last.Worker == "" || t.Status != task.Cancelled { // requeued, it gets no outcome
		return pid != 0
	}
	ctx := context.Background()
	workers, err := s.journal.Journal.ListWorkers(ctx)
	carries := func(w state.Worker) bool {
		return w.Name == t.Last.Worker && !w.StartedAt.After(t.Last.StartedAt) && !w.Gone
	}
	if err != nil || !slices.ContainsFunc(workers, carries) {
		return false
	}
	attempts, err := s.journal.Journal.Attempts(ctx, t.Number)
	if err != nil || len(attempts) == 0 {
		return false
	}
	last := attempts[len(attempts)-1]
	return last.Number == t.Last.Number && last.Outcome.Exit == task.NoExit
}

// Signal implements runner.Survivors.
func (s survivors) Signal(t *task.Task, a task.Attempt, sig os.Signal) {
	if t.Target == nil {
		s.Survivors.Signal(t, a, sig)
	}
	for _, n := range s.nested(t) {
		s.Survivors.Signal(n, n.Last, sig)
	}
}

// nested returns the tasks that ran inside the last attempt, and may have left processes of their own.
func (s survivors) nested(t *task.Task) []*task.Task {
	if s.journal.absent() || t.Number == 0 {
		return nil
	}
	nested, _ := s.journal.Journal.Nested(context.Background(), t) // what can be read
	return nested
}

// longWait is the longest wait that a resume does not announce.
const longWait = time.Minute

// Resume runs an adopted task to its end.
func (p *Host) Resume(ctx context.Context, t *task.Task, journal *Journal, lines render.Observer,
	how ResumeOptions) (runner.Result, error) {
	if how.Stdin == task.StdinRest && journal.signalled == nil {
		p.NoteWriter(false)
		journal.signalled = p.signalled
	}
	run, err := p.NewResumer(t, journal, lines, how)
	if err != nil {
		return runner.Result{}, err
	}
	defer run.Close()
	run.Signals = p.Listen()
	if err := p.awaitWriter(journal); err != nil {
		return runner.Result{}, err
	}
	return run.Resume(ctx, t)
}

// Resume runs the adopted task to its end.
func (r *taskRunner) Resume(ctx context.Context, t *task.Task) (runner.Result, error) {
	result, err := r.Runner.Resume(ctx, t)
	if err != nil {
		err = fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err)
	}
	return result, err
}

// InTurn is an Executor among several that write to one stdout: replies, and output that was held, do not mix.
type InTurn struct {
	runner.Executor

	Turn chan struct{} // holds an element while one of them writes
}

// Flush implements runner.Executor.
func (e *InTurn) Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	r := request.Of(t)
	elsewhere := r != nil && r.Output != "" && !files.IsDescriptor(r.Output) && r.WriteOut == ""
	if elsewhere || !e.HoldsOutput(t) {
		return e.Executor.Flush(t, signals)
	}
	for {
		select {
		case e.Turn <- struct{}{}:
			defer func() { <-e.Turn }()
			return e.Executor.Flush(t, signals)
		case sig := <-signals:
			if task.Stops(sig) {
				return sig, task.ErrStopped
			}
		}
	}
}

// NewResumer puts together the runner of an interrupted task, in its directory and with its kept environment.
func (p *Host) NewResumer(t *task.Task, journal *Journal, lines render.Observer,
	how ResumeOptions) (*taskRunner, error) {
	info, err := os.Stat(t.Directory)
	if t.Kind == task.KindCommand && (err != nil || !info.IsDir()) { // a request has absolute paths
		return nil, fmt.Errorf("resume %s: its directory %q is gone"+
			"\nhint: make it again, or retry cancel %[1]s", render.ShortID(t.ID), t.Directory)
	}
	if r := request.Of(t); r != nil && !how.ownStdin && !t.EndsByCrash() {
		if err := httpexec.CheckFiles(r); err != nil { // a file system may not be mounted yet
			return nil, text.WithHint(fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err),
				"make it again, or retry cancel "+render.ShortID(t.ID))
		}
	}
	if how.Now {
		t.NextAttemptAt = time.Time{}
	}
	journal.warn = lines.Warn
	earlier, _, err := cutOffRuns(context.Background(), journal.Journal, t)
	if err != nil {
		return nil, fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err)
	}
	before, kept := t.Options, t.KeepsInput()
	run, err := p.newTaskRunner(t, journal, lines, how.ExecOptions, true)
	switch {
	case how.ownStdin && errors.Is(err, state.ErrInputLost):
		if run, err = p.newTaskRunner(t, journal, lines, how.ExecOptions, false); err == nil {
			sayInput(lines, "its stdin was not kept to the end: reads this one's", before.Source.Pipe || t.Target != nil)
		}
	case how.ownStdin && t.KeepsInput() && err == nil && !t.EndsByCrash():
		sayInput(lines, "reads the stdin that was kept for it, not this one's", p.hasOtherInput(t))
	}
	if err == nil && t.Options.Stdin != before.Stdin { // a resume that refuses changes nothing
		look := &runner.Runner{Survivors: p.newSurvivors(how.SurvivorFlags, journal)}
		for _, one := range append(earlier, t) {
			if err == nil && one.MayHaveLeft() {
				_, err = look.FindLeft(one)
			}
		}
	}
	if err == nil { // a later resume goes on with this stdin
		changed := t.Options != before || t.Reason == task.ReasonHangup
		err = journal.amend(context.Background(), t, how.amended || changed)
	}
	if err == nil && kept && !t.KeepsInput() {
		journal.Journal.DropInput(t)
	}
	if err != nil {
		return nil, text.WithHint(fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err),
			"start it anew, and end this one with retry cancel "+render.ShortID(t.ID))
	}
	if now := time.Now(); t.NextAttemptAt.Sub(now) > longWait {
		lines.Say(render.ShortID(t.ID) + " waits until " + render.Stamp(t.NextAttemptAt, now))
	}
	// A script, or a hook, may look for the output in the file that a shell has opened for the line, and not here. A
	// worker comes here for each attempt.
	stdout, first := t.Options.Stdout, !p.isWorkers() || t.AttemptCount == t.RequeuedAfter
	if first && stdout.Inode != 0 && stdout.Inode != stdio.DestinationOf(p.Stdout).Inode {
		lines.Warn(runner.Loss{New: true, Err: fmt.Errorf("what %s writes does not go to %s now, as it did before"+
			"\nhint: the line typed again opens that, and so does retry resume %[1]s >>%[3]s",
			render.ShortID(t.ID), text.Escape(stdout.Path), render.Command([]string{stdout.Path}))})
	}
	run.commands.Dir = t.Directory
	run.Survivors = p.newSurvivors(how.SurvivorFlags, journal)
	run.Earlier = earlier
	return run, nil
}

// deferred reports whether a task still waits for longer than a server may have a process wait.
func deferred(t *task.Task, now time.Time) bool {
	if t.Reason != task.ReasonDeferred {
		return false
	}
	most := t.Target.MaxServerDelay()
	return most > 0 && t.NextAttemptAt.Sub(now) > most
}

// hasOtherInput reports whether this process's stdin is lost where the input that was kept for a task is read instead.
func (p *Host) hasOtherInput(t *task.Task) bool {
	own := (&stdio.InheritedStdin{File: p.Stdin}).Source()
	if t.Target != nil { // its run may have moved the offset of the same file
		own.Offset = t.Options.Source.Offset
		return own != (task.Source{}) && !own.Terminal && own != t.Options.Source
	}
	return own.Pipe || own.Path != "" && own != t.Options.Source
}

// hasInput reports whether there may be something on this process's stdin.
func (p *Host) hasInput() bool {
	own := (&stdio.InheritedStdin{File: p.Stdin}).Source()
	return own.Pipe || own.Path != ""
}

// sayInput says which input a task gets, also under -q where another one is lost.
func sayInput(lines render.Observer, text string, lost bool) {
	if lost {
		lines.Warn(runner.Loss{Err: errors.New(text), New: true})
		return
	}
	lines.Say(text)
}

// Adopt adopts a task together with its name, which no other run may use until this process has ended.
func Adopt(ctx context.Context, journal state.Store, t *task.Task) (*task.Task, error) {
	adopted, err := adopt(ctx, journal, t)
	if errors.Is(err, state.ErrFinished) { // since it was read
		if ended, failed := journal.Find(ctx, t.ID); failed == nil {
			t = ended
		}
	}
	if err != nil {
		return nil, fmt.Errorf("resume %s: %w%s", render.ShortID(t.ID), err, adoptHint(err, t))
	}
	return adopted, nil
}

func adopt(ctx context.Context, journal state.Store, t *task.Task) (*task.Task, error) {
	switch {
	case t.Status.Finished(): // its name may belong to another task by now
		return nil, state.ErrFinished
	case t.Name == "":
		return journal.Adopt(ctx, t.Number)
	}
	if owned, _, err := journal.OwnName(t.Name); err != nil || !owned {
		return nil, cmp.Or(err, state.ErrOwned)
	}
	adopted, err := journal.Adopt(ctx, t.Number)
	if err != nil {
		_ = journal.ReleaseName(t.Name)
	}
	return adopted, err
}

// Requeue gives a finished task fresh attempts, and makes this process its owner, and that of its name.
func Requeue(ctx context.Context, journal state.Store, t *task.Task) error {
	if t.Name != "" && t.Status.Finished() {
		if owned, _, err := journal.OwnName(t.Name); err != nil || !owned {
			return cmp.Or(err, state.ErrOwned)
		}
	}
	return journal.Requeue(ctx, t, time.Now())
}

// adoptHint says what to do where a task cannot be adopted.
func adoptHint(err error, t *task.Task) string {
	switch {
	case errors.Is(err, state.ErrOwned):
		return "\nhint: its owner lives; retry resume --now " + render.ShortID(t.ID) + " ends its wait, retry cancel stops it"
	case errors.Is(err, state.ErrQueued):
		return "\nhint: retry worker carries what is queued; retry resume --now " + render.ShortID(t.ID) + " ends its wait"
	case errors.Is(err, state.ErrDamaged):
		return "\nhint: retry cancel " + render.ShortID(t.ID) + ", and start it anew"
	case errors.Is(err, state.ErrFinished):
		return fmt.Sprintf(": %s\nhint: %s gives it fresh attempts", render.StatusWord(t.Status), render.Requeue(t))
	}
	return ""
}
