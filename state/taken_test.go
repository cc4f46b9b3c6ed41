package state

import (
	"context"
	"errors"
	"testing"

	"github.com/10f93571/retry/runner"
)

// Who cancels a task sends its owner a TERM, too. That the task is taken has to be found out all the same: an owner that takes the
// journal for broken runs the command again.
func TestTakenWhileBeingStopped(t *testing.T) {
	j := open(t)
	task := waiting(t, j)
	must(t, j.Cancel(t.Context(), task.Number, epoch))
	stopped, stop := context.WithCancelCause(t.Context())
	stop(runner.ErrStopped)
	if err := j.confirm(stopped, task, runner.Pending, runner.ErrTaken); !errors.Is(err, runner.ErrTaken) {
		t.Errorf("got %v, want %v", err, runner.ErrTaken)
	}
}
