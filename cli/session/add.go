package session

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// OpenQueue opens the journal as a queue, and makes it where there is none.
func OpenQueue(ctx context.Context, p *Host, stateDir string) (*sqlite.Queue, error) {
	place, err := lock.Locate(stateDir, p.Getenv)
	if err != nil {
		return nil, err
	}
	queue, err := sqlite.OpenQueue(ctx, place.Dir)
	if err != nil {
		return nil, text.WithHint(err, "retry doctor "+render.Command([]string{"--state", place.Dir})+" says what is wrong")
	}
	p.noteContainer(queue)
	return queue, nil
}

// notQueued are flags about the process that runs the task, which a worker does.
var notQueued = []struct{ flag, why string }{
	{"foreground", "a worker has no terminal"}, {"group", "a worker's commands have groups of their own"},
	{"dry-run", "it runs nothing"}, {"ci", "a worker runs in no CI job"}, {"report", "the run ends later, in a worker"},
	{"no-state", "the queue is the journal"}, {"output", "there is nobody to pass the output on to: its end is kept, and " +
		"retry worker --log-dir keeps all of it"}, {"retention", "it belongs to retry worker, which removes tasks"},
	{"kill-orphans", "it belongs to a resume"}, {"assume-dead", "it belongs to a resume"},
}

// Add puts the work into the queue and writes the task's id to stdout, once the disk has it. begin may be empty.
func (w *Wrapper) Add(p *Host, work Work, begin flags.WhenFlags) (int, error) {
	created := time.Now()
	for _, no := range notQueued {
		if slices.Contains(p.Typed, no.flag) {
			return 0, fmt.Errorf("--%s makes no sense for a queued task: %s\nhint: leave it out, or run it here: retry -- COMMAND",
				no.flag, no.why)
		}
	}
	if w.IfRunning == "wait" && slices.Contains(p.Typed, "if-running") {
		return 0, errors.New("--if-running wait makes no sense for a queued task: it is added at once" +
			"\nhint: fail, or skip")
	}
	due, err := dueTime(begin, created)
	if err != nil {
		return 0, err
	}
	file, warnings, err := p.SetDefaults(work, &w.ConfigFlag)
	if err != nil {
		return 0, err
	}
	w.CI = "none"
	lines := NewObserver(p, &w.OutputFlags)
	for _, warning := range warnings {
		lines.Warn(warning)
	}
	handedOver := func(name string) string { // the end of the attempt that adds it is not its end
		if name == cmdexec.EnvDeadline {
			return ""
		}
		return p.Getenv(name)
	}
	if w.choice, err = policies.ChooseFrom(&w.PolicyFlags, file, handedOver, lines.Warn); err != nil {
		return 0, err
	}
	policies.WarnOfVariables(p.Environ, lines.Warn)
	w.work, w.NoState = work, false
	tk, err := w.newTask(p, created)
	if err != nil {
		return 0, err
	}
	if tk.Kind == task.KindCommand && tk.Directory == "" {
		return 0, errors.New("this directory was removed, or cannot be read: no worker can run the command in it" +
			"\nhint: cd to one that is there")
	}
	path := namedPipe(tk.Command) // a FIFO in a directory may be filled later, and the worker has a stdin
	ofShell := strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
	if ofShell && !strings.HasSuffix(path, "/fd/0") && !isInScript(tk.Command, path) {
		return 0, fmt.Errorf("%s is a pipe of this shell, which the worker does not have"+hintForPipe, text.Escape(path))
	}
	tk.Parent = "" // for the same reason
	ctx := context.Background()
	queue, err := OpenQueue(ctx, p, w.State)
	if err != nil {
		return 0, err
	}
	defer func() { _ = queue.Close() }()
	journal := &Journal{Journal: queue.Journal, warn: lines.Warn, required: true}
	if err := w.settlePolicy(ctx, journal, tk, lines.Warn); err != nil {
		return 0, err
	}
	if tk.Target != nil {
		w.warnOfRequest(tk, journal, lines.Warn)
	}
	id, err := w.enqueue(ctx, p, queue, tk, due, lines)
	if err != nil {
		return 0, err
	}
	if _, failed := fmt.Fprintln(p.Stdout, id); failed != nil { // it is in the queue: nobody is to add it again
		failed = fmt.Errorf("it is in the queue; its id, %s, could not be passed on: %w", id, failed)
		lines.Warn(runner.Loss{Err: failed, New: true})
	}
	p.settleInput()
	if workers, failed := queue.ListWorkers(ctx); failed == nil && len(workers) == 0 && term.IsTerminal(int(p.Stderr.Fd())) {
		lines.Say("no worker runs: retry worker")
	}
	return 0, nil
}

// isInScript reports whether a script names the file, as in sh -c, which may open it first.
func isInScript(command []string, file string) bool {
	at := slices.IndexFunc(command, func(argument string) bool { return strings.Contains(argument, file) })
	return at > 0 && strings.ContainsAny(command[at], " \t\n") &&
		regexp.MustCompile("^-[a-z]*[ce]$").MatchString(command[at-1])
}

// dueTime returns when a task begins.
func dueTime(begin flags.WhenFlags, now time.Time) (time.Time, error) {
	switch {
	case begin.In != nil && begin.At != nil:
		return now, errors.New("--in and --at say the same thing\nhint: give one of them")
	case begin.In != nil:
		return now.Add(time.Duration(*begin.In)), nil
	case begin.At == nil:
		return now, nil
	case time.Time(*begin.At).Before(now):
		return now, errors.New("--at is over\nhint: leave it out to begin now")
	}
	return time.Time(*begin.At), nil
}

// queuedBefore returns the task of the name that makes another one superfluous: one that has succeeded, with --once, or
// one that waits or runs with the same work. With --fresh, the new one replaces that. It reads the input only where
// that has to be compared.
func (w *Wrapper) queuedBefore(ctx context.Context, p *Host, queue *sqlite.Queue, t *task.Task,
	read func() (*spool.Spool, error), lines render.Observer) (superfluous, replaced *task.Task, err error) {
	if t.Name == "" {
		return nil, nil, nil
	}
	if w.Once {
		success, err := queue.Success(ctx, t.Name)
		if err == nil && success != nil { // it is relied on from now on
			err = queue.Remember(ctx, success)
		}
		if err != nil || success != nil {
			return success, nil, err
		}
		if err := w.refuseAmbiguous(ctx, queue.Journal, t); err != nil {
			return nil, nil, err
		}
	}
	earlier, err := queue.Named(ctx, t.Name)
	switch {
	case err != nil || earlier == nil:
		return nil, nil, err
	case w.Fresh:
		if slices.Contains(cmdexec.OuterTasks(p.Getenv), earlier.ID) {
			return nil, nil, fmt.Errorf("%w: %s is what this command runs in, and --fresh would end that"+
				"\nhint: give the task that is added another name", errName, text.Escape(t.Name))
		}
		return nil, earlier, nil
	case w.IfRunning != "skip":
		err := w.sameQueued(queue, earlier, t, read)
		if errors.Is(err, state.ErrInputLost) && time.Since(earlier.CreatedAt) < patience { // it is being stored
			time.Sleep(firstNamePause)
			return w.queuedBefore(ctx, p, queue, t, read, lines)
		}
		if err != nil {
			return nil, nil, err
		}
	case earlier.Queue == task.QueueWorker && earlier.KeepsInput():
		if err := inputStored(queue, earlier); err != nil {
			return nil, nil, err
		}
	}
	if w.Once && w.IfRunning != "skip" { // its success is relied on from now on
		if err := queue.Remember(ctx, earlier); err != nil {
			return nil, nil, err
		}
	}
	id := render.ShortID(earlier.ID)
	if dead, err := queue.Interrupted(ctx, earlier); err == nil && dead && earlier.Queue == task.QueueNone {
		left := fmt.Errorf("%s is there already, as %s, which was interrupted, and no worker goes on with it: "+
			"nothing is added\nhint: retry resume %[2]s does; --fresh cancels it and adds this one", text.Escape(t.Name), id)
		lines.Warn(runner.Loss{Err: left, New: true})
		return earlier, nil, nil
	}
	lines.Say(fmt.Sprintf("%s is there already, as %s: nothing is added", text.Escape(t.Name), id))
	return earlier, nil, nil
}

// sameQueued returns an error where a task of the name is not the one to add.
func (w *Wrapper) sameQueued(queue *sqlite.Queue, earlier, t *task.Task, read func() (*spool.Spool, error)) error {
	const hint = "\nhint: another name adds this one; --fresh cancels that one and adds this one"
	if !sameWork(earlier, t) {
		return fmt.Errorf("%w: %s is there with another %s, %s"+hint, errName, t.Name, work(earlier), render.Title(earlier))
	}
	if t.Kind == task.KindCommand && earlier.Directory != t.Directory {
		return fmt.Errorf("%w: %s is there in another directory, %s"+hint,
			errName, t.Name, text.Escape(earlier.Directory))
	}
	if w.ownKey && earlier.IdempotencyKey != t.IdempotencyKey {
		return fmt.Errorf("%w: %s is there with another idempotency key, %s"+hint, errName, t.Name, earlier.IdempotencyKey)
	}
	if a, b := request.Of(earlier), request.Of(t); a != nil && !a.SameFiles(b) { // a worker would refuse that one
		return fmt.Errorf("%w: %s is there, as %s, and a file of its body has changed since"+hint,
			errName, t.Name, render.ShortID(earlier.ID))
	}
	input, err := read()
	if err != nil {
		return err
	}
	same := earlier.KeepsInput() == t.KeepsInput() && sameWork(earlier, t) // the body of a call is read now
	if same && input != nil {
		journal := &Journal{Journal: queue.Journal}
		same, err = journal.keeps(earlier, input)
	} else if same && t.Target == nil && (earlier.Options.Source.Path != "" || t.Options.Source.Path != "") {
		same = earlier.Options.Source == t.Options.Source
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s is there, as %s, and its stdin cannot be compared: %w"+hint,
			errName, t.Name, render.ShortID(earlier.ID), err)
	case !same:
		return fmt.Errorf("%w: %s is there with another stdin, as %s"+hint, errName, t.Name, render.ShortID(earlier.ID))
	}
	return nil
}

// inputStored returns an error where the stdin of a queued task is not there: it is being stored, or was lost.
func inputStored(queue *sqlite.Queue, earlier *task.Task) error {
	file, err := queue.Input(earlier)
	if err == nil {
		return file.Close()
	}
	return fmt.Errorf("%w: %s is there, as %s, without its stdin: %w"+
		"\nhint: try again where that is still being stored; --fresh cancels that one and adds this one",
		errName, text.Escape(earlier.Name), render.ShortID(earlier.ID), err)
}

// inputTime is how long the stdin of a new task may take to be stored. Were this process killed meanwhile, the task
// would begin then, and fail, as its stdin is lost.
const inputTime = time.Hour

// enqueue stores the task with its stdin, unless an earlier one makes it superfluous. It returns the id of either.
func (w *Wrapper) enqueue(ctx context.Context, p *Host, queue *sqlite.Queue, t *task.Task, due time.Time,
	lines render.Observer) (id string, err error) {
	journal := &Journal{Journal: queue.Journal, warn: lines.Warn, outer: p.outer()}
	read := sync.OnceValues(func() (*spool.Spool, error) {
		_, latest, err := cutOffRuns(ctx, queue.Journal, t)
		if err != nil {
			return nil, err
		}
		input, err := w.input(p, journal, t, w.cutOffSource(latest, t))
		time.Sleep(time.Until(p.inputEnded.Add(endsTogether))) // what ends the writer may end this process, too
		if err == nil {
			err = p.awaitWriter(journal)
		}
		return input, err
	})
	earlier, replaced, err := w.queuedBefore(ctx, p, queue, t, read, lines)
	if err != nil || earlier != nil {
		return idOf(earlier), err
	}
	t.Queue, t.Options.Output, t.Options.OutputLimit = task.QueueWorker, "", 0
	if !slices.Contains(p.Typed, "capture") {
		t.Options.Capture = task.CaptureBoth
	}
	input, err := read()
	if err != nil {
		return "", err
	}
	if due.Before(t.CreatedAt) { // the input was read since
		due = t.CreatedAt
	}
	t.NextAttemptAt = due
	if t.Policy.Budget > 0 && !t.Policy.Deadline { // it counts from when the task may begin
		t.Policy.Budget += due.Sub(t.CreatedAt)
	}
	if input != nil {
		defer func() { _ = input.Close() }()
		t.NextAttemptAt = due.Add(inputTime)
	}
	cancelled := false
	add := func() (err error) {
		if replaced != nil {
			cancelled, err = queue.Replace(ctx, t, replaced)
			return err
		}
		_, err = queue.Add(ctx, []*task.Task{t})
		return err
	}
	for err = add(); err != nil; err = add() {
		if !nameIsTaken(err) {
			return "", err
		}
		// Another process has just added one of the name, or carried it to its success.
		if earlier, replaced, err = w.queuedBefore(ctx, p, queue, t, read, lines); err != nil || earlier != nil {
			return idOf(earlier), err
		}
	}
	if cancelled {
		w.stopReplaced(ctx, queue, replaced, lines)
	}
	if input == nil {
		return t.ID, nil
	}
	if err := journal.keepBody(t, input); err != nil {
		if _, left := queue.Cancel(ctx, t.Number, time.Now()); left != nil {
			err = fmt.Errorf("%w\nhint: it is in the queue all the same; retry cancel %s ends it", err, render.ShortID(t.ID))
		}
		return "", fmt.Errorf("keep the stdin: %w", err)
	}
	waits, err := queue.Reschedule(ctx, t.Number, due)
	if err == nil && !waits {
		return idOfTaken(ctx, queue, t)
	}
	if err != nil { // it is there: nobody is to add it again
		err = fmt.Errorf("it is in the queue, and due in an hour, since that could not be changed: %w"+
			"\nhint: retry resume --now %s makes it due", err, render.ShortID(t.ID))
		lines.Warn(runner.Loss{Err: err, New: true})
	}
	return t.ID, nil
}

// idOfTaken returns the id of a new task that somebody has made due before its stdin was stored, unless it has failed.
func idOfTaken(ctx context.Context, queue *sqlite.Queue, t *task.Task) (string, error) {
	now, err := queue.Find(ctx, t.ID)
	if err == nil && now.Status == task.Failed &&
		(now.Last.Outcome.Error == task.ErrorStart || now.Last.Outcome.Error == task.ErrorLocal) {
		err = fmt.Errorf("%s has failed: it was made due before its stdin was stored\nhint: add it again", render.ShortID(t.ID))
	}
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

// stopReplaced stops what runs of a task that --fresh has cancelled.
func (w *Wrapper) stopReplaced(ctx context.Context, queue *sqlite.Queue, t *task.Task, lines render.Observer) {
	note, err := StopCancelled(ctx, queue.Journal, t)
	if err != nil {
		lines.Warn(fmt.Errorf("stop what runs of %s: %w", render.ShortID(t.ID), err))
		return
	}
	lines.Say("cancelled " + render.ShortID(t.ID) + note)
}

// idOf returns the id of a task that may be nil.
func idOf(t *task.Task) string {
	if t == nil {
		return ""
	}
	return t.ID
}
