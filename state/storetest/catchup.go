package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// The store has attempt 1 in flight. The owner continued without the store, and attempt 3 succeeded.
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
		t.Errorf("got %s after %d attempts, finished %v; want SUCCEEDED after 3", got.Status, got.AttemptCount, got.FinishedAt)
	}
	attempts, err := j.Attempts(t.Context(), tk.Number)
	Must(t, err)
	if len(attempts) != 2 || attempts[0].Decision.Verdict != task.VerdictInterrupted ||
		attempts[1].Decision.Verdict != task.VerdictSucceeded {
		t.Errorf("got attempts %+v, want an interrupted one and one that succeeded", attempts)
	}
	if err := j.CatchUp(t.Context(), tk); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v of a task that has ended, want %v", err, task.ErrNotOwner)
	}
}

// The store failed during a wait: it has the last attempt, and only the end of the task is missing.
func (s suite) catchUpAfterAWait(t *testing.T) {
	j := s.open(t)
	tk := Waiting(t, j)
	attempt := tk.Last
	tk.Move(Cancelled, Epoch.Add(time.Hour))
	Must(t, j.CatchUp(t.Context(), tk))
	Expect(t, j, tk, attempt)
}

// CatchUp is refused if another process has adopted the task and continued it.
func (s suite) catchUpIsRefusedWhereAnotherHasGoneOn(t *testing.T) {
	j := s.open(t)
	tk := InFlight(t, j)
	stale := *tk
	Apply(t, j, tk, Recording(Interrupted), Claiming())
	Refuses(t, j, stale, CatchingUp())
	Apply(t, j, tk, Recording(Succeeded))
	Refuses(t, j, stale, CatchingUp())
}

// If another task has the number, because the journal was set aside meanwhile, the task was not cancelled.
func (s suite) catchUpIsOfTheTaskItself(t *testing.T) {
	j := s.open(t)
	other := *InFlight(t, j)
	other.ID = "another"
	before := snapshot(t, j)
	if err := CatchingUp().Do(j, &other); !errors.Is(err, state.ErrCorrupt) || errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v, want %v", err, state.ErrCorrupt)
	}
	if after := snapshot(t, j); after != before {
		t.Errorf("got\n%s\nwant no change of\n%s", after, before)
	}
}

// The end of a task that could not be written is kept beside the store: nobody can adopt the task any more.
func (s suite) aKeptEndIsWritten(t *testing.T) {
	j := s.open(t)
	tk := InFlight(t, j)
	attempt := task.Attempt{
		Number: 1, StartedAt: Epoch, Decision: task.Decision{Verdict: task.VerdictFailed, Reason: task.ReasonNotEligible},
		Outcome: task.Outcome{Exit: 137, Signal: "SIGKILL", Error: task.ErrorTimeout, Duration: time.Minute,
			Reply: &task.Reply{Written: 1, Status: 404}}, // it may have taken effect
	}
	tk.ApplyDecision(attempt, Epoch.Add(time.Hour))
	for range 2 { // who wrote it may have died before the file was removed
		Must(t, j.KeepEnd(tk))
		if _, err := j.Adopt(t.Context(), tk.Number); !errors.Is(err, state.ErrFinished) {
			t.Errorf("got %v, want %v", err, state.ErrFinished)
		}
	}
	Expect(t, j, tk, attempt)
}

// It is of the run that it ended: a task that was requeued since goes on.
func (s suite) aKeptEndIsOfItsRun(t *testing.T) {
	j := s.open(t)
	tk := InFlight(t, j)
	ended := *tk
	ended.ApplyDecision(task.Attempt{Number: 1, Decision: Succeeded}, Epoch.Add(time.Hour))
	Must(t, j.Cancel(t.Context(), tk.Number, Epoch.Add(time.Hour)))
	Must(t, j.KeepEnd(&ended))
	Must(t, j.Requeue(t.Context(), Stored(t, j, tk.ID), Epoch.Add(2*time.Hour)))
	if got, err := j.Adopt(t.Context(), tk.Number); err != nil || got.Status != task.Pending || got.AttemptCount != 1 {
		t.Errorf("got %+v, %v, want the requeued task", got, err)
	}
}
