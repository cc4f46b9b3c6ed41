package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// A writer whose copy of the task is outdated changes nothing, whatever happened meanwhile.
func (s suite) lateWritersAreRefused(t *testing.T) {
	takenOver := []Write{Recording(Interrupted), Claiming()}
	tests := []struct {
		name      string
		copied    func(Tester, state.Store) *task.Task
		meanwhile []Write
	}{
		{"in flight, succeeded meanwhile", InFlight, []Write{Recording(Succeeded)}},
		{"in flight, failed meanwhile", InFlight, []Write{Recording(Failed)}},
		{"in flight, waits meanwhile", InFlight, []Write{Recording(RetryIn(time.Second))}},
		{"in flight, its crash noticed meanwhile", InFlight, takenOver[:1]},
		{"in flight, a later attempt in flight meanwhile", InFlight, takenOver},
		{"in flight, a later attempt followed at once", InFlight, []Write{Chaining()}},
		{"in flight, a later attempt succeeded meanwhile", InFlight, append(slices.Clone(takenOver), Recording(Succeeded))},
		{"in flight, a later attempt cancelled meanwhile", InFlight, append(slices.Clone(takenOver), Cancelling())},
		{"waiting, cancelled meanwhile", Waiting, []Write{Cancelling()}},
		{"waiting, exhausted meanwhile", Waiting, []Write{Settling(Exhausted)}},
		{"waiting, claimed meanwhile", Waiting, []Write{Claiming()}},
		{"waiting, and again after a later attempt", Waiting, []Write{Claiming(), Recording(RetryIn(time.Second))}},
		{"waiting, cancelled in a later attempt", Waiting, []Write{Claiming(), Cancelling()}},
	}
	late := map[task.Status][]Write{
		task.InFlight: {
			Recording(Succeeded), Recording(RetryIn(time.Hour)), Recording(Failed), Recording(Exhausted), Recording(Cancelled), Recording(Interrupted),
			Chaining(),
		},
		task.Pending: {Claiming(), Settling(Interrupted), Settling(Exhausted), Settling(Cancelled)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := s.open(t)
			tk := test.copied(t, j)
			stale := *tk
			Apply(t, j, tk, test.meanwhile...)
			for _, w := range late[stale.Status] {
				Refuses(t, j, stale, w)
			}
		})
	}
}

// The outcome of an attempt is stored even if its task was cancelled meanwhile; the task stays cancelled.
func (s suite) recordAfterACancelAddsTheOutcomeAlone(t *testing.T) {
	for _, d := range []task.Decision{Succeeded, {Verdict: task.VerdictRetry, Delay: time.Hour, Shortened: true}, Failed, Exhausted, Cancelled, Interrupted} {
		t.Run(string(d.Verdict), func(t *testing.T) {
			j := s.open(t)
			tk := InFlight(t, j)
			Must(t, j.Cancel(t.Context(), tk.Number, Epoch.Add(time.Minute)))
			want := Stored(t, j, tk.ID)
			outcome := task.Outcome{Exit: 143, Signal: "SIGTERM", Message: "late", Duration: time.Hour}
			if err := Recorded(j, tk, outcome, d, Epoch.Add(time.Hour)); !errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v, want %v", err, task.ErrNotOwner)
			}
			Expect(t, j, want, task.Attempt{
				Number: 1, StartedAt: Epoch, Outcome: outcome, Decision: task.Decision{Verdict: task.VerdictCancelled},
			})
			Refuses(t, j, *tk, Recording(d)) // there is an outcome now
		})
	}
}

// The owner's own cancellation has its outcome already.
func (s suite) recordAfterTheOwnCancelAddsNothing(t *testing.T) {
	j := s.open(t)
	tk := InFlight(t, j)
	stale := *tk
	Must(t, Recorded(j, tk, Exit(130), Cancelled, Epoch))
	Refuses(t, j, stale, Recording(Succeeded))
}

// An attempt can be ended once, and only the one that is in flight.
func (s suite) recordOfAnotherAttemptIsRefused(t *testing.T) {
	j := s.open(t)
	tk := InFlight(t, j)
	Apply(t, j, tk, Recording(Interrupted), Claiming())
	for _, number := range []int{0, 1, 3} {
		Refuses(t, j, *tk, Write{"record", func(j state.Store, t *task.Task) error {
			a := task.Attempt{Number: number, StartedAt: Epoch, Outcome: Exit(0), Decision: Succeeded}
			t.ApplyDecision(a, Epoch)
			return j.Record(context.Background(), t, a)
		}})
	}
}

// Of all pairs of a verdict and a status, the store writes only those of the state machine.
func (s suite) forbiddenTransitionsAreNotWritten(t *testing.T) {
	verdicts := []task.Verdict{
		"", task.VerdictSucceeded, task.VerdictRetry, task.VerdictFailed, task.VerdictExhausted,
		task.VerdictCancelled, task.VerdictInterrupted,
	}
	statuses := []task.Status{task.Pending, task.InFlight, task.Succeeded, task.Exhausted, task.Failed, task.Cancelled}
	known := map[string]bool{
		"record succeeded SUCCEEDED": true, "record retry PENDING": true, "record failed FAILED": true,
		"record exhausted EXHAUSTED": true, "record cancelled CANCELLED": true, "record interrupted PENDING": true,
		"settle exhausted EXHAUSTED": true, "settle cancelled CANCELLED": true, "settle interrupted PENDING": true,
	}
	j := s.open(t)
	for _, v := range verdicts {
		for _, s := range statuses {
			flying, idle := InFlight(t, j), Waiting(t, j)
			flying.Status, idle.Status = s, s
			idle.NextAttemptAt = Epoch.Add(time.Hour) // a change, where it is written
			a := task.Attempt{Number: 1, Outcome: Exit(0), Decision: task.Decision{Verdict: v}}
			tries := map[string]func() error{
				"record": func() error { return j.Record(t.Context(), flying, a) },
				"settle": func() error { return j.Settle(t.Context(), idle, a.Decision) },
			}
			for verb, try := range tries {
				name := strings.Join([]string{verb, string(v), string(s)}, " ")
				before := snapshot(t, j)
				err := try()
				if changed := snapshot(t, j) != before; changed != known[name] || (err == nil) != known[name] || errors.Is(err, task.ErrNotOwner) {
					t.Errorf("%s: changed %v, error %v", name, changed, err)
				}
			}
		}
	}
}

// A context that has ended stops a write before it begins, and leaves the connection as it was.
func (s suite) anEndedContextWritesNothing(t *testing.T) {
	j := s.open(t)
	flying, idle := InFlight(t, j), Waiting(t, j)
	done := *flying
	a := task.Attempt{Number: 1, Outcome: Exit(0), Decision: Succeeded}
	done.ApplyDecision(a, Epoch)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := snapshot(t, j)
	for name, err := range map[string]error{
		"create": j.Claim(ctx, NewTask(), Epoch), "claim": j.Claim(ctx, idle, Epoch), "record": j.Record(ctx, &done, a),
		"settle": j.Settle(ctx, idle, Interrupted), "cancel": j.Cancel(ctx, flying.Number, Epoch),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want %v", name, err, context.Canceled)
		}
	}
	if after := snapshot(t, j); after != before {
		t.Errorf("got\n%s\nwant no change of\n%s", after, before)
	}
	Apply(t, j, NewTask(), Claiming(), Recording(Succeeded))
	Apply(t, j, flying, Recording(Succeeded))
}

// Two tasks of one id would be one task that runs twice.
func (s suite) anIDIsTakenOnce(t *testing.T) {
	j := s.open(t)
	first, second := InFlight(t, j), NewTask()
	second.ID = first.ID
	before := snapshot(t, j)
	if err := Claimed(j, second, Epoch); err == nil {
		t.Error("got no error of the second task with an id, want one")
	}
	if after := snapshot(t, j); after != before {
		t.Errorf("got\n%s\nwant no change of\n%s", after, before)
	}
}

// RecordAndClaim writes the same as Record and then Claim.
func (s suite) aChainIsARecordAndAClaim(t *testing.T) {
	texts := map[string]string{}
	for _, writes := range [][]Write{{Recording(AtOnce), Claiming()}, {Chaining()}} {
		j := s.open(t)
		tk := NewTask()
		tk.ID, tk.IdempotencyKey = "id", "key"
		Must(t, Claimed(j, tk, Epoch))
		Apply(t, j, tk, writes...)
		Apply(t, j, tk, Recording(Succeeded))
		texts[writes[0].Name] = snapshot(t, j)
	}
	if texts["chain"] != texts["record retry"] {
		t.Errorf("got\n%s\nwant\n%s", texts["chain"], texts["record retry"])
	}
}

// After Unclaim, RecordAndClaim has written the same as Record.
func (s suite) anUnclaimLeavesARecord(t *testing.T) {
	var texts []string
	for range 2 {
		j := s.open(t)
		tk := NewTask()
		tk.ID, tk.IdempotencyKey = "id", "key"
		Must(t, Claimed(j, tk, Epoch))
		if len(texts) == 0 {
			Must(t, Recorded(j, tk, Exit(3), AtOnce, Epoch))
		} else {
			chain := *tk
			Must(t, Chained(j, &chain, Exit(3), Epoch))
			tk.Status, tk.NextAttemptAt = task.Pending, Epoch
			Must(t, j.Unclaim(t.Context(), tk))
		}
		texts = append(texts, snapshot(t, j))
		if len(texts) == 2 {
			Refuses(t, j, *tk, Write{"unclaim", func(j state.Store, t *task.Task) error { return j.Unclaim(context.Background(), t) }})
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("got\n%s\nwant\n%s", texts[1], texts[0])
	}
}
