package render

import (
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Quiet tells nothing but, of a task whose output is shown on failure alone, why it failed in the end: a command that could not be
// found, or that was stopped, may have written nothing itself.
type Quiet struct {
	Silent
	lines *Lines
}

// NewQuiet returns the observer of -q.
func NewQuiet(lines *Lines) Quiet { return Quiet{lines: lines} }

// Ended implements runner.Observer.
func (q Quiet) Ended(t *task.Task, a task.Attempt) {
	if tells(t) {
		q.lines.Ended(t, a)
	}
}

// Finished implements runner.Observer.
func (q Quiet) Finished(t *task.Task, r runner.Result) {
	if tells(t) {
		q.lines.Finished(t, r)
	}
}

// share has several runs name their tasks.
func (q Quiet) share() { q.lines.share() }

func tells(t *task.Task) bool {
	return t.Options.Output == task.OutputFailure && (t.Status == task.Failed || t.Status == task.Exhausted)
}
