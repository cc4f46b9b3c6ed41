package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestOutput(t *testing.T) {
	j := open(t)
	tk, other := inFlight(t, j), inFlight(t, j)
	write := func(stdout, stderr string) {
		must(t, recorded(j, tk, task.Outcome{Exit: 1, Stdout: stdout, Stderr: stderr}, retryIn(time.Second), epoch))
		must(t, claimed(j, tk, epoch))
	}
	write("", "")
	write("out\xff\x00\n", "")
	write("same", "same")
	write("", "")
	tests := []struct {
		name    string
		task    *task.Task
		attempt int
		want    state.Output
	}{
		{"the latest that has any", tk, 0, state.Output{Attempt: 3, Stdout: "same", Stderr: "same"}},
		{"one of them", tk, 2, state.Output{Attempt: 2, Stdout: "out\xff\x00\n", Stderr: ""}},
		{"one that wrote nothing", tk, 4, state.Output{}},
		{"one that runs", tk, 5, state.Output{}},
		{"one that there is not", tk, 9, state.Output{}},
		{"of a task that wrote nothing", other, 0, state.Output{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := j.Output(t.Context(), tt.task.Number, tt.attempt)
			if got != tt.want || (tt.want.Attempt == 0) != errors.Is(err, state.ErrNoOutput) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// All tails of a task together may be large: what does not ask for them is spared them.
func TestHistoryHasNoTails(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	must(t, recorded(j, tk, task.Outcome{Stdout: "x"}, succeeded, epoch))
	history, err := j.History(t.Context(), tk.Number)
	must(t, err)
	if len(history) != 1 || history[0].Outcome.Stdout != "" {
		t.Errorf("got %+v", history)
	}
}
