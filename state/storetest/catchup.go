package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// The journal knows attempt 1 in flight; its owner went on without it and succeeded in attempt 3.
func (s suite) catchUpWritesTheEnd(t *testing.T) {
	j := s.open(t)
	tk := NewTask()
	Must(t, j.Claim(t.Context(), tk, time.Now()))
	tk.AttemptCount, tk.Status = 3, task.InFlight
	end := task.Attempt{Number: 3, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictSucceeded}}
	tk.ApplyDecision(end, time.Now())
	Must(t, j.CatchUp(t.Context(), tk))

	got, err := j.Find(t.Context(), tk.ID)
	Must(t, err)
	if got.Status != task.Succeeded || got.AttemptCount != 3 || got.FinishedAt.IsZero() {
		t.Errorf("%s after %d attempts, finished %v", got.Status, got.AttemptCount, got.FinishedAt)
	}
	attempts, err := j.Attempts(t.Context(), tk.Number)
	Must(t, err)
	if len(attempts) != 2 || attempts[0].Decision.Verdict != task.VerdictInterrupted || attempts[1].Decision.Verdict != task.VerdictSucceeded {
		t.Errorf("attempts %+v", attempts)
	}
	if err := j.CatchUp(t.Context(), tk); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("a task that has ended was written again: %v", err)
	}
}

// The journal failed during a wait: it has the last attempt already, and only its task's end is missing.
func (s suite) catchUpAfterAWait(t *testing.T) {
	j := s.open(t)
	tk := Waiting(t, j)
	attempt := tk.Last
	tk.Move(Cancelled, Epoch.Add(time.Hour))
	Must(t, j.CatchUp(t.Context(), tk))
	Expect(t, j, tk, attempt)
}

// Who has taken the task over has gone further than the one that catches up.
func (s suite) catchUpIsRefusedWhereAnotherHasGoneOn(t *testing.T) {
	j := s.open(t)
	tk := InFlight(t, j)
	stale := *tk
	Apply(t, j, tk, Recording(Interrupted), Claiming())
	Refuses(t, j, stale, CatchingUp())
	Apply(t, j, tk, Recording(Succeeded))
	Refuses(t, j, stale, CatchingUp())
}

// Another task has the number, since the journal was moved away meanwhile. That is no cancellation of this one.
func (s suite) catchUpIsOfTheTaskItself(t *testing.T) {
	j := s.open(t)
	other := *InFlight(t, j)
	other.ID = "another"
	before := snapshot(t, j)
	if err := CatchingUp().Do(j, &other); !errors.Is(err, state.ErrCorrupt) || errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v", err)
	}
	if after := snapshot(t, j); after != before {
		t.Errorf("it changed\n%s\nto\n%s", before, after)
	}
}
