package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

type statusCommand struct {
	flags.StateFlag
	filterFlags
	deadFlags
	session.PagerFlag
	JSON  bool    `help:"Print JSON; its fields are stable."`
	JSONL bool    `name:"jsonl" help:"Print each task with its attempts as a line of JSON: to keep, or to hand on."`
	Watch bool    `help:"Draw it again every second, until Ctrl-C."`
	Task  *string `arg:"" optional:"" help:"One task in detail: its id, a beginning or an end of it, or its name."`
}

const statusUsage = `List the tasks of the journal: what runs, waits or was interrupted first, then the newest.
Or show one with its attempts.

Usage:
  retry status [flags] [TASK]

Examples:
  retry status --failed --since yesterday    the runs that failed for good
  retry status nightly                       why the newest run of that name failed
  retry status --id nightly                  how all runs of that name went
  retry status --status interrupted          what a resume would go on with
  retry status --watch nightly               the newest one, as it goes on
  retry status --dead                        what gave up or failed, in groups; retry requeue --dead tries again
  retry status --dead --host api --jsonl     those of one host, a line of JSON each
`

// tableLimit is how many tasks a table shows.
const tableLimit = 20

func (c *statusCommand) Run(p *Process) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	if c.Watch {
		// Each picture opens the journal anew: it may not exist yet, or be replaced later.
		return 0, watch(p, func(w io.Writer, s render.Screen) error { return c.report(p, w, s) })
	}
	if c.JSON || c.JSONL {
		return 0, c.report(p, p.Stdout, render.Screen{})
	}
	return 0, p.Paged(c.PagerFlag, func(w io.Writer, s render.Screen) error { return c.report(p, w, s) })
}

func (c *statusCommand) report(p *Process, w io.Writer, s render.Screen) error {
	w, done := p.BusyUntilShown("reads the tasks", w)
	defer done()
	return p.withJournal(session.ReadJournal, c.State, func(ctx context.Context, journal state.Store) error {
		switch {
		case c.JSONL:
			return writeLines(ctx, w, journal, c.exported(ctx, journal))
		case c.Dead:
			return c.reportDead(ctx, w, journal, s)
		case c.JSON:
			return c.print(ctx, w, journal)
		}
		return c.draw(ctx, journal, w, s)
	})
}

func (c *statusCommand) check() error {
	switch {
	case c.Watch && c.JSON:
		return errors.New("--watch and --json exclude each other" +
			"\nhint: a program asks again itself: retry status --json")
	case c.Task != nil && (c.given() || c.Limit != nil):
		return errors.New("--id, --status, --failed, --live, --since and --limit choose from the list, not from one task" +
			"\nhint: leave them out, or leave the task out")
	case c.JSONL && (c.Watch || c.JSON || c.Task != nil):
		return errors.New("--jsonl is a list of tasks, without --json, --watch or a task\nhint: give one of them")
	case c.Dead && (c.Task != nil || c.ID != nil || len(c.wanted()) > 0 || c.Limit != nil && !c.JSONL):
		return errors.New("--dead goes with --host, --policy, --error and --since alone" +
			"\nhint: retry status --failed lists single tasks")
	case c.deadFlags.check() != nil:
		return c.deadFlags.check()
	case c.ID != nil && *c.ID == "":
		return errors.New("--id is empty\nhint: a variable that is not set?")
	}
	return nil
}

func (c *statusCommand) reportDead(ctx context.Context, w io.Writer, journal state.Store, s render.Screen) error {
	groups, err := c.groups(ctx, journal, c.Since)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return render.GroupsJSON(w, groups)
	}
	return render.Groups(w, s, groups, time.Now())
}

// print writes JSON.
func (c *statusCommand) print(ctx context.Context, w io.Writer, journal state.Store) error {
	if c.Task == nil {
		limit := 0
		if c.Limit != nil {
			limit = int(*c.Limit)
		}
		return render.TasksJSON(w, c.views(ctx, journal, limit))
	}
	view, err := findView(ctx, journal, *c.Task)
	if err != nil {
		return err
	}
	attempts, err := journal.Attempts(ctx, view.Number)
	if err != nil {
		return err
	}
	return render.TaskJSON(w, view, attempts)
}

// draw writes what a person reads.
func (c *statusCommand) draw(ctx context.Context, journal state.Store, w io.Writer, s render.Screen) error {
	if c.Task == nil {
		note, err := queueNote(ctx, journal)
		if err != nil {
			return err
		}
		if note != "" && s.Height > 0 {
			s.Height--
		}
		table := c.table(s)
		table.Note = note
		asked := 0
		if table.Limit > 0 {
			asked = table.Limit + 1 // one more row than is shown says that there are more
		}
		return render.Tasks(w, s, c.listed(ctx, journal, asked), table, time.Now())
	}
	view, err := findView(ctx, journal, *c.Task)
	if err != nil {
		return err
	}
	attempts, err := shownAttempts(ctx, journal, view.Number)
	if err != nil {
		return err
	}
	return render.Task(w, s, view, attempts, time.Now())
}

// table says how many tasks are shown, and the text that stands for the rest.
func (c *statusCommand) table(s render.Screen) render.Table {
	table := render.Table{Limit: tableLimit, None: "no tasks yet", More: "… and older ones: retry status --limit 0"}
	if c.Limit != nil {
		table.Limit = int(*c.Limit)
	}
	if c.given() {
		table.None, table.More = "no such tasks", "… and older ones: --limit 0 shows them too"
	}
	if s.Height > 0 {
		room := max(1, s.Height-2) // the two lines are for the titles and for the note about older tasks
		if table.Limit == 0 || table.Limit > room {
			table.Limit, table.More = room, "… and older ones"
		}
	}
	return table
}

// queueNote says why queued tasks that are due do not run: there is no worker, or their hosts are paused. It is empty
// where nothing keeps them.
func queueNote(ctx context.Context, journal state.Store) (string, error) {
	due, err := journal.Due(ctx, time.Now())
	if err != nil || due == 0 {
		return "", err
	}
	workers, err := journal.ListWorkers(ctx)
	if err != nil || !anyLives(workers) {
		return fmt.Sprintf("%s due, and %s", text.Count(due, "queued task"), noWorker), err
	}
	hosts, err := pausedHosts(ctx, journal)
	switch n := len(hosts); {
	case err != nil || n == 0:
		return "", err
	case n > 1:
		others := text.Count(n-1, "other host")
		return fmt.Sprintf("%s and %s are paused: tasks for them wait", text.Escape(hosts[0]), others), nil
	}
	return text.Escape(hosts[0]) + " is paused: tasks for it wait", nil
}

// pausedHosts returns the hosts to which nothing goes.
func pausedHosts(ctx context.Context, journal state.Store) (hosts []string, err error) {
	targets, err := journal.Targets(ctx)
	for _, t := range targets {
		if t.Paused {
			hosts = append(hosts, t.Host)
		}
	}
	return hosts, err
}

// shownAttempts returns a task's attempts. Only the one whose output is shown has it, as all output could be large.
func shownAttempts(ctx context.Context, journal state.Store, number int64) ([]task.Attempt, error) {
	attempts, err := journal.History(ctx, number)
	if err != nil {
		return nil, err
	}
	output, err := journal.Output(ctx, number, 0)
	if errors.Is(err, state.ErrNoOutput) {
		return attempts, nil
	}
	for i := range attempts {
		if attempts[i].Number == output.Attempt {
			attempts[i].Outcome.Stdout, attempts[i].Outcome.Stderr = output.Stdout, output.Stderr
		}
	}
	return attempts, err
}

func findView(ctx context.Context, journal state.Store, ref string) (render.TaskView, error) {
	t, err := journal.Find(ctx, ref)
	if err != nil {
		return render.TaskView{}, err
	}
	return viewOf(ctx, journal, t)
}

func viewOf(ctx context.Context, journal state.Store, t *task.Task) (render.TaskView, error) {
	return viewer(ctx, journal)(t)
}

// viewer returns what makes views of tasks. It asks for the workers once, when the first queued task needs them.
func viewer(ctx context.Context, journal state.Store) func(t *task.Task) (render.TaskView, error) {
	workers := sync.OnceValues(func() ([]state.Worker, error) { return journal.ListWorkers(ctx) })
	paused := sync.OnceValues(func() ([]string, error) { return pausedHosts(ctx, journal) })
	return func(t *task.Task) (render.TaskView, error) {
		view := render.TaskView{Task: t}
		var err error
		if view.Interrupted, err = journal.Interrupted(ctx, t); err != nil || t.Status.Finished() || t.Queue == task.QueueNone {
			return view, err
		}
		hosts, err := paused()
		if err != nil {
			return view, err
		}
		view.Paused = t.Target != nil && slices.Contains(hosts, t.Host())
		list, err := workers()
		view.Unattended = !anyLives(list)
		if i := slices.IndexFunc(list, func(w state.Worker) bool { return w.Number == t.Worker }); i >= 0 {
			view.WorkerName = list[i].Name
		}
		return view, err
	}
}

func anyLives(workers []state.Worker) bool {
	return slices.ContainsFunc(workers, func(w state.Worker) bool { return !w.Gone })
}

// watchInterval is the time between two pictures.
const watchInterval = time.Second

// watch draws a report on the terminal until a signal ends it. It never hides the cursor: nothing has to be restored.
func watch(p *Process, draw func(io.Writer, render.Screen) error) error {
	if !term.IsTerminal(int(p.Stdout.Fd())) {
		return errors.New("--watch draws on a terminal, and stdout is none" +
			"\nhint: leave it out; for a program: retry status --json")
	}
	signals := make(chan os.Signal, session.SignalBuffer)
	session.Notify(signals)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for drawn := false; ; {
		if proc.Interactive(p.Stdout) { // in the background the picture would cover what the shell prints
			if err := drawFrame(p, draw, drawn); err != nil {
				return err
			}
			drawn = true
		}
		select {
		case <-ticker.C:
		case sig := <-signals: // SIGWINCH draws the next picture at once
			if task.Stops(sig) {
				session.DieOf(sig)
			}
		}
	}
}

// drawFrame writes a picture in one call, so that it does not flicker. Before the first one it scrolls the screen up.
func drawFrame(p *Process, draw func(io.Writer, render.Screen) error, drawn bool) error {
	screen := render.ScreenOf(p.Stdout, p.Getenv)
	width, height, err := term.GetSize(int(p.Stdout.Fd()))
	if err != nil || width < 2 || height < 2 {
		width, height = 80, 24
	}
	// The last column stays free, as some terminals wrap there, and so does the last line, for the cursor.
	screen.Width, screen.Height = width-1, height-1
	var text bytes.Buffer
	if err := draw(&text, screen); err != nil {
		return err
	}
	scroll := ""
	if !drawn {
		scroll = strings.Repeat("\n", height-1)
	}
	_, err = io.WriteString(p.Stdout, scroll+screen.Frame(text.String()))
	return err
}
