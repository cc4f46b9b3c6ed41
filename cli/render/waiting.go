package render

import (
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// waitingObserver tells what `retry wait` waits for, and why that is not there, as often as the reason changes.
type waitingObserver struct {
	*lineObserver
	name  string
	end   string        // is there, or is gone
	limit time.Duration // 0 = none
	begun time.Time
	why   string // as it was told last
}

// NewWaiting returns an observer for people, which writes on lines of NewLines or NewQuiet. What is waited for has a
// name.
func NewWaiting(lines Observer, name string, gone bool, limit time.Duration) runner.Observer {
	l, _ := lines.(*lineObserver)
	o := &waitingObserver{lineObserver: l, name: text.Escape(name), end: "is there", limit: limit, begun: time.Now()}
	if gone {
		o.end = "is gone"
	}
	return o
}

// Started implements runner.Observer.
func (o *waitingObserver) Started(*task.Task) {}

// Ended implements runner.Observer.
func (o *waitingObserver) Ended(_ *task.Task, a task.Attempt) {
	why := text.Escape(a.Outcome.Message)
	switch {
	case why == "" || why == o.why:
		return
	case o.why != "":
		o.Say(o.name + ": " + why)
	case o.limit > 0:
		o.Say("wait until " + o.name + " " + o.end + ", for at most " + text.Duration(o.limit) + ": " + why)
	default:
		o.Say("wait until " + o.name + " " + o.end + ": " + why)
	}
	o.why = why
}

// Waiting implements runner.Observer.
func (o *waitingObserver) Waiting(*task.Task, time.Duration) time.Duration {
	if o.status.visible() {
		o.status.draw("retry: waiting for " + text.Duration(time.Since(o.begun).Truncate(time.Second)))
	}
	return time.Second
}

// Finished implements runner.Observer.
func (o *waitingObserver) Finished(t *task.Task, r runner.Result) {
	o.status.clear()
	took := text.Duration(time.Since(o.begun))
	switch {
	case r.Signal != nil:
		o.Say("interrupted by " + signalName(r.Signal))
	case t.Status != task.Succeeded:
		o.Say("gave up after " + took + ": " + o.name + ": " + o.why)
	case o.why != "":
		o.Say(o.name + " " + o.end + ", after " + took)
	}
}
