package state

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// Each way out of an attempt, read back through everything that reads.
func TestRecordStoresTheOutcomeAndTheDecision(t *testing.T) {
	now := epoch.Add(time.Hour)
	tests := []struct {
		name     string
		outcome  runner.Outcome
		decision runner.Decision
		status   runner.Status
		next     time.Time // zero where the task has ended
	}{
		{"succeeded", exit(0), runner.Decision{Verdict: runner.VerdictSucceeded}, runner.Succeeded, time.Time{}},
		{"retry", exit(1), retryIn(90 * time.Second), runner.Pending, now.Add(90 * time.Second)},
		{"retry at once", exit(1), retryIn(0), runner.Pending, now},
		{"retry in a year", exit(255), retryIn(365 * 24 * time.Hour), runner.Pending, now.Add(365 * 24 * time.Hour)},
		{
			"a shortened delay", exit(1), runner.Decision{Verdict: runner.VerdictRetry, Delay: 1500 * time.Microsecond, Shortened: true},
			runner.Pending, now.Add(1500 * time.Microsecond),
		},
		{
			"not eligible", runner.Outcome{Exit: 127, Error: runner.ErrorNotFound, Message: "start x: not found\nhint: \xff\x00\x1b[31m"},
			runner.Decision{Verdict: runner.VerdictFailed, Reason: runner.ReasonNotEligible}, runner.Failed, time.Time{},
		},
		{"attempts", exit(2), runner.Decision{Verdict: runner.VerdictExhausted, Reason: runner.ReasonAttempts}, runner.Exhausted, time.Time{}},
		{
			"timed out at the end of the budget", runner.Outcome{Exit: 143, Signal: "SIGTERM", Error: runner.ErrorTimeout, Duration: time.Nanosecond},
			runner.Decision{Verdict: runner.VerdictExhausted, Reason: runner.ReasonBudget}, runner.Exhausted, time.Time{},
		},
		{
			"cancelled from the keyboard", runner.Outcome{Exit: 130, Signal: "SIGINT", Duration: 123456789},
			runner.Decision{Verdict: runner.VerdictCancelled, Reason: runner.ReasonCancelled}, runner.Cancelled, time.Time{},
		},
		{"interrupted with an outcome", exit(143), runner.Decision{Verdict: runner.VerdictInterrupted}, runner.Pending, now},
		{"interrupted without one", runner.Crashed(), runner.Decision{Verdict: runner.VerdictInterrupted}, runner.Pending, now},
		{
			"crashes", runner.Crashed(), runner.Decision{Verdict: runner.VerdictExhausted, Reason: runner.ReasonCrashes},
			runner.Exhausted, time.Time{},
		},
	}
	j := open(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			task := inFlight(t, j)
			must(t, recorded(j, task, test.outcome, test.decision, now))

			want := *task
			want.Status, want.Reason, want.AttemptCount, want.NextAttemptAt = test.status, test.decision.Reason, 1, test.next
			if want.FinishedAt = now; !test.next.IsZero() {
				want.FinishedAt = time.Time{}
			}
			wantAttempt := runner.Attempt{Number: 1, StartedAt: epoch, Outcome: test.outcome, Decision: test.decision}
			expect(t, j, &want, wantAttempt)
		})
	}
}

// expect compares a task and its attempts with what Find, List, Unfinished and Attempts return.
func expect(t *testing.T, j *Journal, want *runner.Task, list ...runner.Attempt) {
	t.Helper()
	got := stored(t, j, want.ID)
	if g, w := show(got, attempts(t, j, got.Number)), show(want, list); g != w {
		t.Errorf("stored\n%s\nwant\n%s", g, w)
	}
	newest, err := j.List(t.Context(), Filter{Limit: 1})
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
	task := newTask()
	must(t, claimed(j, task, epoch.Add(time.Second)))
	if task.Number != 1 || task.History.Phase != phase(1, j.salt) {
		t.Errorf("the claimed task has number %d and phase %v", task.Number, task.History.Phase)
	}
	first := runner.Attempt{Number: 1, StartedAt: epoch.Add(time.Second), Outcome: runner.Outcome{Exit: runner.NoExit}}
	expect(t, j, task, first)

	// The second one clears what the wait had written.
	must(t, recorded(j, task, exit(1), retryIn(time.Minute), epoch.Add(2*time.Second)))
	must(t, claimed(j, task, epoch.Add(time.Minute)))
	first.Outcome, first.Decision = exit(1), retryIn(time.Minute)
	second := runner.Attempt{Number: 2, StartedAt: epoch.Add(time.Minute), Outcome: runner.Outcome{Exit: runner.NoExit}}
	expect(t, j, task, first, second)
}

func TestSettleStoresTheDecision(t *testing.T) {
	now := epoch.Add(time.Hour)
	tests := []struct {
		name           string
		decision       runner.Decision
		status         runner.Status
		finished, next time.Time
	}{
		{"told to stop", runner.Decision{Verdict: runner.VerdictInterrupted}, runner.Pending, time.Time{}, now},
		{"the budget is gone", runner.Decision{Verdict: runner.VerdictExhausted, Reason: runner.ReasonBudget}, runner.Exhausted, now, time.Time{}},
		{"cancelled", runner.Decision{Verdict: runner.VerdictCancelled, Reason: runner.ReasonCancelled}, runner.Cancelled, now, time.Time{}},
	}
	j := open(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			task := waiting(t, j)
			must(t, settled(j, task, test.decision, now))

			want := *task
			want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = test.status, test.decision.Reason, test.finished, test.next
			expect(t, j, &want, task.Last)
		})
	}
}

// A task that was interrupted keeps the time of its next attempt.
func TestSettleKeepsTheTimeItIsGiven(t *testing.T) {
	j := open(t)
	task := waiting(t, j)
	due := task.NextAttemptAt
	moved := *task
	moved.Move(runner.Decision{Verdict: runner.VerdictInterrupted}, epoch.Add(time.Second))
	moved.NextAttemptAt = due
	must(t, j.Settle(t.Context(), &moved, runner.Decision{Verdict: runner.VerdictInterrupted}))
	expect(t, j, task, task.Last)
}

// A task that was never claimed has left nothing that could be closed.
func TestSettleOfAnUnknownTaskWritesNothing(t *testing.T) {
	j := open(t)
	must(t, settled(j, newTask(), runner.Decision{Verdict: runner.VerdictCancelled, Reason: runner.ReasonCancelled}, epoch))
	if n, err := j.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d tasks, %v", n, err)
	}
}

func TestCancel(t *testing.T) {
	now := epoch.Add(time.Hour)
	cancelled := func(task *runner.Task) {
		task.Status, task.Reason, task.FinishedAt, task.NextAttemptAt = runner.Cancelled, runner.ReasonCancelled, now, time.Time{}
	}
	t.Run("in flight", func(t *testing.T) {
		j := open(t)
		task := inFlight(t, j)
		must(t, j.Cancel(t.Context(), task.Number, now))
		cancelled(task)
		expect(t, j, task, runner.Attempt{
			Number: 1, StartedAt: epoch, Outcome: runner.Outcome{Exit: runner.NoExit}, Decision: runner.Decision{Verdict: runner.VerdictCancelled},
		})
	})
	t.Run("waiting", func(t *testing.T) {
		j := open(t)
		task, other := waiting(t, j), waiting(t, j)
		must(t, j.Cancel(t.Context(), other.Number, now))
		cancelled(other)
		expect(t, j, other, other.Last) // the attempt that has ended keeps its decision
		if got := stored(t, j, task.ID); showTask(got) != showTask(task) {
			t.Errorf("another task became\n%s", showTask(got))
		}
	})
	for _, status := range []runner.Verdict{runner.VerdictSucceeded, runner.VerdictFailed, runner.VerdictExhausted, runner.VerdictCancelled} {
		t.Run("after it has "+string(status), func(t *testing.T) {
			j := open(t)
			task := inFlight(t, j)
			must(t, recorded(j, task, exit(0), runner.Decision{Verdict: status}, epoch))
			before := dump(t, j)
			if err := j.Cancel(t.Context(), task.Number, now); !errors.Is(err, ErrFinished) {
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
	task := inFlight(t, j)
	fail(t, j, "UPDATE ON tasks")
	if err := j.Cancel(t.Context(), task.Number, epoch); err == nil || errors.Is(err, ErrFinished) {
		t.Errorf("got %v", err)
	}
}
