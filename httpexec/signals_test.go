package httpexec

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// A signal that asks to stop ends the attempt at once; others are nobody's.
func TestSignalEndsAnAttempt(t *testing.T) {
	signals := make(chan os.Signal)
	s := serve(t, func(c *wire) {
		c.request()
		signals <- syscall.SIGALRM
		signals <- syscall.SIGTERM
		c.stall()
	})
	e := sending(t, "POST", s.url("http"), nil)
	o := e.Execute(t.Context(), e.task(), runner.Call{Number: 1, Signals: signals})
	s.saw(1)
	if o.Exit != 143 || o.Signal != "SIGTERM" || o.Stop != syscall.SIGTERM || !o.Reply.Default.Ambiguous {
		t.Errorf("%+v, %+v", o, o.Reply)
	}
}

func TestSignalStopsARelease(t *testing.T) {
	s := serve(t, replies(okReply))
	e := sending(t, "GET", s.url("http"), nil)
	execute(t, e)
	read, write := io.Pipe() // nobody reads
	e.Output.Stdout = write
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGALRM
	signals <- syscall.SIGINT
	sig, err := e.Flush(&task.Task{Status: task.Succeeded}, signals)
	if sig != syscall.SIGINT || err != task.ErrStopped { //nolint:errorlint // it is returned as it is
		t.Errorf("%v, %v", sig, err)
	}
	_ = read.Close()
}

// A run that is given up has no timeout of its own to blame.
func TestCancelledAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(c *wire) {
		c.request()
		cancel()
		c.stall()
	})
	e := sending(t, "POST", s.url("http"), nil)
	o := e.Execute(ctx, e.task(), runner.Call{Number: 1})
	faulty{class: "reset", exit: 56, message: "wait for the reply: cancelled", wire: 1}.compare(t, o, "ambiguous")
}

// A status that has come says what the server did, though the signal was faster than the body.
func TestSignalInTheBodyOfAnError(t *testing.T) {
	for status, want := range map[int]Event{429: "429", 500: "500", 200: EventCut} {
		a := &attempt{watch: newWatch(), reply: reply{status: status}}
		a.watch.conn = a.watch.guard(nil)
		a.watch.conn.ready()
		a.watch.conn.wrote.Add(1)
		a.watch.enter(stageBody)
		o, event := a.judge(&stopError{syscall.SIGTERM})
		if event != want || o.Signal != "SIGTERM" {
			t.Errorf("%d: %q, %+v", status, event, o)
		}
	}
}
