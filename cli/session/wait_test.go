package session

import (
	"context"
	"os"
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
