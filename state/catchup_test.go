package state

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// The journal knows attempt 1 in flight; its owner went on without it and succeeded in attempt 3.
func TestCatchUpWritesTheEnd(t *testing.T) {
	j, err := Open(t.Context(), t.TempDir())
	must(t, err)
	defer func() { must(t, j.Close()) }()
	task := newTask()
	must(t, j.Claim(t.Context(), task, time.Now()))
	task.AttemptCount, task.Status = 3, runner.InFlight
	end := runner.Attempt{Number: 3, StartedAt: time.Now(), Decision: runner.Decision{Verdict: runner.VerdictSucceeded}}
	task.Decided(end, time.Now())
	must(t, j.CatchUp(t.Context(), task))

	got, err := j.Find(t.Context(), task.ID)
	must(t, err)
	if got.Status != runner.Succeeded || got.AttemptCount != 3 || got.FinishedAt.IsZero() {
		t.Errorf("%s after %d attempts, finished %v", got.Status, got.AttemptCount, got.FinishedAt)
	}
	attempts, err := j.Attempts(t.Context(), task.Number)
	must(t, err)
	if len(attempts) != 2 || attempts[0].Decision.Verdict != runner.VerdictInterrupted || attempts[1].Decision.Verdict != runner.VerdictSucceeded {
		t.Errorf("attempts %+v", attempts)
	}
	if err := j.CatchUp(t.Context(), task); !errors.Is(err, runner.ErrTaken) {
		t.Errorf("a task that has ended was written again: %v", err)
	}
}

// The journal failed during a wait: it has the last attempt already, and only its task's end is missing.
func TestCatchUpAfterAWait(t *testing.T) {
	j := open(t)
	task := waiting(t, j)
	attempt := task.Last
	task.Move(cancelled, epoch.Add(time.Hour))
	must(t, j.CatchUp(t.Context(), task))
	expect(t, j, task, attempt)
}

// Who has taken the task over has gone further than the one that catches up.
func TestCatchUpIsRefusedWhereAnotherHasGoneOn(t *testing.T) {
	j := open(t)
	task := inFlight(t, j)
	stale := *task
	apply(t, j, task, recording(interrupted), claiming())
	refuses(t, j, stale, catchingUp())
	apply(t, j, task, recording(succeeded))
	refuses(t, j, stale, catchingUp())
}

// Another task has the number, since the journal was moved away meanwhile. That is no cancellation of this one.
func TestCatchUpIsOfTheTaskItself(t *testing.T) {
	j := open(t)
	other := *inFlight(t, j)
	other.ID = "another"
	before := dump(t, j)
	if err := catchingUp().do(j, &other); !errors.Is(err, ErrCorrupt) || errors.Is(err, runner.ErrTaken) {
		t.Errorf("got %v", err)
	}
	if after := dump(t, j); after != before {
		t.Errorf("it changed\n%s\nto\n%s", before, after)
	}
}
