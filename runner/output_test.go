package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// The reply to a request that is safe to repeat is passed on before its success is recorded. That of any other request,
// and what does not end in success, is passed on after the record.
func TestASafeRequestIsDeliveredFirst(t *testing.T) {
	delivered := []string{"claim", "started", "flush SUCCEEDED", "record succeeded SUCCEEDED", "ended succeeded",
		"finished succeeded"}
	recorded := []string{"claim", "started", "record succeeded SUCCEEDED", "flush SUCCEEDED", "ended succeeded",
		"finished succeeded"}
	tests := []struct {
		name    string
		request *request.Request
		holds   bool
		outcome task.Outcome
		want    []string
	}{
		{"GET", &request.Request{Method: "GET"}, true, reply(200), delivered},
		{"POST with --idempotent", &request.Request{Method: "POST", Idempotent: true}, true, reply(200), delivered},
		{"POST", &request.Request{Method: "POST"}, true, reply(200), recorded},
		{"GET whose reply nobody sees", &request.Request{Method: "GET"}, false, reply(200), recorded},
		{"GET that fails", &request.Request{Method: "GET"}, true, reply(404), []string{"claim", "started",
			"record failed FAILED", "flush FAILED", "ended failed", "finished failed"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, tt.outcome)
				b.task.Target, b.executor.plain = tt.request, true
				b.Executor = &holder{script: b.executor, holds: tt.holds}
				if _, err := b.Run(t.Context(), b.task); err != nil || !slices.Equal(b.lines, tt.want) {
					t.Errorf("got error %v, events %q\nwant %q", err, b.lines, tt.want)
				}
			})
		})
	}
}

// A success whose reply could not be passed on is none, unless nobody reads the rest. Where a signal was the reason, a
// resume sends the request again.
func TestASafeRequestWhoseReplyIsLost(t *testing.T) {
	tests := []struct {
		name     string
		lost     error
		sig      os.Signal
		terminal bool
		status   task.Status
		reason   task.Reason
		code     int
		death    os.Signal
		message  string
		signal   string // of the outcome
	}{
		{name: "TERM", lost: task.ErrStopped, sig: syscall.SIGTERM, status: task.Pending, code: 143,
			death: syscall.SIGTERM, message: "pass on the reply: stopped by a signal", signal: "SIGTERM"},
		{name: "HUP of a terminal", lost: task.ErrStopped, sig: syscall.SIGHUP, terminal: true, status: task.Pending,
			reason: task.ReasonHangup, code: 129, death: syscall.SIGHUP,
			message: "pass on the reply: stopped by a signal", signal: "SIGHUP"},
		{name: "INT", lost: task.ErrStopped, sig: syscall.SIGINT, status: task.Cancelled, reason: task.ReasonCancelled,
			code: 130, death: syscall.SIGINT, message: "pass on the reply: stopped by a signal", signal: "SIGINT"},
		{name: "the disk is full", lost: fmt.Errorf("write the reply: %w", syscall.ENOSPC), status: task.Failed,
			reason: task.ReasonNotEligible, code: 23,
			message: "pass on the reply: write the reply: no space left on device"},
		{name: "two reasons", lost: errors.Join(syscall.EIO, syscall.ENOSPC), status: task.Failed,
			reason: task.ReasonNotEligible, code: 23,
			message: "pass on the reply: input/output error; no space left on device"},
		{name: "the reader has gone", lost: syscall.EPIPE, status: task.Succeeded, code: 23},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := reply(200)
				o.Duration = time.Second
				b := newRig(t, nil, o)
				b.task.Target, b.executor.plain, b.Terminal = &request.Request{Method: "GET"}, true, tt.terminal
				b.executor.lost, b.executor.sig = tt.lost, tt.sig
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "status", b.task.Status, tt.status)
				check(t, "reason", b.task.Reason, tt.reason)
				check(t, "exit code", result.ExitCode(), tt.code)
				check(t, "death signal", result.DeathSignal(), tt.death)
				last := b.task.Last.Outcome
				check(t, "message", last.Message, tt.message)
				check(t, "signal", last.Signal, tt.signal)
				check(t, "duration", last.Duration, time.Second)
				check(t, "reply", last.Reply.Status, 200)
				check(t, "warnings", len(b.observer.warnings), 0)
				check(t, "number of journal", len(b.journal.log), 2)
				check(t, "attempts", b.task.History.Made, 1)
				check(t, "attempts that count", b.task.History.Counted == 1, tt.sig == nil || tt.status == task.Cancelled)
			})
		})
	}
}

// The slot of an attempt is free while its output is written, however slowly that is read.
func TestDeliveryHoldsNoSlot(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		synctest.Test(t, func(t *testing.T) {
			b := newRig(t, nil, reply(200))
			b.Slots = make(chan struct{}, 1)
			b.task.Target = &request.Request{Method: method}
			slow := &slow{script: b.executor, slots: b.Slots}
			b.Executor = slow
			_, err := b.Run(t.Context(), b.task)
			check(t, "error", err, nil)
			check(t, "slots in Execute", slow.executing, 1)
			check(t, "slots in Flush", slow.flushing, 0)
		})
	}
}

// slow is an Executor that counts the slots that are taken.
type slow struct {
	*script
	slots               chan struct{}
	executing, flushing int
}

func (s *slow) Execute(ctx context.Context, t *task.Task, c Call) task.Outcome {
	s.executing = len(s.slots)
	return s.script.Execute(ctx, t, c)
}

func (s *slow) Flush(t *task.Task, signals <-chan os.Signal) (os.Signal, error) {
	s.flushing = len(s.slots)
	return s.script.Flush(t, signals)
}
