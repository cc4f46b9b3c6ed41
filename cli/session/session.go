// Package session puts one run together: its journal or none, its name, stdin, policy, executor, hooks and report. cli
// parses the command line and calls it.
package session

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/httpexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// Wrapper is what `retry run` and `retry http` have in common: a task is made, and carried through its attempts.
type Wrapper struct {
	flags.PolicyFlags
	flags.ConfigFlag
	flags.StateFlag
	flags.JournalFlags
	flags.NameFlags
	flags.HookFlags
	flags.EnvironmentFlags
	flags.OutputFlags
	flags.ReportFlags
	DryRun bool `group:"Running" help:"Print the schedule of the policy and run nothing."`

	work    Work
	choice  *policies.Choice
	options task.Options // as the flags say; the conditions of the policy may need more captured
	ownKey  bool         // the flags give the idempotency key

	notFound bool // the command was
}

// Work is what the attempts execute.
type Work interface {
	// Check refuses what makes no sense, before anything is made.
	Check(p *Host) error
	// Fill gives a new task what to execute, and how.
	Fill(p *Host, t *task.Task) error
	// Read reads a body that can be read only once, when no other process has the task's name any more: see Host.ReadBody.
	Read(p *Host, t *task.Task, before *task.Source) error
	// ExecOptions are what this process gives to the execution.
	ExecOptions() ExecOptions
}

// Wrap runs the work until it succeeds or its policy says stop, and returns the exit status.
func (w *Wrapper) Wrap(p *Host, work Work, asJSON bool) (int, error) {
	created := time.Now()
	file, warnings, err := p.SetDefaults(work, &w.ConfigFlag)
	if err != nil {
		return 0, err
	}
	lines := NewObserver(p, &w.OutputFlags)
	for _, warning := range warnings {
		lines.Warn(warning)
	}
	if w.choice, err = policies.ChooseFrom(&w.PolicyFlags, file, p.Getenv, lines.Warn); err != nil {
		return 0, err
	}
	policies.WarnOfVariables(p.Environ, lines.Warn)
	w.choice.Settled, w.choice.Stateless = w.choice.Settled || w.NoState, w.NoState
	if w.DryRun {
		return 0, w.dryRun(p, created, lines, asJSON)
	}
	w.work = work
	tk, err := w.newTask(p, created)
	if err != nil {
		return 0, err
	}
	kept, err := RetentionOf(w.Retention, p.Getenv)
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	journal, err := openForRun(ctx, p, w.State, &w.JournalFlags, w.ID != nil, lines.Warn)
	if err != nil {
		return 0, err
	}
	if tk.Parent != "" && !journal.absent() && isOfEarlierLife(ctx, p, journal.Journal, tk.Parent) {
		tk.Parent = ""
	}
	if err := w.settlePolicy(ctx, journal, tk, lines.Warn); err != nil {
		return 0, err
	}
	if lines, err = Reported(lines, p, w.Report, journal); err != nil {
		return 0, err
	}
	if tk.Target != nil {
		w.warnOfRequest(tk, journal, lines.Warn)
	}
	if w.Ping != "" {
		warnOfSecrets(httpexec.LiteralSecrets(&request.Request{URL: w.Ping}), journal, lines.Warn)
	}
	result, last, err := w.runNamed(ctx, p, journal, tk, lines)
	if last == nil || err != nil {
		return 0, err
	}
	if err := journal.tidy(ctx, p, last, kept); err != nil && w.Verbose {
		lines.Warn(err)
	}
	DieOf(result.DeathSignal())
	if result.ExitCode() == 0 {
		p.settleInput()
	}
	w.notFound = result.Outcome.Error == task.ErrorNotFound
	return result.ExitCode(), nil
}

// NotFound reports whether the command of the run was not found.
func (w *Wrapper) NotFound() bool { return w.notFound }

// newTask checks the flags and makes a task. Its policy may change when the journal is asked for it.
func (w *Wrapper) newTask(p *Host, created time.Time) (*task.Task, error) {
	if err := w.work.Check(p); err != nil {
		return nil, err
	}
	if err := w.checkName(p.Typed); err != nil {
		return nil, err
	}
	p.takesRest = w.Fresh
	policy, err := w.choice.Resolve(created)
	if err != nil && (w.choice.Settled || !mayKnow(p, w.State)) {
		return nil, err
	}
	options, err := w.HookFlags.Options()
	if err != nil {
		return nil, err
	}
	if w.Report != "" && p.Stream(w.Report) == nil && !files.IsDescriptor(w.Report) { // that is this process's alone
		options.Report, _ = filepath.Abs(w.Report)
	}
	if w.Ping != "" {
		if err := checkPing(w.Ping, lookUpIn(p.Environ)); err != nil {
			return nil, err
		}
	}
	environment, err := w.Kept(p.Environ)
	if err != nil {
		return nil, err
	}
	directory, err := os.Getwd()
	if err != nil {
		directory = "" // it was removed, or is unreadable: the command may run all the same, and only a resume fails
	}
	tk := &task.Task{
		ID: uuid.Must(uuid.NewV7()).String(), Parent: p.Getenv(cmdexec.EnvTaskID), Name: flags.OrEmpty(w.ID), Once: w.Once,
		Directory: directory, Environment: environment, Policy: policy, Options: options,
		CreatedAt: created, Status: task.Pending,
	}
	if err := w.work.Fill(p, tk); err != nil {
		return nil, err
	}
	if tk.Target == nil && tk.Options.Stdin != task.StdinNull {
		p.NoteWriter(tk.Options.Stdin == task.StdinReplay)
	}
	if w.ownKey = tk.IdempotencyKey != ""; !w.ownKey {
		tk.IdempotencyKey = uuid.NewString()
	}
	if err := w.refuseLocks(p, tk); err != nil {
		return nil, err
	}
	w.options = tk.Options
	tk.Options = w.optionsFor(tk)
	tk.History = task.History{Began: tk.CreatedAt, Expires: tk.Expiry(), Phase: tk.Options.Phase(phaseOf(tk.ID))}
	return tk, nil
}

// refuseLocks refuses to read a file of the journal that holds locks: whoever closes it in this process loses them,
// which are those of the owner, and of the database.
func (w *Wrapper) refuseLocks(p *Host, t *task.Task) error {
	var read []os.FileInfo
	if stdin, err := p.Stdin.Stat(); err == nil && stdin.Mode().IsRegular() {
		read = append(read, stdin)
	}
	if r := request.Of(t); r != nil {
		for _, part := range r.Body {
			if info, err := os.Stat(part.File); err == nil && part.File != "" {
				read = append(read, info)
			}
		}
	}
	if len(read) == 0 || w.NoState {
		return nil
	}
	place, err := lock.Locate(w.State, p.Getenv)
	if err != nil {
		return nil //nolint:nilerr // who opens the journal says so
	}
	for _, name := range []string{lock.OwnersFile, sqlite.DatabaseName, sqlite.DatabaseName + "-shm"} {
		path := filepath.Join(place.Dir, name)
		locks, err := os.Stat(path)
		if err == nil && slices.ContainsFunc(read, func(f os.FileInfo) bool { return os.SameFile(f, locks) }) {
			return fmt.Errorf("%s holds locks of the journal, which would be lost: it cannot be an input"+
				"\nhint: sqlite3 %s '.backup FILE' makes a copy", path, filepath.Join(place.Dir, sqlite.DatabaseName))
		}
	}
	return nil
}

// phaseOf returns the phase of a task that no journal numbers: a hash of its id, in [0, 1).
func phaseOf(id string) float64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, id)
	return float64(h.Sum64()>>11) / (1 << 53)
}

// optionsFor returns the task's options.
func (w *Wrapper) optionsFor(t *task.Task) task.Options {
	options := w.options
	options.Capture = captureFor(t.Kind, options.Capture, &t.Policy)
	return options
}

// runNamed runs the task, or an interrupted one of its name, and returns that; nil where there was nothing to do.
func (w *Wrapper) runNamed(ctx context.Context, p *Host, journal *Journal, tk *task.Task,
	lines render.Observer) (runner.Result, *task.Task, error) {
	var found nameResult
	read := sync.OnceValues(func() (*spool.Spool, error) {
		done := make(chan struct{})
		defer close(done)
		go dieOfSignals(p.signals, done)
		err := w.work.Read(p, tk, found.sourceBefore(w.Fresh))
		return w.work.ExecOptions().Body, err
	})
	for {
		var err error
		found, err = w.acquire(ctx, p, journal, tk, lines)
		if err != nil || found.done {
			return runner.Result{}, nil, err
		}
		if err := w.compareCall(journal, tk, found.interrupted, read); err != nil {
			return runner.Result{}, nil, err
		}
		options := w.work.ExecOptions()
		options.before, options.read = found.before, read
		if earlier := found.interrupted; earlier != nil {
			parent := unfinished(ctx, journal.Journal, tk.Parent) // it is a part of what runs it now, and ends with that
			if earlier.Parent != parent && !isWithin(ctx, journal.Journal, parent, earlier.ID) {
				earlier.Parent, found.amended = parent, true
			}
			if deferred(earlier, time.Now()) {
				if err := journal.amend(ctx, earlier, found.amended); err != nil {
					return runner.Result{}, nil, err
				}
				decision := task.Decision{Verdict: task.VerdictRetry, Reason: task.ReasonDeferred}
				result := runner.Result{Decision: decision, Outcome: earlier.Last.Outcome}
				lines.Finished(earlier, result)
				return result, earlier, nil
			}
			if earlier.Options.Stdin == task.StdinNull && tk.Options.Stdin != task.StdinNull && p.hasInput() {
				sayInput(lines, "it goes on without stdin, as --stdin null has told it to: this one's is not read", true)
			}
			before, source := earlier.AttemptCount, earlier.Options.Source
			how := ResumeOptions{ExecOptions: options, SurvivorFlags: w.SurvivorFlags}
			how.ownStdin, how.amended = true, found.amended
			if slices.Contains(p.Typed, "stdin") && tk.Options.Stdin == task.StdinNull {
				how.Stdin = task.StdinNull
			}
			result, err := p.Resume(ctx, earlier, journal, p.WithKeptReport(lines, earlier, journal), how)
			if err != nil || earlier.Status != task.Exhausted || earlier.AttemptCount > before ||
				earlier.Reason == task.ReasonExpired || // the request may have taken effect
				result.LeftRuns ||
				result.LateSignal != nil { // which is taken from the channel: nobody else would hear of it
				return result, earlier, err
			}
			_ = journal.Journal.Release(earlier.Number)
			found.discarded = earlier // its attempts were used up before; the new task gets its own
			journal.tryAgain()
			options.before = &source
		}
		run, err := p.newTaskRunner(tk, journal, lines, options, false)
		if err != nil {
			return runner.Result{}, nil, err
		}
		run.Signals = p.Listen()
		if tk.Kind == task.KindGRPC { // the claim stores its body, which a resume sends
			time.Sleep(time.Until(p.inputEnded.Add(endsTogether)))
		}
		if err := p.awaitWriter(journal); err != nil {
			run.Close()
			return runner.Result{}, nil, err
		}
		result, err := w.start(ctx, p, journal, found, tk, run, lines)
		run.Close()
		if errors.Is(err, errDone) {
			return result, nil, nil
		}
		// Where a task of its name was requeued meanwhile, or a worker has carried one to its end, look again.
		if !nameIsTaken(err) {
			return result, tk, err
		}
	}
}

// errDone says that nothing is left to do, which has been said.
var errDone = errors.New("nothing is left to do")

// start runs a new task, when nothing of the earlier tasks of its name runs any more. Where it cannot begin at once it
// is stored before, so that a resume takes it up. Where another run took time, its budget begins then; a deadline does
// not move.
func (w *Wrapper) start(ctx context.Context, p *Host, journal *Journal, found nameResult, t *task.Task,
	run *taskRunner, lines render.Observer) (runner.Result, error) {
	run.Survivors = p.newSurvivors(w.SurvivorFlags, journal)
	run.Earlier = found.cutOff
	if d := found.discarded; d != nil && d.MayHaveLeft() {
		run.Earlier = append(run.Earlier, d)
	}
	left := false
	for _, earlier := range run.Earlier {
		what, err := run.FindLeft(earlier)
		if err != nil {
			return runner.Result{}, fmt.Errorf("start %s: %w", text.Escape(t.Name), err)
		}
		left = left || what != ""
	}
	if left || found.discarded != nil || t.Options.OnStart != "" {
		if err := journal.create(ctx, t, found.discarded); err != nil && !errors.Is(err, task.ErrStopped) {
			return runner.Result{}, err
		}
	}
	if found.discarded != nil && !journal.absent() { // a worker may have begun an attempt of it until it was cancelled
		ended, err := journal.Journal.Find(ctx, found.discarded.ID)
		if err == nil && ended.Last.CutOff() {
			run.Earlier, left = slices.Concat(found.cutOff, []*task.Task{ended}), true
		}
	}
	if left {
		sig, err := run.AwaitLeft(ctx, t)
		switch {
		case errors.Is(err, runner.ErrBudgetEnd):
			return run.Expire(ctx, t)
		case err != nil:
			return runner.Result{}, fmt.Errorf("start %s: %w", text.Escape(t.Name), err)
		case sig != nil:
			return run.Stop(ctx, t, sig)
		}
		if err := w.askAgain(ctx, journal, t, lines); err != nil {
			return runner.Result{}, err
		}
	}
	if found.waited || found.discarded != nil || len(run.Earlier) > 0 {
		t.BeginNow(time.Now())
	}
	return run.Run(ctx, t)
}

// askAgain returns an error where --once leaves nothing to do for a task that has waited for what an earlier one had
// left: that may have been cancelled, and have succeeded all the same.
func (w *Wrapper) askAgain(ctx context.Context, journal *Journal, t *task.Task, lines render.Observer) error {
	if journal.absent() {
		return nil
	}
	done, err := w.succeeded(ctx, journal.Journal, t, lines)
	err = journal.failed(err, nil, journal.required || errors.Is(err, errName))
	if done {
		err = errDone
	}
	if err != nil && t.Number != 0 {
		_ = journal.Journal.Cancel(ctx, t.Number, time.Now()) // the claim of a later run does it else
	}
	return err
}

// dryRun prints the schedule of the policy.
func (w *Wrapper) dryRun(p *Host, now time.Time, lines render.Observer, asJSON bool) error {
	if err := AskReader(context.Background(), p, w.choice, w.State, lines.Warn); err != nil {
		return err
	}
	policy, err := w.choice.Resolve(now)
	if err != nil {
		return err
	}
	schedule := render.NewSchedule(&policy)
	if asJSON {
		return schedule.WriteJSON(p.Stdout)
	}
	return schedule.Write(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv))
}
