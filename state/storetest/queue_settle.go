package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Each way out of an attempt, read back.
func (s queueSuite) settleStoresTheOutcome(t *testing.T) {
	p := s.start(t).register()
	now := Epoch.Add(time.Hour)
	reply := &task.Reply{Status: 503, Written: 1, ServerDelay: 2 * time.Second,
		Default: task.Eligibility{Event: "status 503"}}
	for _, test := range []struct {
		name     string
		outcome  task.Outcome
		decision task.Decision
		status   task.Status
	}{
		{"succeeded", task.Outcome{Reply: &task.Reply{Status: 204}, Duration: time.Millisecond}, Succeeded, task.Succeeded},
		{"retry", task.Outcome{Exit: 22, Reply: reply, Message: "503\n\xff", Duration: 1500 * time.Microsecond},
			RetryIn(90 * time.Second), task.Pending},
		{"shortened", Exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: time.Second, Shortened: true}, task.Pending},
		{"deferred", Exit(1), task.Decision{Verdict: task.VerdictRetry, Delay: time.Hour, Reason: task.ReasonDeferred},
			task.Pending},
		{"failed", task.Outcome{Exit: 7, Error: task.ErrorConnect, Message: "refused"}, Failed, task.Failed},
		{"exhausted", task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout, Duration: 1}, Exhausted,
			task.Exhausted},
		{"cancelled", Exit(130), Cancelled, task.Cancelled},
		{"interrupted with an outcome", Exit(143), Interrupted, task.Pending},
		{"interrupted without one", task.Crashed(), Interrupted, task.Pending},
		{"a bystander of a crash", task.Outcome{Exit: task.NoExit, Duration: 1500 * time.Microsecond}, Interrupted,
			task.Pending},
		{"crashes", task.Crashed(), task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonCrashes},
			task.Exhausted},
	} {
		t.Run(test.name, func(t *testing.T) {
			tk := p.inFlight(NewRequest("example.org"))
			want := *tk
			want.Status, want.Reason = test.status, test.decision.Reason
			if want.FinishedAt = now; test.status == task.Pending {
				want.FinishedAt, want.NextAttemptAt = time.Time{}, now.Add(test.decision.Delay)
			}
			Must(t, p.settle(tk, test.outcome, test.decision, now, nil))
			p.expect(t, &want, task.Attempt{Number: 1, StartedAt: Epoch, Outcome: test.outcome, Decision: test.decision})
			_, list := p.stored(tk.ID)
			if r, w := list[0].Outcome.Reply, test.outcome.Reply; w != nil && (r == nil || r.Status != w.Status ||
				r.ServerDelay != w.ServerDelay) {
				t.Errorf("got the reply %+v, want %+v", r, w)
			}
		})
	}
}

// Of all pairs of a verdict and a status, the queue writes only those of the state machine.
func (s queueSuite) settleWritesOnlyTransitions(t *testing.T) {
	p := s.start(t).register()
	verdicts := []task.Verdict{"", task.VerdictSucceeded, task.VerdictRetry, task.VerdictFailed, task.VerdictExhausted,
		task.VerdictCancelled, task.VerdictInterrupted}
	statuses := []task.Status{"", task.Pending, task.InFlight, task.Succeeded, task.Exhausted, task.Failed, task.Cancelled}
	for _, v := range verdicts {
		for _, status := range statuses {
			flying, waits := p.inFlight(NewRequest("a")), p.add(NewRequest("a"))[0]
			flying.Status, flying.NextAttemptAt, waits.Status = status, Epoch, status
			d := task.Decision{Verdict: v}
			for _, try := range []struct {
				t     *task.Task
				a     task.Attempt
				known bool
			}{
				{flying, task.Attempt{Number: 1, Outcome: Exit(0), Decision: d}, attemptEnds[v] == status && v != ""},
				{waits, task.Attempt{Decision: d}, waitEnds[v] == status && status != ""},
			} {
				before := p.snapshot()
				err := p.Settle(t.Context(), try.t, try.a, nil)
				changed := p.snapshot() != before
				if (err == nil) != try.known || changed && !try.known || errors.Is(err, task.ErrNotOwner) {
					t.Errorf("attempt %d %q to %q: got changed %v, error %v", try.a.Number, v, status, changed, err)
				}
			}
		}
		for _, tk := range p.all(state.PageFilter{}) {
			_, _ = p.Cancel(t.Context(), tk.Number, Epoch)
		}
		if q, ok := p.Queue.(pruner); ok { // so that the snapshots stay short
			_, _, err := q.Prune(t.Context(), state.Retention{Rows: 1000})
			Must(t, err)
		}
	}
}

// step is something that happens to a task in flight; it returns the task as its new holder has it.
type step func(p *process, t *task.Task) *task.Task

func ending(d task.Decision) step {
	return func(p *process, t *task.Task) *task.Task {
		moved := *t
		Must(p.t, p.settle(&moved, Exit(9), d, Epoch, nil))
		return &moved
	}
}

func claimingAgain(p *process, t *task.Task) *task.Task {
	return p.claim(t.Number, Epoch.AddDate(1, 0, 0))
}

func requeuing(p *process, t *task.Task) *task.Task {
	Must(p.t, p.Requeue(context.Background(), t.Number, Epoch))
	found, _ := p.stored(t.ID)
	return found
}

func cancellingIt(p *process, t *task.Task) *task.Task {
	_, err := p.Cancel(context.Background(), t.Number, Epoch)
	Must(p.t, err)
	found, _ := p.stored(t.ID)
	return found
}

// takingOver has a rescuer hold every request of a worker that stands still.
func takingOver(p *process, t *task.Task) *task.Task {
	taken := p.takeOver(time.Now().Add(time.Hour), 100)
	i := slices.IndexFunc(taken, func(other *task.Task) bool { return other.ID == t.ID })
	if i < 0 {
		p.t.Fatalf("got %d tasks of the dead worker, want %s among them", len(taken), t.ID)
	}
	return taken[i]
}

// A worker whose claim is not the present one changes nothing, whatever it tries.
func (s queueSuite) lateWritersAreRefused(t *testing.T) {
	for _, test := range []struct {
		name      string
		meanwhile []step
	}{
		{"it waits meanwhile", []step{ending(RetryIn(time.Second))}},
		{"it succeeded meanwhile", []step{ending(Succeeded)}},
		{"claimed again", []step{ending(RetryIn(time.Second)), claimingAgain}},
		{"claimed again and ended", []step{ending(RetryIn(time.Second)), claimingAgain, ending(Failed)}},
		{"requeued", []step{ending(Failed), requeuing}},
		{"requeued and claimed", []step{ending(Failed), requeuing, claimingAgain}},
		{"taken over", []step{takingOver}},
		{"taken over and waiting", []step{takingOver, ending(Interrupted)}},
		{"taken over and claimed", []step{takingOver, ending(Interrupted), claimingAgain}},
		{"taken over and ended", []step{takingOver, ending(Exhausted)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := s.start(t).register()
			rescuer := p.another(t)
			tk := p.inFlight(NewRequest("example.org"))
			current := tk
			for _, step := range test.meanwhile {
				current = step(rescuer, current)
			}
			for _, d := range []task.Decision{Succeeded, RetryIn(time.Hour), Failed, Exhausted, Cancelled, Interrupted} {
				for _, o := range []task.Outcome{Exit(3), task.Crashed()} {
					rescuer.unchanged(t, "settle "+string(d.Verdict), task.ErrNotOwner, func() error {
						late := *tk
						return p.settle(&late, o, d, Epoch, NewRequest("what follows"))
					})
				}
			}
			rescuer.unchanged(t, "note", task.ErrNotOwner, func() error { return p.NoteProcess(t.Context(), tk, "123") })
			without := *tk
			without.Nonce = 0
			rescuer.unchanged(t, "without a nonce", task.ErrNotOwner, func() error {
				return p.settle(&without, Exit(3),
					Succeeded, Epoch, nil)
			})
			if current.Status == task.InFlight {
				Must(t, rescuer.settle(current, Exit(0), Succeeded, Epoch, nil))
			}
		})
	}
}

// Who does not know whether its write has arrived writes it again.
func (s queueSuite) settleTwiceIsNoError(t *testing.T) {
	p := s.start(t).register()
	for _, o := range []task.Outcome{Exit(0), task.Crashed(), {Exit: 7, Error: task.ErrorConnect}} {
		for _, d := range []task.Decision{Succeeded, RetryIn(time.Hour), Failed, Exhausted, Cancelled, Interrupted} {
			if o.IsCrash() && d.Verdict == task.VerdictCancelled {
				continue // nobody cancels what has crashed
			}
			tk := p.inFlight(NewRequest("example.org"))
			first, second := *tk, *tk
			Must(t, p.settle(&first, o, d, Epoch, nil))
			p.unchanged(t, "settle "+string(d.Verdict), nil, func() error { return p.settle(&second, o, d, Epoch, nil) })
			if !d.Verdict.Status().Finished() { // its next attempt does not make the first one's end another
				p.claim(tk.Number, Epoch.AddDate(1, 0, 0))
				second = *tk
				p.unchanged(t, "settle later", nil, func() error { return p.settle(&second, o, d, Epoch, nil) })
			}
		}
	}
	for _, d := range []task.Decision{Exhausted, Cancelled, Interrupted} {
		tk := p.add(NewRequest("example.org"))[0]
		Must(t, p.settleEnd(tk, d, Epoch))
		p.unchanged(t, "end "+string(d.Verdict), nil, func() error { return p.settleEnd(tk, d, Epoch) })
	}
	tk := p.add(NewRequest("example.org"))[0]
	cancellingIt(p, tk)
	p.unchanged(t, "the end of a cancelled one", task.ErrNotOwner, func() error {
		return p.settleEnd(tk, Exhausted,
			Epoch)
	})
}

// The outcome of an attempt that was cancelled is kept; the task stays cancelled.
func (s queueSuite) settleAfterACancelAddsTheOutcomeAlone(t *testing.T) {
	p := s.start(t).register()
	for _, d := range []task.Decision{Succeeded, RetryIn(time.Hour), Failed, Exhausted, Interrupted} {
		tk := p.inFlight(NewRequest("example.org"))
		want := cancellingIt(p, tk)
		late := *tk
		if err := p.settle(&late, Exit(143), d, Epoch.Add(time.Hour), NewRequest("what follows")); !errors.Is(err,
			task.ErrNotOwner) {
			t.Errorf("%s: got %v, want %v", d.Verdict, err, task.ErrNotOwner)
		}
		p.expect(t, want, task.Attempt{Number: 1, StartedAt: Epoch, Outcome: Exit(143),
			Decision: task.Decision{Verdict: task.VerdictCancelled}})
		p.unchanged(t, "another outcome", task.ErrNotOwner, func() error { return p.settle(tk, Exit(3), d, Epoch, nil) })
		p.unchanged(t, "note", task.ErrNotOwner, func() error { return p.NoteProcess(t.Context(), tk, "123") })
	}
}

// What follows a dead task is made in the same write as its end, and once.
func (s queueSuite) settleAddsWhatFollowsOnce(t *testing.T) {
	p := s.start(t).register()
	count := func(key string) (n int) {
		for _, tk := range p.all(state.PageFilter{}) {
			if tk.IdempotencyKey == key {
				n++
			}
		}
		return n
	}
	tk := p.inFlight(NewRequest("example.org"))
	first, second := *tk, *tk
	follows := keyed("", tk.ID+":exhausted", "hash")
	Must(t, p.settle(&first, Exit(1), Exhausted, Epoch, follows))
	Must(t, p.settle(&second, Exit(1), Exhausted, Epoch, keyed("", tk.ID+":exhausted", "hash")))
	if n := count(follows.IdempotencyKey); n != 1 {
		t.Errorf("got %d tasks that follow, want 1", n)
	}
	p.claim(follows.Number, Epoch)

	Must(t, p.Requeue(t.Context(), tk.Number, Epoch)) // it dies once more, and the key is that of what followed
	again := p.claim(tk.Number, Epoch)
	Must(t, p.settle(again, Exit(1), Exhausted, Epoch, keyed("", tk.ID+":exhausted", "hash")))
	if n := count(follows.IdempotencyKey); n != 1 || again.Status != task.Exhausted {
		t.Errorf("got %d tasks that follow, %s; want 1, %s", n, again.Status, task.Exhausted)
	}
	other := p.inFlight(NewRequest("example.org"))
	err := p.settle(other, Exit(1), Failed, Epoch, keyed("", tk.ID+":exhausted", "another"))
	if e, ok := errors.AsType[*state.UnfollowedError](err); !ok || e.ID != other.ID {
		t.Errorf("with a key of another payload: got %v, want an UnfollowedError of the task", err)
	}
	if found, _ := p.stored(other.ID); found.Status != task.Failed || count(follows.IdempotencyKey) != 1 {
		t.Errorf("got %s with a key of another payload, want %s", found.Status, task.Failed)
	}
	over := p.add(NewRequest("example.org"))[0]
	moved := *over
	moved.Move(Exhausted, Epoch)
	for range 2 {
		Must(t, p.Settle(t.Context(), &moved, task.Attempt{Decision: Exhausted}, keyed("", over.ID+":exhausted", "hash")))
	}
	if n := count(over.ID + ":exhausted"); n != 1 {
		t.Errorf("got %d tasks that follow one without an attempt, want 1", n)
	}
}

func (s queueSuite) settleOfAPrunedTaskIsLate(t *testing.T) {
	p := s.start(t).register()
	tk := p.inFlight(NewRequest("example.org"))
	cancellingIt(p, tk)
	p.prune(t)
	p.add(NewRequest("example.org")) // it may have the number
	p.unchanged(t, "settle", task.ErrNotOwner, func() error { return p.settle(tk, Exit(0), Succeeded, Epoch, nil) })
	p.unchanged(t, "note", task.ErrNotOwner, func() error { return p.NoteProcess(t.Context(), tk, "123") })
}

// Where the processes of an attempt are is known to who takes over.
func (s queueSuite) noteProcess(t *testing.T) {
	p := s.start(t).register()
	tk := p.inFlight(queuedCommand())
	p.NoteStart(tk, "123")
	if found, _ := p.stored(tk.ID); found.Last.Process != "123" {
		t.Errorf("just begun: got %q, want \"123\"", found.Last.Process)
	}
	Must(t, p.NoteProcess(t.Context(), tk, "123 456"))
	found, list := p.stored(tk.ID)
	if found.Last.Process != "123 456" || list[0].Process != "123 456" {
		t.Errorf("got %q and %q, want \"123 456\"", found.Last.Process, list[0].Process)
	}
	rescuer := p.another(t)
	p.die()
	if taken := rescuer.takeOver(time.Now(), 10); len(taken) != 1 || taken[0].Last.Process != "123 456" {
		t.Errorf("got %+v, want a task with the process", taken)
	}
}

func (s queueSuite) unfinished(t *testing.T) {
	p := s.start(t).register()
	check := func(when string, any, due bool) {
		t.Helper()
		gotAny, err := p.Unfinished(t.Context(), time.Time{})
		Must(t, err)
		gotDue, err := p.Unfinished(t.Context(), Epoch)
		Must(t, err)
		if gotAny != any || gotDue != due {
			t.Errorf("%s: got unfinished %v, due %v; want %v, %v", when, gotAny, gotDue, any, due)
		}
	}
	check("empty", false, false)
	tk := p.add(due("example.org", "", time.Minute))[0]
	check("not due", true, false)
	flying := p.claim(tk.Number, Epoch.Add(time.Hour))
	check("in flight", true, true)
	Must(t, p.settle(flying, Exit(1), RetryIn(0), Epoch, nil))
	check("due", true, true)
	cancellingIt(p, tk)
	check("cancelled", false, false)
}
