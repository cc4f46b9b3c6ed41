package sqlite

import (
	"errors"
	"testing"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// A write that fails half way leaves nothing behind, and the journal goes on once the cause is gone.
func TestFailedWritesLeaveNothingBehind(t *testing.T) {
	tests := []struct {
		write write
		task  func(tester, state.Store) *task.Task
		event string
	}{
		{claiming(), func(tester, state.Store) *task.Task { return newTask() }, "INSERT ON attempts"},
		{claiming(), waiting, "INSERT ON attempts"},
		{recording(succeeded), inFlight, "UPDATE ON attempts"},
		{cancelling(), inFlight, "UPDATE ON attempts"},
		{settling(exhausted), waiting, "UPDATE ON tasks"},
	}
	for _, test := range tests {
		t.Run(test.write.Name, func(t *testing.T) {
			j := open(t)
			tk := test.task(t, j)
			before, number := dump(t, j), tk.Number
			fail(t, j, test.event)
			if err := test.write.Do(j, tk); err == nil || errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v", err)
			}
			if after := dump(t, j); after != before || tk.Number != number {
				t.Errorf("task %d; changed\n%s\nto\n%s", tk.Number, before, after)
			}
			_, err := rawExec(j, "DROP TRIGGER failure")
			must(t, err)
			apply(t, j, tk, test.write)
		})
	}
}

// A journal that cannot be written must not look like a task that has ended.
func TestCancelTellsAFailureFromAnEnd(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	fail(t, j, "UPDATE ON tasks")
	if err := j.Cancel(t.Context(), tk.Number, epoch); err == nil || errors.Is(err, state.ErrFinished) {
		t.Errorf("got %v", err)
	}
}
