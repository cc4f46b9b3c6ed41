package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/render/ci"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// reporter writes the report when the task ends, before its last hook runs, so that the hook can send it.
type reporter struct {
	render.Observer
	path     string
	stream   *os.File        // instead of a path; nil for a file
	stopping <-chan struct{} // closed by the first signal that asks to stop
	journal  *Journal
	attempts []task.Attempt // where no journal remembers them
}

// Reported returns an observer that also writes the report, if there is a path. One that cannot be written is an error.
func Reported(o render.Observer, p *Host, path string, journal *Journal) (render.Observer, error) {
	if path == "" {
		return o, nil
	}
	r := &reporter{Observer: o, stream: p.Stream(path), stopping: p.Stopping().Done(), journal: journal}
	if r.stream == nil {
		var err error
		if r.path, err = files.Target(path); err != nil {
			return nil, fmt.Errorf("--report: %w\nhint: give a file in a directory that can be written", err)
		}
	}
	return r, nil
}

// WithKeptReport returns an observer that also writes the report which a task was begun with, unless it writes one
// already.
func (p *Host) WithKeptReport(o render.Observer, t *task.Task, journal *Journal) render.Observer {
	if _, writes := o.(*reporter); writes || t.Options.Report == "" {
		return o
	}
	reported, err := Reported(o, p, t.Options.Report, journal)
	if err != nil { // the task goes on without it
		o.Warn(runner.Loss{Err: err, New: true})
		return o
	}
	return reported
}

// Ended implements runner.Observer.
func (r *reporter) Ended(t *task.Task, a task.Attempt) {
	if r.journal.absent() {
		r.attempts = append(r.attempts, a)
	}
	r.Observer.Ended(t, a)
}

// Finished implements runner.Observer.
func (r *reporter) Finished(t *task.Task, result runner.Result) {
	r.Observer.Finished(t, result)
	if err := r.write(t); err != nil {
		r.Warn(runner.Loss{Err: fmt.Errorf("write the report: %w", err), New: true})
	}
}

func (r *reporter) write(t *task.Task) error {
	attempts, err := r.journal.attempts(context.Background(), t, r.attempts)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := render.TaskJSON(&text, render.TaskView{Task: t, Interrupted: !t.Status.Finished()}, attempts); err != nil {
		return err
	}
	if info, err := os.Stat(r.path); r.stream == nil && (err != nil || info.Mode().IsRegular()) {
		return files.Replace(r.path, text.Bytes())
	}
	done := make(chan error, 1)
	go func() { done <- r.pass(text.Bytes()) }()
	select {
	case err := <-done:
		return err
	case <-r.stopping:
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stopGrace):
		return errNotRead
	}
}

// stopGrace is how long the reader of a pipe has for the report after a signal has asked to stop.
const stopGrace = 100 * time.Millisecond

var errNotRead = errors.New("nobody reads it")

// pass writes to what may take long: a pipe or a device.
func (r *reporter) pass(content []byte) error {
	if r.stream == nil {
		return files.Replace(r.path, content)
	}
	_, err := r.stream.Write(content)
	return err
}

// Level is how many other retry processes this one runs in.
func (p *Host) Level() int { return len(cmdexec.OuterTasks(p.Getenv)) }

// NewObserver returns who tells people about a run: on stderr, since stdout is the command's.
func NewObserver(p *Host, f *flags.OutputFlags) render.Observer {
	switch {
	case f.Quiet:
		return render.Nested(render.NewQuiet(p.messages()), p.Level())
	case f.LogFormat == "json":
		return render.NewLog(p.messages(), f.Verbose)
	}
	service := ci.Service(f.CI)
	// Groups do not nest, and the outer retry may try again after the failure of a nested one.
	if nested := p.Getenv(cmdexec.EnvTaskID) != ""; nested && service == ci.Auto {
		service = ci.None
	}
	switch service.Detect(p.Getenv) {
	case ci.GitHub:
		return ci.NewGitHub(p.messages(), f.Verbose, p.Getenv("GITHUB_STEP_SUMMARY"))
	case ci.GitLab:
		return ci.NewGitLab(p.messages(), f.Verbose)
	default:
		return render.Nested(render.NewLines(p.messages(), p.terminal(), f.Verbose), p.Level())
	}
}

// terminal is where lines are drawn over themselves, if stderr is one.
func (p *Host) terminal() *render.Terminal {
	inForeground := func() bool { return p.Getenv("TERM") != "dumb" && proc.Interactive(p.Stderr) }
	return &render.Terminal{File: p.Stderr, InForeground: inForeground, Getenv: p.Getenv}
}

// Busy says on a terminal what takes longer than a second, until done is called.
func (p *Host) Busy(what string) (done func()) { return render.Busy(p.terminal(), what) }

// BusyUntilShown is Busy while a report is written to w, which leads to stdout: until the first of it is there for
// somebody to read, on a terminal or through a pipe; a file is read only when it is whole.
func (p *Host) BusyUntilShown(what string, w io.Writer) (shown io.Writer, done func()) {
	done = p.Busy(what)
	if info, err := p.Stdout.Stat(); err == nil && info.Mode().IsRegular() {
		return w, done
	}
	return firstWrite{w, done}, done
}

// firstWrite calls begun before each write; only the first call does something.
type firstWrite struct {
	io.Writer
	begun func()
}

func (f firstWrite) Write(b []byte) (int, error) {
	f.begun()
	return f.Writer.Write(b)
}
