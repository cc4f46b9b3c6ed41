package runner

import (
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

func half() float64 { return 0.5 }

// exit is the outcome of a command that exited.
func exit(code int) task.Outcome { return task.Outcome{Exit: code, Duration: time.Second} }

// policy returns the default policy with a constant delay of 10 s and what change does to it.
func policy(t *testing.T, change func(*task.Policy)) *task.Policy {
	t.Helper()
	spec, err := backoff.Parse("constant:10s", "none")
	if err != nil {
		t.Fatal(err)
	}
	p := task.DefaultPolicy()
	p.Backoff = spec
	if change != nil {
		change(&p)
	}
	return &p
}

// answered is the outcome of a request whose attempt came to an event.
func answered(event string, class task.Class, change func(*task.Reply)) task.Outcome {
	o := task.Outcome{Exit: 22, Duration: time.Second, HTTP: &task.Reply{Default: task.Eligibility{Class: class, Event: event}}}
	if change != nil {
		change(o.HTTP)
	}
	return o
}

// reply is the outcome of a request that was answered with a status.
func reply(status int) task.Outcome {
	o := task.Outcome{HTTP: &task.Reply{Status: status}}
	if status >= 400 {
		o.Exit = 22
		o.HTTP.Default.Class = task.ClassFatal
	}
	return o
}
