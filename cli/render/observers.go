package render

import (
	"sync"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Observer tells people what a run does.
type Observer interface {
	runner.Observer
	Say(text string) // a line of information, which is no warning
}

// Silent is an observer that writes nothing.
type Silent struct{}

// Started implements runner.Observer.
func (Silent) Started(*task.Task) {}

// Ended implements runner.Observer.
func (Silent) Ended(*task.Task, task.Attempt) {}

// Waiting implements runner.Observer.
func (Silent) Waiting(*task.Task, time.Duration) time.Duration { return rarely }

// Finished implements runner.Observer.
func (Silent) Finished(*task.Task, runner.Result) {}

// Warn implements runner.Observer.
func (Silent) Warn(error) {}

// Say implements Observer.
func (Silent) Say(string) {}

// Shared returns an observer that several runs may use at once: lines name their task, and there is no countdown.
func Shared(o Observer) Observer {
	Share(o)
	return &shared{observer: o}
}

// Sharer is an observer that writes something else where several runs use it.
type Sharer interface{ Share() }

// Share tells an observer, and those that it decorates, that several runs use it.
func Share(o Observer) {
	if s, ok := o.(Sharer); ok {
		s.Share()
	}
}

type shared struct {
	mutex    sync.Mutex
	observer Observer
}

// alone calls do while no other run does.
func (s *shared) alone(do func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	do()
}

func (s *shared) Started(t *task.Task) { s.alone(func() { s.observer.Started(t) }) }

func (s *shared) Ended(t *task.Task, a task.Attempt) { s.alone(func() { s.observer.Ended(t, a) }) }

func (s *shared) Waiting(*task.Task, time.Duration) time.Duration { return rarely }

func (s *shared) Finished(t *task.Task, r runner.Result) {
	s.alone(func() { s.observer.Finished(t, r) })
}

func (s *shared) Say(text string) { s.alone(func() { s.observer.Say(text) }) }

func (s *shared) Warn(err error) { s.alone(func() { s.observer.Warn(err) }) }

// quiet writes nothing, except why a task failed in the end whose output is shown on failure only: a command that could
// not be found, or that was stopped, may have written nothing itself.
type quiet struct {
	Silent
	lines Observer
}

// NewQuiet returns the observer of -q.
func NewQuiet(lines Observer) Observer { return quiet{lines: lines} }

func (q quiet) Ended(t *task.Task, a task.Attempt) {
	if explains(t) {
		q.lines.Ended(t, a)
	}
}

func (q quiet) Finished(t *task.Task, r runner.Result) {
	if explains(t) {
		q.lines.Finished(t, r)
	}
}

func (q quiet) Share() { Share(q.lines) }

func explains(t *task.Task) bool {
	return t.Options.Output == task.OutputFailure && (t.Status == task.Failed || t.Status == task.Exhausted)
}
