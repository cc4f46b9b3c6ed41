package session

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// slowContext is one whose time has ended, and whose timer has not fired yet.
type slowContext struct{ context.Context }

func (slowContext) Err() error            { return nil }
func (slowContext) Done() <-chan struct{} { return nil }

// A look that the end of -t cuts off says nothing about what is waited for: the last line tells what an earlier look
// found.
func TestWaitKeepsTheLastReason(t *testing.T) {
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	w := &Waiter{look: func(context.Context) error { return os.ErrDeadlineExceeded }}
	for _, row := range []struct {
		name string
		ctx  context.Context
		want string
	}{
		{name: "cut by -t", ctx: slowContext{past}},
		{name: "no answer", ctx: t.Context(), want: "no answer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := w.Execute(row.ctx, nil, runner.Call{Number: 1}).Message; got != row.want {
				t.Errorf("got the message %q, want %q", got, row.want)
			}
		})
	}
}

// Who gives no answer is not gone.
func TestWhatSaysThatNothingIsThere(t *testing.T) {
	for _, row := range []struct {
		err  error
		want bool
	}{
		{os.ErrNotExist, true},
		{syscall.ECONNREFUSED, true},
		{&net.DNSError{IsNotFound: true}, true},
		{goneError("status 404"), true},
		{&net.DNSError{IsTemporary: true}, false},
		{context.DeadlineExceeded, false},
		{os.ErrPermission, false},
		{syscall.ELOOP, false},
		{syscall.ENETUNREACH, false},
	} {
		w := &Waiter{gone: true, look: func(context.Context) error { return row.err }}
		if got := w.Execute(t.Context(), nil, runner.Call{Number: 1}).Exit == 0; got != row.want {
			t.Errorf("%v: got gone: %v, want %v", row.err, got, row.want)
		}
	}
}
