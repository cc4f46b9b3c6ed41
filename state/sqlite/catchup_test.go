package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// The journal knows attempt 1 in flight; its owner went on without it and succeeded in attempt 3.
func TestCatchUpWritesTheEnd(t *testing.T) {
	j, err := Open(t.Context(), t.TempDir())
	must(t, err)
	defer func() { must(t, j.Close()) }()
	tk := newTask()
	must(t, j.Claim(t.Context(), tk, time.Now()))
	tk.AttemptCount, tk.Status = 3, task.InFlight
	end := task.Attempt{Number: 3, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictSucceeded}}
	tk.ApplyDecision(end, time.Now())
	must(t, j.CatchUp(t.Context(), tk))

	got, err := j.Find(t.Context(), tk.ID)
	must(t, err)
	if got.Status != task.Succeeded || got.AttemptCount != 3 || got.FinishedAt.IsZero() {
		t.Errorf("%s after %d attempts, finished %v", got.Status, got.AttemptCount, got.FinishedAt)
	}
	attempts, err := j.Attempts(t.Context(), tk.Number)
	must(t, err)
	if len(attempts) != 2 || attempts[0].Decision.Verdict != task.VerdictInterrupted || attempts[1].Decision.Verdict != task.VerdictSucceeded {
		t.Errorf("attempts %+v", attempts)
	}
	if err := j.CatchUp(t.Context(), tk); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("a task that has ended was written again: %v", err)
	}
}

// The journal failed during a wait: it has the last attempt already, and only its task's end is missing.
func TestCatchUpAfterAWait(t *testing.T) {
	j := open(t)
	tk := waiting(t, j)
	attempt := tk.Last
	tk.Move(cancelled, epoch.Add(time.Hour))
	must(t, j.CatchUp(t.Context(), tk))
	expect(t, j, tk, attempt)
}

// Who has taken the task over has gone further than the one that catches up.
func TestCatchUpIsRefusedWhereAnotherHasGoneOn(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	stale := *tk
	apply(t, j, tk, recording(interrupted), claiming())
	refuses(t, j, stale, catchingUp())
	apply(t, j, tk, recording(succeeded))
	refuses(t, j, stale, catchingUp())
}

// Another task has the number, since the journal was moved away meanwhile. That is no cancellation of this one.
func TestCatchUpIsOfTheTaskItself(t *testing.T) {
	j := open(t)
	other := *inFlight(t, j)
	other.ID = "another"
	before := dump(t, j)
	if err := catchingUp().do(j, &other); !errors.Is(err, state.ErrCorrupt) || errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v", err)
	}
	if after := dump(t, j); after != before {
		t.Errorf("it changed\n%s\nto\n%s", before, after)
	}
}
