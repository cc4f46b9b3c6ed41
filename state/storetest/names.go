package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Of the unfinished tasks only one has a name; of the finished ones any number.
func (s suite) aNameHasOneUnfinishedTask(t *testing.T) {
	j := s.open(t)
	first := Named(t, j, "nightly")
	second := NewTask()
	second.Name = "nightly"
	if err := Claimed(j, second, Epoch); !errors.Is(err, state.ErrNamed) || second.Number != 0 {
		t.Errorf("a second one: %v, number %d", err, second.Number)
	}
	Named(t, j, "hourly")
	InFlight(t, j)
	InFlight(t, j)
	Must(t, Recorded(j, first, Exit(1), RetryIn(0), Epoch))
	if err := Claimed(j, second, Epoch); !errors.Is(err, state.ErrNamed) {
		t.Errorf("while the first waits: %v", err)
	}
	Apply(t, j, first, Claiming(), Recording(Succeeded))
	Must(t, Claimed(j, second, Epoch))
}

// A task that was stored before it could begin has its name, waits without an attempt, and can be adopted.
func (s suite) createWaits(t *testing.T) {
	j := s.open(t)
	first, second := NewTask(), NewTask()
	first.Name, second.Name = "nightly", "nightly"
	Must(t, j.Create(t.Context(), first, nil))
	if err := Claimed(j, second, Epoch); !errors.Is(err, state.ErrNamed) {
		t.Errorf("another one of the name: %v", err)
	}
	adopted, err := j.Adopt(t.Context(), first.Number)
	Must(t, err)
	if adopted.Status != task.Pending || adopted.AttemptCount != 0 || adopted.Last.Number != 0 {
		t.Errorf("got %s, %d attempts, want it waiting without one", adopted.Status, adopted.AttemptCount)
	}
	first.CreatedAt = first.CreatedAt.Add(time.Hour).Truncate(time.Microsecond)
	Must(t, Claimed(j, first, Epoch))
	if found, err := j.Find(t.Context(), first.ID); err != nil || !found.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("got it made %v, %v, want %v", found.CreatedAt, err, first.CreatedAt)
	}
	Must(t, j.Create(t.Context(), second, first))
	if found, err := j.Find(t.Context(), first.ID); err != nil || found.Status != task.Cancelled {
		t.Errorf("the one that was replaced: got %s, %v, want it cancelled", found.Status, err)
	}
	if named, err := j.Named(t.Context(), "nightly"); err != nil || named == nil || named.ID != second.ID {
		t.Errorf("of the name: got %+v, %v, want the second one", named, err)
	}
}

// A name that may succeed once is not claimed after its success, whatever was read before.
func (s suite) onceIsOnce(t *testing.T) {
	j := s.open(t)
	Must(t, Recorded(j, Named(t, j, "nightly"), Exit(0), Succeeded, Epoch))
	again := NewTask()
	again.Name, again.Once = "nightly", true
	if err := Claimed(j, again, Epoch); !errors.Is(err, state.ErrSucceeded) || again.Number != 0 {
		t.Errorf("got %v, number %d, want that it has succeeded", err, again.Number)
	}
	success, err := j.Success(t.Context(), "nightly")
	Must(t, err)
	Must(t, j.Requeue(t.Context(), success, Epoch))
	Must(t, j.Cancel(t.Context(), success.Number, Epoch))
	if err := Claimed(j, again, Epoch); !errors.Is(err, state.ErrSucceeded) {
		t.Errorf("after a requeue that was taken back: got %v, want that it has succeeded", err)
	}
	again.Once = false
	Must(t, Claimed(j, again, Epoch))
}

// A success may be recorded under a cancel after another task of the name was stored: that is not begun then. Whether
// the end is recorded or kept beside the journal makes no difference.
func (s suite) onceUnderACancel(t *testing.T) {
	for _, kept := range []bool{false, true} {
		j := s.open(t)
		first := Named(t, j, "nightly")
		Must(t, j.Cancel(t.Context(), first.Number, Epoch))
		waits := NewTask()
		waits.Name, waits.Once = "nightly", true
		Must(t, j.Create(t.Context(), waits, nil))
		if kept {
			ended := *first
			ended.ApplyDecision(task.Attempt{Number: 1, StartedAt: Epoch, Outcome: Exit(0), Decision: Succeeded}, Epoch)
			Must(t, j.KeepEnd(&ended))
		} else if err := Recorded(j, first, Exit(0), Succeeded, Epoch); !errors.Is(err, task.ErrNotOwner) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
		if success, err := j.Success(t.Context(), "nightly"); err != nil || success == nil || success.ID != first.ID {
			t.Errorf("kept %v: got %+v, %v, want the one under the cancel", kept, success, err)
		}
		if err := Claimed(j, waits, Epoch); !errors.Is(err, task.ErrNotOwner) {
			t.Errorf("kept %v: got %v, want no claim", kept, err)
		}
		if found, err := j.Find(t.Context(), waits.ID); err != nil || found.Status != task.Cancelled {
			t.Errorf("kept %v: got %s, %v, want it cancelled", kept, found.Status, err)
		}
	}
}

// Nor is a request that is not safe to repeat stored beside one of its name that may have taken effect.
func (s suite) mayBeDone(t *testing.T) {
	reply := func(status, written int) task.Outcome {
		return task.Outcome{Exit: 22, Reply: &task.Reply{Status: status, Written: written}}
	}
	cancelled := task.Decision{Verdict: task.VerdictCancelled, Reason: task.ReasonCancelled}
	ended := func(reason task.Reason) task.Decision {
		return task.Decision{Verdict: task.VerdictFailed, Reason: reason}
	}
	expired := task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonExpired}
	budget := task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}
	local, ambiguous := ended(task.ReasonNotEligible), ended(task.ReasonAmbiguous)
	for _, tt := range []struct {
		name    string
		outcome task.Outcome
		d       task.Decision
		undo    bool           // it is requeued after its end, and cancelled
		again   *task.Decision // it is requeued after its end, and this ends it before it is sent
		want    bool
	}{
		{name: "ambiguous", outcome: reply(502, 1), d: ended(task.ReasonAmbiguous), want: true},
		{name: "ambiguous, requeue undone", outcome: reply(0, 1), d: ended(task.ReasonAmbiguous), undo: true, want: true},
		{name: "ambiguous, requeued too late", outcome: reply(0, 1), d: ambiguous, again: &budget, want: true},
		{name: "ambiguous, requeued in vain", outcome: reply(0, 1), d: ambiguous, again: &local, want: true},
		{name: "refused, requeued too late", outcome: reply(404, 1), d: ended(task.ReasonNotEligible), again: &budget},
		{name: "refused by the server", outcome: reply(404, 1), d: ended(task.ReasonNotEligible)},
		{name: "refused, requeue undone", outcome: reply(404, 1), d: ended(task.ReasonNotEligible), undo: true},
		{name: "cancelled after it was sent", outcome: reply(0, 1), d: cancelled, want: true},
		{name: "expired", outcome: reply(0, 1), d: expired, want: true},
		{name: "cancelled before", outcome: reply(0, 0), d: cancelled},
	} {
		j := s.open(t)
		request := func() *task.Task {
			tk := NewTask()
			tk.Name, tk.Once, tk.Kind, tk.Command, tk.Target = "order", true, KindRequest, nil, &Request{Authority: "a", Unsafe: true}
			return tk
		}
		first := request()
		Must(t, Claimed(j, first, Epoch))
		Must(t, Recorded(j, first, tt.outcome, tt.d, Epoch))
		if tt.undo {
			stored, err := j.Find(t.Context(), first.ID)
			Must(t, err)
			Must(t, j.Release(first.Number))
			Must(t, j.Requeue(t.Context(), stored, Epoch))
			Must(t, j.Cancel(t.Context(), stored.Number, Epoch))
		}
		if tt.again != nil {
			stored, err := j.Find(t.Context(), first.ID)
			Must(t, err)
			Must(t, j.Release(first.Number))
			Must(t, j.Requeue(t.Context(), stored, Epoch))
			stored, err = j.Find(t.Context(), first.ID)
			Must(t, err)
			if tt.again.Verdict == task.VerdictExhausted {
				Must(t, Settled(j, stored, *tt.again, Epoch))
			} else {
				Must(t, Claimed(j, stored, Epoch))
				Must(t, Recorded(j, stored, reply(0, 0), *tt.again, Epoch))
			}
		}
		found, err := j.MayBeDone(t.Context(), request())
		Must(t, err)
		if (found != nil) != tt.want {
			t.Errorf("%s: got %+v, want one: %v", tt.name, found, tt.want)
		}
		created, claimed := j.Create(t.Context(), request(), nil), error(nil)
		if tt.want {
			claimed = Claimed(j, request(), Epoch)
		}
		if errors.Is(created, state.ErrMayBeDone) != tt.want || errors.Is(claimed, state.ErrMayBeDone) != tt.want {
			t.Errorf("%s: a new one: got %v and %v, want a refusal: %v", tt.name, created, claimed, tt.want)
		}
	}
}

func (s suite) namedAndSuccess(t *testing.T) {
	j := s.open(t)
	check := func(when string, unfinished, success int64) {
		t.Helper()
		u, err := j.Named(t.Context(), "nightly")
		Must(t, err)
		s, err := j.Success(t.Context(), "nightly")
		Must(t, err)
		for _, pair := range []struct {
			got  *task.Task
			want int64
		}{{u, unfinished}, {s, success}} {
			if (pair.got == nil) != (pair.want == 0) || (pair.got != nil && pair.got.Number != pair.want) {
				t.Errorf("%s: got %+v, want number %d", when, pair.got, pair.want)
			}
		}
	}
	Must(t, Recorded(j, Named(t, j, "hourly"), Exit(0), Succeeded, Epoch))
	check("another name", 0, 0)
	first := Named(t, j, "nightly")
	check("in flight", 2, 0)
	Must(t, Recorded(j, first, Exit(0), Succeeded, Epoch))
	check("a success", 0, 2)
	second := Named(t, j, "nightly")
	Must(t, Recorded(j, second, Exit(1), RetryIn(0), Epoch))
	check("a later one waits", 3, 2)
	Must(t, Settled(j, second, Cancelled, Epoch))
	check("it was cancelled", 0, 2)
	Must(t, Recorded(j, Named(t, j, "nightly"), Exit(0), Succeeded, Epoch))
	check("the newest success counts", 0, 4)
}

// A task that was requeued begins anew, and remembers that it is not new.
func (s suite) requeue(t *testing.T) {
	j := s.open(t)
	for name, end := range map[string]task.Decision{"succeeded": Succeeded, "failed": Failed, "exhausted": Exhausted, "cancelled": Cancelled} {
		t.Run(name, func(t *testing.T) {
			tk := Waiting(t, j)
			Apply(t, j, tk, Claiming(), Recording(end))
			later := Epoch.Add(time.Hour)
			Must(t, j.Requeue(t.Context(), tk, later))
			Must(t, j.Release(tk.Number))
			got, err := j.Adopt(t.Context(), tk.Number)
			Must(t, err)
			want := *tk
			want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = task.Pending, "", time.Time{}, later
			want.RequeuedAt, want.RequeuedAfter = later, 2
			if ShowTask(got) != ShowTask(&want) {
				t.Errorf("got %s\nwant %s", ShowTask(got), ShowTask(&want))
			}
			if h := got.History; h.Counted+h.Own.Step+h.Successes != 0 || !h.Began.Equal(got.RequeuedAt) || got.Last.Number != 2 {
				t.Errorf("the history is %+v, the last attempt %d", h, got.Last.Number)
			}
			Apply(t, j, got, Claiming(), Recording(RetryIn(0)))
			Must(t, j.Release(tk.Number))
			again, err := j.Adopt(t.Context(), tk.Number)
			if err != nil || again.History.Counted != 1 || again.AttemptCount != 3 {
				t.Errorf("after one more attempt: %+v, %v", again.History, err)
			}
		})
	}
}

func (s suite) whatCannotBeRequeued(t *testing.T) {
	j := s.open(t)
	ended := Named(t, j, "nightly")
	Must(t, Recorded(j, ended, Exit(0), Succeeded, Epoch))
	replayed := NewTask()
	replayed.Options.Stdin = task.StdinReplay
	Must(t, Claimed(j, replayed, Epoch))
	Must(t, Recorded(j, replayed, Exit(0), Succeeded, Epoch))
	Named(t, j, "nightly")
	for name, test := range map[string]struct {
		task *task.Task
		want error
	}{
		"in flight":               {InFlight(t, j), state.ErrUnfinished},
		"waiting":                 {Waiting(t, j), state.ErrUnfinished},
		"its name is taken":       {ended, state.ErrNamed},
		"its stdin was dropped":   {replayed, state.ErrInputDropped},
		"unknown to this journal": {&task.Task{Number: 99}, state.ErrNotFound},
	} {
		before := snapshot(t, j)
		if err := j.Requeue(t.Context(), test.task, Epoch); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if after := snapshot(t, j); after != before {
			t.Errorf("%s: changed\n%s\nto\n%s", name, before, after)
		}
	}
}

// Hasten moves the time of a task that waits, never to a later one, and leaves its owner what it had.
func (s suite) hasten(t *testing.T) {
	j := s.open(t)
	due := func(want time.Time, tk *task.Task) {
		t.Helper()
		got, err := j.NextAttempt(t.Context(), tk.Number)
		if err != nil || !got.Equal(want.Truncate(time.Microsecond)) {
			t.Errorf("next attempt: got %v, %v, want %v", got, err, want)
		}
	}
	tk := InFlight(t, j)
	if waits, err := j.Hasten(t.Context(), tk.Number, Epoch); err != nil || waits {
		t.Errorf("in flight: got %v, %v, want that it does not wait", waits, err)
	}
	Must(t, Recorded(j, tk, Exit(1), RetryIn(time.Hour), Epoch))
	due(Epoch.Add(time.Hour), tk)
	for _, at := range []time.Duration{time.Minute, time.Second, time.Minute} {
		if waits, err := j.Hasten(t.Context(), tk.Number, Epoch.Add(at)); err != nil || !waits {
			t.Errorf("waiting: got %v, %v, want that it waits", waits, err)
		}
	}
	due(Epoch.Add(time.Second), tk)
	Apply(t, j, tk, Claiming(), Recording(Succeeded))
	due(time.Time{}, tk)
}
