package sqlite

import (
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// A history is gathered from what was decided: the conditions may have looked at output that is not kept.
func TestDecisionsComeBack(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, claimed(j, tk, epoch))
	steps := []struct {
		outcome  task.Outcome
		decision task.Decision
	}{
		{exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: 2 * time.Second}},
		{exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: time.Second, Success: true}}, // an exit of 1 that is a success
		{exit(0), task.Decision{Verdict: task.VerdictRetry, Delay: time.Second, Rule: 2}},       // and one of 0 that is none
		{exit(0), task.Decision{Verdict: task.VerdictRetry, Delay: 3 * time.Second, Rule: 2}},
	}
	for i, s := range steps {
		if i > 0 {
			must(t, claimed(j, tk, epoch))
		}
		must(t, recorded(j, tk, s.outcome, s.decision, epoch))
	}
	for i, a := range attempts(t, j, tk.Number) {
		if got, want := a.Decision, steps[i].decision; got != want {
			t.Errorf("attempt %d: %+v, want %+v", a.Number, got, want)
		}
	}
	must(t, j.Release(tk.Number))
	got, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	tk.History.Began = tk.History.Began.Truncate(time.Microsecond)
	got.History.Began = got.History.Began.UTC()
	if got.History != tk.History {
		t.Errorf("got  %+v\nwant %+v", got.History, tk.History)
	}
}

// What an older retry wrote down says nothing of successes: an exit of 0 was one.
func TestDecisionsOfAnOlderRetry(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, claimed(j, tk, epoch))
	must(t, recorded(j, tk, exit(0), retryIn(time.Second), epoch))
	must(t, claimed(j, tk, epoch))
	must(t, recorded(j, tk, exit(1), retryIn(time.Second), epoch))
	_, err := rawExec(j, "UPDATE attempts SET success = NULL, rule = NULL")
	must(t, err)
	list := attempts(t, j, tk.Number)
	if !list[0].Decision.Success || list[1].Decision.Success || list[0].Decision.Rule != 0 {
		t.Errorf("got %+v and %+v", list[0].Decision, list[1].Decision)
	}
}
