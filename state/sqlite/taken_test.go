package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/10f93571/retry/task"
)

// Who cancels a task sends its owner a TERM, too. That the task is taken has to be found out all the same: an owner that takes the
// journal for broken runs the command again.
func TestTakenWhileBeingStopped(t *testing.T) {
	j := open(t)
	tk := waiting(t, j)
	must(t, j.Cancel(t.Context(), tk.Number, epoch))
	stopped, stop := context.WithCancelCause(t.Context())
	stop(task.ErrStopped)
	if err := j.confirm(stopped, tk, task.Pending, task.ErrNotOwner); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v, want %v", err, task.ErrNotOwner)
	}
}
