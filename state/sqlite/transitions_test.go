package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Each way out of an attempt, read back through everything that reads.
func TestRecordStoresTheOutcomeAndTheDecision(t *testing.T) {
	now := epoch.Add(time.Hour)
	tests := []struct {
		name     string
		outcome  task.Outcome
		decision task.Decision
		status   task.Status
		next     time.Time // zero where the task has ended
	}{
		{"succeeded", exit(0), task.Decision{Verdict: task.VerdictSucceeded}, task.Succeeded, time.Time{}},
		{"retry", exit(1), retryIn(90 * time.Second), task.Pending, now.Add(90 * time.Second)},
		{"retry at once", exit(1), retryIn(0), task.Pending, now},
		{"retry in a year", exit(255), retryIn(365 * 24 * time.Hour), task.Pending, now.Add(365 * 24 * time.Hour)},
		{
			"a shortened delay", exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: 1500 * time.Microsecond, Shortened: true},
			task.Pending, now.Add(1500 * time.Microsecond),
		},
		{
			"not eligible", task.Outcome{Exit: 127, Error: task.ErrorNotFound, Message: "start x: not found\nhint: \xff\x00\x1b[31m"},
			task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible}, task.Failed, time.Time{},
		},
		{"attempts", exit(2), task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonAttempts}, task.Exhausted, time.Time{}},
		{
			"timed out at the end of the budget", task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout, Duration: time.Nanosecond},
			task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}, task.Exhausted, time.Time{},
		},
		{
			"cancelled from the keyboard", task.Outcome{Exit: 130, Signal: "SIGINT", Duration: 123456789},
			task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}, task.Cancelled, time.Time{},
		},
		{"interrupted with an outcome", exit(143), task.Decision{Verdict: task.VerdictInterrupted}, task.Pending, now},
		{"interrupted without one", task.Crashed(), task.Decision{Verdict: task.VerdictInterrupted}, task.Pending, now},
		{
			"crashes", task.Crashed(), task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonCrashes},
			task.Exhausted, time.Time{},
		},
	}
	j := open(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tk := inFlight(t, j)
			must(t, recorded(j, tk, test.outcome, test.decision, now))

			want := *tk
			want.Status, want.Reason, want.AttemptCount, want.NextAttemptAt = test.status, test.decision.Reason, 1, test.next
			if want.FinishedAt = now; !test.next.IsZero() {
				want.FinishedAt = time.Time{}
			}
			wantAttempt := task.Attempt{Number: 1, StartedAt: epoch, Outcome: test.outcome, Decision: test.decision}
			expect(t, j, &want, wantAttempt)
		})
	}
}

// expect compares a task and its attempts with what Find, List, Unfinished and Attempts return.
func expect(t *testing.T, j *Journal, want *task.Task, list ...task.Attempt) {
	t.Helper()
	got := stored(t, j, want.ID)
	if g, w := show(got, attempts(t, j, got.Number)), show(want, list); g != w {
		t.Errorf("stored\n%s\nwant\n%s", g, w)
	}
	newest, err := j.List(t.Context(), state.Filter{Limit: 1})
	must(t, err)
	if len(newest) != 1 || showTask(newest[0]) != showTask(want) {
		t.Errorf("List(1) returned %d tasks, the first one %s", len(newest), showTask(newest[0]))
	}
	if last := list[len(list)-1]; showAttempt(newest[0].Last) != showAttempt(last) {
		t.Errorf("List(1) gives as the last attempt\n%s\nwant\n%s", showAttempt(newest[0].Last), showAttempt(last))
	}
	unfinished, err := j.Unfinished(t.Context())
	must(t, err)
	if open := len(unfinished) > 0 && unfinished[len(unfinished)-1].ID == want.ID; open == want.Status.Finished() {
		t.Errorf("%s: listed as unfinished: %v", want.Status, open)
	}
}

// A claim is the task and the attempt's intent, nothing of the outcome.
func TestClaimStoresTheIntent(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, claimed(j, tk, epoch.Add(time.Second)))
	if tk.Number != 1 || tk.History.Phase != phase(1, j.salt) {
		t.Errorf("the claimed task has number %d and phase %v", tk.Number, tk.History.Phase)
	}
	first := task.Attempt{Number: 1, StartedAt: epoch.Add(time.Second), Outcome: task.Outcome{Exit: task.NoExit}}
	expect(t, j, tk, first)

	// The second one clears what the wait had written.
	must(t, recorded(j, tk, exit(1), retryIn(time.Minute), epoch.Add(2*time.Second)))
	must(t, claimed(j, tk, epoch.Add(time.Minute)))
	first.Outcome, first.Decision = exit(1), retryIn(time.Minute)
	second := task.Attempt{Number: 2, StartedAt: epoch.Add(time.Minute), Outcome: task.Outcome{Exit: task.NoExit}}
	expect(t, j, tk, first, second)
}

func TestSettleStoresTheDecision(t *testing.T) {
	now := epoch.Add(time.Hour)
	tests := []struct {
		name           string
		decision       task.Decision
		status         task.Status
		finished, next time.Time
	}{
		{"told to stop", task.Decision{Verdict: task.VerdictInterrupted}, task.Pending, time.Time{}, now},
		{"the budget is gone", task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}, task.Exhausted, now, time.Time{}},
		{"cancelled", task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}, task.Cancelled, now, time.Time{}},
	}
	j := open(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tk := waiting(t, j)
			must(t, settled(j, tk, test.decision, now))

			want := *tk
			want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = test.status, test.decision.Reason, test.finished, test.next
			expect(t, j, &want, tk.Last)
		})
	}
}

// A task that was interrupted keeps the time of its next attempt.
func TestSettleKeepsTheTimeItIsGiven(t *testing.T) {
	j := open(t)
	tk := waiting(t, j)
	due := tk.NextAttemptAt
	moved := *tk
	moved.Move(task.Decision{Verdict: task.VerdictInterrupted}, epoch.Add(time.Second))
	moved.NextAttemptAt = due
	must(t, j.Settle(t.Context(), &moved, task.Decision{Verdict: task.VerdictInterrupted}))
	expect(t, j, tk, tk.Last)
}

// A task that was never claimed has left nothing that could be closed.
func TestSettleOfAnUnknownTaskWritesNothing(t *testing.T) {
	j := open(t)
	must(t, settled(j, newTask(), task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}, epoch))
	if n, err := j.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d tasks, %v", n, err)
	}
}

func TestCancel(t *testing.T) {
	now := epoch.Add(time.Hour)
	cancelled := func(tk *task.Task) {
		tk.Status, tk.Reason, tk.FinishedAt, tk.NextAttemptAt = task.Cancelled, task.ReasonCancelled, now, time.Time{}
	}
	t.Run("in flight", func(t *testing.T) {
		j := open(t)
		tk := inFlight(t, j)
		must(t, j.Cancel(t.Context(), tk.Number, now))
		cancelled(tk)
		expect(t, j, tk, task.Attempt{
			Number: 1, StartedAt: epoch, Outcome: task.Outcome{Exit: task.NoExit}, Decision: task.Decision{Verdict: task.VerdictCancelled},
		})
	})
	t.Run("waiting", func(t *testing.T) {
		j := open(t)
		tk, other := waiting(t, j), waiting(t, j)
		must(t, j.Cancel(t.Context(), other.Number, now))
		cancelled(other)
		expect(t, j, other, other.Last) // the attempt that has ended keeps its decision
		if got := stored(t, j, tk.ID); showTask(got) != showTask(tk) {
			t.Errorf("another task became\n%s", showTask(got))
		}
	})
	for _, status := range []task.Verdict{task.VerdictSucceeded, task.VerdictFailed, task.VerdictExhausted, task.VerdictCancelled} {
		t.Run("after it has "+string(status), func(t *testing.T) {
			j := open(t)
			tk := inFlight(t, j)
			must(t, recorded(j, tk, exit(0), task.Decision{Verdict: status}, epoch))
			before := dump(t, j)
			if err := j.Cancel(t.Context(), tk.Number, now); !errors.Is(err, state.ErrFinished) {
				t.Errorf("got %v", err)
			}
			if after := dump(t, j); after != before {
				t.Errorf("changed from\n%s\nto\n%s", before, after)
			}
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
