package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// reportFlags ask for a report.
type reportFlags struct {
	Report string
}

// reporter writes the report. It hears of the end before the task's last hook runs, so that the hook can send it.
type reporter struct {
	render.Observer
	path     string
	stream   *os.File // instead of a path; nil for a file
	journal  *guardedJournal
	attempts []task.Attempt // where no journal remembers them
}

// reported returns an observer that also writes the report, where one is asked for. The path is tried before anything runs.
func (f *reportFlags) reported(o render.Observer, p *Process, journal *guardedJournal) (render.Observer, error) {
	if f.Report == "" {
		return o, nil
	}
	r := &reporter{Observer: o, stream: p.stream(f.Report), journal: journal}
	if r.stream == nil {
		var err error
		if r.path, err = files.Target(f.Report); err != nil {
			return nil, fmt.Errorf("--report: %w\nhint: give a file in a directory that can be written", err)
		}
	}
	return r, nil
}

// stream returns the stream of ours that a path names; nil where it names none. Such a path must not be followed: where the stream
// leads to a file, that has more in it than the report.
func (p *Process) stream(path string) *os.File {
	switch path {
	case "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return p.Stdout
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return p.Stderr
	}
	return nil
}

// Decorates returns the observer that people see.
func (r *reporter) Decorates() render.Observer { return r.Observer }

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
		r.Warn(fmt.Errorf("write the report: %w", err))
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
	if r.stream != nil {
		_, err := r.stream.Write(text.Bytes())
		return err
	}
	return files.Replace(r.path, text.Bytes())
}
