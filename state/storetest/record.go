package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Each way out of an attempt, read back through everything that reads.
func (s suite) recordStoresTheOutcomeAndTheDecision(t *testing.T) {
	now := Epoch.Add(time.Hour)
	tests := []struct {
		name     string
		outcome  task.Outcome
		decision task.Decision
		status   task.Status
		next     time.Time // zero where the task has ended
	}{
		{"succeeded", Exit(0), task.Decision{Verdict: task.VerdictSucceeded}, task.Succeeded, time.Time{}},
		{"retry", Exit(1), RetryIn(90 * time.Second), task.Pending, now.Add(90 * time.Second)},
		{"retry at once", Exit(1), RetryIn(0), task.Pending, now},
		{"retry in a year", Exit(255), RetryIn(365 * 24 * time.Hour), task.Pending, now.Add(365 * 24 * time.Hour)},
		{
			"a shortened delay", Exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: 1500 * time.Microsecond, Shortened: true},
			task.Pending, now.Add(1500 * time.Microsecond),
		},
		{
			"not eligible", task.Outcome{Exit: 127, Error: task.ErrorNotFound, Message: "start x: not found\nhint: \xff\x00\x1b[31m"},
			task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible}, task.Failed, time.Time{},
		},
		{"attempts", Exit(2), task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonAttempts}, task.Exhausted, time.Time{}},
		{
			"timed out at the end of the budget", task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout, Duration: time.Nanosecond},
			task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}, task.Exhausted, time.Time{},
		},
		{
			"cancelled from the keyboard", task.Outcome{Exit: 130, Signal: "SIGINT", Duration: 123456789},
			task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}, task.Cancelled, time.Time{},
		},
		{"interrupted with an outcome", Exit(143), task.Decision{Verdict: task.VerdictInterrupted}, task.Pending, now},
		{"interrupted without one", task.Crashed(), task.Decision{Verdict: task.VerdictInterrupted}, task.Pending, now},
		{
			"crashes", task.Crashed(), task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonCrashes},
			task.Exhausted, time.Time{},
		},
	}
	j := s.open(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tk := InFlight(t, j)
			Must(t, Recorded(j, tk, test.outcome, test.decision, now))

			want := *tk
			want.Status, want.Reason, want.AttemptCount, want.NextAttemptAt = test.status, test.decision.Reason, 1, test.next
			if want.FinishedAt = now; !test.next.IsZero() {
				want.FinishedAt = time.Time{}
			}
			wantAttempt := task.Attempt{Number: 1, StartedAt: Epoch, Outcome: test.outcome, Decision: test.decision}
			Expect(t, j, &want, wantAttempt)
		})
	}
}

// A claim is the task and the attempt's intent, nothing of the outcome.
func (s suite) claimStoresTheIntent(t *testing.T) {
	j := s.open(t)
	tk := NewTask()
	Must(t, Claimed(j, tk, Epoch.Add(time.Second)))
	if tk.Number != 1 || tk.History.Phase < 0 || tk.History.Phase >= 1 {
		t.Errorf("the claimed task has number %d and phase %v", tk.Number, tk.History.Phase)
	}
	first := task.Attempt{Number: 1, StartedAt: Epoch.Add(time.Second), Outcome: task.Outcome{Exit: task.NoExit}}
	Expect(t, j, tk, first)

	// The second one clears what the wait had written.
	Must(t, Recorded(j, tk, Exit(1), RetryIn(time.Minute), Epoch.Add(2*time.Second)))
	Must(t, Claimed(j, tk, Epoch.Add(time.Minute)))
	first.Outcome, first.Decision = Exit(1), RetryIn(time.Minute)
	second := task.Attempt{Number: 2, StartedAt: Epoch.Add(time.Minute), Outcome: task.Outcome{Exit: task.NoExit}}
	Expect(t, j, tk, first, second)
}

func (s suite) settleStoresTheDecision(t *testing.T) {
	now := Epoch.Add(time.Hour)
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
	j := s.open(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tk := Waiting(t, j)
			Must(t, Settled(j, tk, test.decision, now))

			want := *tk
			want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = test.status, test.decision.Reason, test.finished, test.next
			Expect(t, j, &want, tk.Last)
		})
	}
}

// A task that was interrupted keeps the time of its next attempt.
func (s suite) settleKeepsTheTimeItIsGiven(t *testing.T) {
	j := s.open(t)
	tk := Waiting(t, j)
	due := tk.NextAttemptAt
	moved := *tk
	moved.Move(task.Decision{Verdict: task.VerdictInterrupted}, Epoch.Add(time.Second))
	moved.NextAttemptAt = due
	Must(t, j.Settle(t.Context(), &moved, task.Decision{Verdict: task.VerdictInterrupted}))
	Expect(t, j, tk, tk.Last)
}

// A task that was never claimed has left nothing that could be closed.
func (s suite) settleOfAnUnknownTaskWritesNothing(t *testing.T) {
	j := s.open(t)
	Must(t, Settled(j, NewTask(), task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}, Epoch))
	if got := snapshot(t, j); got != "" {
		t.Errorf("got\n%s\nwant no task", got)
	}
}

func (s suite) cancel(t *testing.T) {
	now := Epoch.Add(time.Hour)
	Cancelled := func(tk *task.Task) {
		tk.Status, tk.Reason, tk.FinishedAt, tk.NextAttemptAt = task.Cancelled, task.ReasonCancelled, now, time.Time{}
	}
	t.Run("in flight", func(t *testing.T) {
		j := s.open(t)
		tk := InFlight(t, j)
		Must(t, j.Cancel(t.Context(), tk.Number, now))
		Cancelled(tk)
		Expect(t, j, tk, task.Attempt{
			Number: 1, StartedAt: Epoch, Outcome: task.Outcome{Exit: task.NoExit}, Decision: task.Decision{Verdict: task.VerdictCancelled},
		})
	})
	t.Run("waiting", func(t *testing.T) {
		j := s.open(t)
		tk, other := Waiting(t, j), Waiting(t, j)
		Must(t, j.Cancel(t.Context(), other.Number, now))
		Cancelled(other)
		Expect(t, j, other, other.Last) // the attempt that has ended keeps its decision
		if got := Stored(t, j, tk.ID); ShowTask(got) != ShowTask(tk) {
			t.Errorf("another task became\n%s", ShowTask(got))
		}
	})
	for _, status := range []task.Verdict{task.VerdictSucceeded, task.VerdictFailed, task.VerdictExhausted, task.VerdictCancelled} {
		t.Run("after it has "+string(status), func(t *testing.T) {
			j := s.open(t)
			tk := InFlight(t, j)
			Must(t, Recorded(j, tk, Exit(0), task.Decision{Verdict: status}, Epoch))
			before := snapshot(t, j)
			if err := j.Cancel(t.Context(), tk.Number, now); !errors.Is(err, state.ErrFinished) {
				t.Errorf("got %v", err)
			}
			if after := snapshot(t, j); after != before {
				t.Errorf("changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}
