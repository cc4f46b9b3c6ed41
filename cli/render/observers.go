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
	Say(text string)               // a line of information, which is no warning
	Share()                        // several runs use it: lines name their task, and there is no countdown
	Clear()                        // erases the line at the bottom: something else is written now
	Progress() func(task.Transfer) // draws the progress of a transfer; nil where nobody would see it
}

// Shared returns an observer that several runs may use at once.
func Shared(o Observer) Observer {
	o.Share()
	return &shared{Observer: o}
}

type shared struct {
	Observer
	mutex sync.Mutex
}

// alone calls do while no other run does.
func (s *shared) alone(do func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	do()
}

func (s *shared) Started(t *task.Task) { s.alone(func() { s.Observer.Started(t) }) }

func (s *shared) Ended(t *task.Task, a task.Attempt) { s.alone(func() { s.Observer.Ended(t, a) }) }

func (s *shared) Waiting(*task.Task, time.Duration) time.Duration { return rarely }

func (s *shared) Finished(t *task.Task, r runner.Result) {
	s.alone(func() { s.Observer.Finished(t, r) })
}

func (s *shared) Say(text string) { s.alone(func() { s.Observer.Say(text) }) }

func (s *shared) Warn(err error) { s.alone(func() { s.Observer.Warn(err) }) }

// Silent passes on warnings alone.
type Silent struct{ Observer }

// Started implements runner.Observer.
func (Silent) Started(*task.Task) {}

// Ended implements runner.Observer.
func (Silent) Ended(*task.Task, task.Attempt) {}

// Finished implements runner.Observer.
func (Silent) Finished(*task.Task, runner.Result) {}

// Waiting implements runner.Observer.
func (Silent) Waiting(_ *task.Task, left time.Duration) time.Duration { return left }

// Say implements Observer.
func (Silent) Say(string) {}

// Progress implements Observer.
func (Silent) Progress() func(task.Transfer) { return nil }
