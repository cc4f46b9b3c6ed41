package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

type resumeCommand struct {
	flags.StateFlag
	flags.OutputFlags
	flags.ReportFlags
	flags.ProcessGroupFlags
	flags.SurvivorFlags
	flags.InputFlags
	All         bool            `help:"Every interrupted task."`
	Interactive bool            `help:"With --all: also tasks that ended with their terminal."`
	DryRun      bool            `help:"List what would be resumed, and resume nothing."`
	MaxAge      *flags.Duration `placeholder:"TIME" help:"With --all: only tasks made, or requeued, within this time."`
	Now         bool            `help:"Do not wait for the time of the next attempt, also where the task waits in another process."`
	Tasks       []string        `arg:"" optional:"" name:"task" help:"The tasks: an id, a beginning or an end of it, or a name."`
}

const resumeUsage = `Go on with interrupted tasks: in their directory, with their numbers, keys and what is left of their budgets.
A task that has finished runs again only when it was requeued, and one whose owner lives is left alone.

Usage:
  retry resume [flags] TASK…
  retry resume [flags] --all

Examples:
  retry resume nightly                   one, with its output here
  retry resume --now nightly             without what is left of its wait, wherever it waits
  retry resume --all --max-age 24h       what a reboot cut off; a unit in docs/cron.md does it at boot
  retry resume --all --dry-run           what that would run
`

func (c *resumeCommand) Run(p *Process) (int, error) {
	if err := cmp.Or(p.fillIn(c), c.check()); err != nil {
		return 0, err
	}
	if c.DryRun {
		return 0, c.list(p)
	}
	ctx := context.Background()
	journal, err := session.ChangeJournal(ctx, &p.Host, c.State)
	if err != nil {
		return 0, err
	}
	defer func() { _ = journal.Close() }()
	lines := session.NewObserver(&p.Host, &c.OutputFlags)
	p.Listen() // who cancels what is adopted from now on signals this process
	tasks, woken, err := c.adopt(p.Stopping(), p, journal, lines.Say)
	if err != nil && p.Stopping().Err() != nil { // while it waited for the journal
		_ = journal.Close()
		p.DieOfStop()
	}
	switch {
	case err != nil && len(tasks) == 0:
		return 0, err
	case err != nil: // some tasks could be adopted
		p.printError(err)
		_, err := c.resumeAll(ctx, p, journal, tasks)
		return 1, err
	case len(tasks) == 0 && woken > 0:
		return 0, nil
	case len(tasks) == 0:
		lines.Say("nothing to resume")
		return 0, nil
	case len(c.Tasks) == 1:
		return c.resumeOne(ctx, p, journal, tasks[0])
	}
	return c.resumeAll(ctx, p, journal, tasks)
}

func (c *resumeCommand) check() error {
	switch {
	case c.All && len(c.Tasks) > 0:
		return errors.New("--all and a task exclude each other\nhint: give one of them")
	case !c.All && len(c.Tasks) == 0:
		return errors.New("no task to resume\nhint: retry resume TASK, or --all; retry status lists the tasks")
	case c.MaxAge != nil && !c.All:
		return errors.New("--max-age goes with --all\nhint: a task that is named is resumed whatever its age")
	case c.Interactive && !c.All:
		return errors.New("--interactive goes with --all\nhint: a task that is named is resumed however it ended")
	case c.Report != "" && (c.All || len(c.Tasks) > 1):
		return errors.New("--report goes with a single task\nhint: retry status TASK --json tells of any task")
	case c.Mode() == task.StdinRest && (c.All || len(c.Tasks) > 1):
		return errors.New("--stdin rest goes with a single task" +
			"\nhint: several cannot share one stdin; null gives them nothing")
	case c.Foreground && c.Group:
		return errors.New("--foreground and --group exclude each other\nhint: give one of them")
	}
	return nil
}

// adopt makes this process the owner of the tasks to resume. With --all it skips tasks that another process owns or has
// finished; for a task that the user named, that is an error beside the tasks that it could adopt. With --now it wakes
// such a task where it waits.
func (c *resumeCommand) adopt(ctx context.Context, p *Process, journal state.Store,
	say func(string)) (adopted []*task.Task, woken int, err error) {
	found, refusals, err := c.find(ctx, p, journal, say)
	if err != nil {
		return nil, 0, err
	}
	patience := time.Now().Add(500 * time.Millisecond)
	for _, t := range found {
		among := session.OneOfSeveral(t.Number)
		if len(c.Tasks) != 1 {
			_, _, _ = journal.OwnName(among) // another resume may have it, which has the task then
		}
		tk, err := session.Adopt(ctx, journal, t)
		for c.All && t.Name != "" && errors.Is(err, state.ErrOwned) && time.Now().Before(patience) {
			time.Sleep(10 * time.Millisecond) // a run that finds another command under its name has it for a moment
			tk, err = session.Adopt(ctx, journal, t)
		}
		if (errors.Is(err, state.ErrOwned) || errors.Is(err, state.ErrQueued)) && c.Now && !c.All {
			_ = journal.ReleaseName(among)
			if err = wake(ctx, journal, t, say); err == nil {
				woken++
				continue
			}
		}
		if err != nil {
			_ = journal.ReleaseName(among)
		}
		switch {
		case err == nil:
			adopted = append(adopted, tk)
		case c.All && (errors.Is(err, state.ErrOwned) || errors.Is(err, state.ErrFinished)):
		default:
			refusals = append(refusals, err)
		}
	}
	return adopted, woken, errors.Join(refusals...)
}

// wake ends the wait of a task that lives in another process: the journal says that it is due, and a signal has its
// owner look there. Where the owner cannot be seen, it looks by itself.
func wake(ctx context.Context, journal state.Store, t *task.Task, say func(string)) error {
	waits, err := journal.Hasten(ctx, t.Number, time.Now())
	if err == nil && !waits {
		err = fmt.Errorf("its attempt %s runs now\nhint: retry status --watch %s shows it, retry cancel stops it",
			render.AttemptCount(t), render.ShortID(t.ID))
	}
	if err != nil {
		return fmt.Errorf("resume %s: %w", render.ShortID(t.ID), err)
	}
	next := *t
	next.AttemptCount++
	what := fmt.Sprintf("%s: attempt %s is due now", render.ShortID(t.ID), render.AttemptCount(&next))
	if t.Queue == task.QueueWorker {
		workers, err := journal.ListWorkers(ctx)
		if err == nil && !anyLives(workers) {
			say(what + "; " + noWorker)
		} else {
			say(what + "; a worker makes it")
		}
		return err
	}
	if pid := session.SignalOwner(journal, t.Number, session.WakeSignal); pid > 0 {
		say(fmt.Sprintf("%s; woke process %d, which makes it", what, pid))
		return nil
	}
	say(what + "; its process cannot be signalled from here, and looks within 30s")
	return nil
}

// list prints the tasks that a resume would take.
func (c *resumeCommand) list(p *Process) error {
	return p.withJournal(session.ReadJournal, c.State, func(ctx context.Context, journal state.Store) error {
		found, refusals, err := c.find(ctx, p, journal, session.NewObserver(&p.Host, &c.OutputFlags).Say)
		if err != nil {
			return err
		}
		views := func(yield func(render.TaskView, error) bool) {
			for _, t := range found {
				if view, err := viewOf(ctx, journal, t); (err != nil || view.Interrupted) && !yield(view, err) {
					return
				}
			}
		}
		screen := render.ScreenOf(p.Stdout, p.Getenv)
		err = render.Tasks(p.Stdout, screen, views, render.Table{None: "nothing to resume"}, time.Now())
		return cmp.Or(err, errors.Join(refusals...))
	})
}

// find returns the tasks to resume, and why it leaves others that the user named. Of those that --all leaves, though
// they were interrupted, it says how many.
func (c *resumeCommand) find(ctx context.Context, p *Process, journal state.Store,
	say func(string)) (found []*task.Task, refusals []error, err error) {
	if !c.All {
		return c.named(ctx, p, journal)
	}
	unfinished, err := journal.Unfinished(ctx)
	if err != nil {
		return nil, nil, err
	}
	old, hungUp, ended, viewOf := 0, 0, 0, viewer(ctx, journal)
	for _, t := range unfinished {
		view, err := viewOf(t)
		if err != nil {
			return nil, nil, err
		}
		outer, err := session.OuterOf(ctx, journal, t)
		switch {
		case err != nil:
			return nil, nil, err
		case !view.Interrupted || outer != nil && (outer.Status != task.Cancelled || c.DryRun):
		case outer != nil:
			ended++
			if err := session.EndNested(ctx, journal, t); err != nil {
				return nil, nil, err
			}
		case c.tooOld(t):
			old++
		case t.Reason == task.ReasonHangup && !c.Interactive:
			hungUp++
		default:
			found = append(found, t)
		}
	}
	if old > 0 {
		say("leaves " + text.Count(old, "task") + " older than --max-age: retry status --status interrupted")
	}
	if ended > 0 {
		say("cancelled " + text.Count(ended, "task") + " that ran inside of cancelled ones")
	}
	if hungUp > 0 {
		say("leaves " + text.Count(hungUp, "task") + " that ended with the terminal: --interactive takes those too")
	}
	return found, nil, nil
}

// firstYear is before the first retry: an earlier time is that of a clock which nobody had set yet after a boot.
const firstYear = 2020

func (c *resumeCommand) tooOld(t *task.Task) bool {
	return c.MaxAge != nil && t.Began().Year() >= firstYear && time.Since(t.Began()) >= time.Duration(*c.MaxAge)
}

// named finds the tasks of the arguments, each once: the locks do not stop one process from adopting a task twice.
func (c *resumeCommand) named(ctx context.Context, p *Process,
	journal state.Store) (tasks []*task.Task, refusals []error, err error) {
	for _, ref := range c.Tasks {
		t, err := journal.Find(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		if err := p.CheckApart(ctx, journal, t); err != nil {
			refusals = append(refusals, err)
		} else if !slices.ContainsFunc(tasks, func(other *task.Task) bool { return other.Number == t.Number }) {
			tasks = append(tasks, t)
		}
	}
	return tasks, refusals, nil
}

// resumeOne resumes a task in this process, and returns the exit status that its own run would have had.
func (c *resumeCommand) resumeOne(ctx context.Context, p *Process, journal state.Store, t *task.Task) (int, error) {
	guarded := &session.Journal{Journal: journal, Stopping: p.Stopping(), Resumes: true}
	lines, err := session.Reported(session.NewObserver(&p.Host, &c.OutputFlags), &p.Host, c.Report, guarded)
	if err != nil {
		return 0, err
	}
	sayResumed(lines, t)
	result, err := p.Resume(ctx, t, guarded, p.WithKeptReport(lines, t, guarded), c.continuation())
	if err != nil {
		return 0, err
	}
	session.DieOf(result.DeathSignal())
	return result.ExitCode(), nil
}

// sayResumed tells which task the lines that follow are about: an id alone says little.
func sayResumed(lines render.Observer, t *task.Task) {
	what := render.Title(t)
	if t.Name != "" {
		what = text.Escape(t.Name) + ", " + what
	}
	lines.Say("resumes " + render.ShortID(t.ID) + ": " + what)
}

func (c *resumeCommand) continuation() session.ResumeOptions {
	return session.ResumeOptions{
		ExecOptions: session.ExecOptions{Group: &c.ProcessGroupFlags, Stdin: c.Mode()},
		Now:         c.Now, SurvivorFlags: c.SurvivorFlags,
	}
}

// resumeAll resumes several tasks at the same time. The exit status is 0 when all of them succeeded.
func (c *resumeCommand) resumeAll(ctx context.Context, p *Process, journal state.Store,
	tasks []*task.Task) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	several := *p
	several.Stdin = null // the tasks cannot share one stdin
	slots := make(chan struct{}, max(4, runtime.NumCPU()))
	turn := make(chan struct{}, 1)
	observer := render.Shared(session.NewObserver(&p.Host, &c.OutputFlags))
	cancelled := make([]atomic.Bool, len(tasks))
	channels := p.ListenForEach(len(tasks), func(i int) bool { // another process has it look there
		t, err := journal.Find(ctx, tasks[i].ID)
		return err == nil && t.Status == task.Cancelled && cancelled[i].CompareAndSwap(false, true)
	})

	results := make([]runner.Result, len(tasks))
	var group sync.WaitGroup
	for i, t := range tasks {
		group.Go(func() {
			guarded := &session.Journal{Journal: journal, Stopping: p.Stopping(), Resumes: true}
			run, err := several.NewResumer(t, guarded, several.WithKeptReport(observer, t, guarded), c.continuation())
			if err == nil {
				sayResumed(observer, t)
				run.Signals, run.Slots = channels[i], slots
				run.Executor = &session.InTurn{Executor: run.Executor, Turn: turn}
				results[i], err = run.Resume(ctx, t)
				run.Close()
				if cancelled[i].Load() { // the signal was for this task alone
					results[i].Signal, results[i].LateSignal = nil, nil
				}
			}
			if err != nil {
				p.printError(err)
				results[i] = runner.Result{Outcome: task.Outcome{Exit: task.ExitInternal}}
			}
			_ = journal.Release(t.Number) // while this process runs other tasks, it can be requeued
			_ = journal.ReleaseName(session.OneOfSeveral(t.Number))
			if t.Name != "" {
				_ = journal.ReleaseName(t.Name)
			}
		})
	}
	group.Wait()
	code := 0
	for _, r := range results {
		if r.ExitCode() != 0 {
			code = 1
		}
		if sig := r.DeathSignal(); sig != nil {
			_ = journal.Close() // every write was committed already
			session.DieOf(sig)
		}
	}
	if len(tasks) > 1 {
		observer.Say(resumeSummary(tasks))
	}
	return code, nil
}

// resumeSummary counts what became of tasks, for people.
func resumeSummary(tasks []*task.Task) string {
	var parts []string
	for _, end := range []struct {
		statuses []task.Status
		words    string
	}{
		{[]task.Status{task.Succeeded}, "succeeded"}, {[]task.Status{task.Exhausted}, "gave up"},
		{[]task.Status{task.Failed}, "failed"}, {[]task.Status{task.Cancelled}, "cancelled"},
		{[]task.Status{task.Pending, task.InFlight}, "not finished"},
	} {
		n := 0
		for _, t := range tasks {
			if slices.Contains(end.statuses, t.Status) {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, end.words))
		}
	}
	return "resumed " + text.Count(len(tasks), "task") + ": " + strings.Join(parts, ", ")
}
