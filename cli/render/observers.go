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
	// Say tells what is worth knowing, and no warning.
	Say(text string)
}

// Silent tells nothing.
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

// Shared lets several runs use one observer: lines name their task, and there is no countdown, since each would draw its own.
func Shared(o Observer) Observer {
	share(o)
	return &shared{observer: o}
}

// share tells an observer, and those that it decorates, that several runs use it.
func share(o Observer) {
	if s, ok := o.(interface{ share() }); ok {
		s.share()
	}
}

func (l *Lines) share() {
	l.named = true
}

type shared struct {
	mutex    sync.Mutex
	observer Observer
}

func (s *shared) Started(t *task.Task) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.observer.Started(t)
}

func (s *shared) Ended(t *task.Task, a task.Attempt) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.observer.Ended(t, a)
}

func (s *shared) Waiting(*task.Task, time.Duration) time.Duration { return rarely }

func (s *shared) Finished(t *task.Task, r runner.Result) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.observer.Finished(t, r)
}

func (s *shared) Say(text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.observer.Say(text)
}

func (s *shared) Warn(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.observer.Warn(err)
}

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
