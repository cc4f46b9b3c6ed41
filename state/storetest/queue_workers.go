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

func (p *process) workers(t *testing.T) (numbers []int64) {
	t.Helper()
	list, err := p.ListWorkers(t.Context())
	Must(t, err)
	for _, w := range list {
		numbers = append(numbers, w.Number)
	}
	slices.Sort(numbers)
	return numbers
}

func (p *process) dead(t *testing.T, now time.Time) []state.Worker {
	t.Helper()
	dead, err := p.Dead(t.Context(), now, visibility)
	Must(t, err)
	return dead
}

func (s queueSuite) workersAreListed(t *testing.T) {
	p := s.start(t).register()
	other := p.another(t)
	if got, want := p.workers(t), []int64{p.number, other.number}; !slices.Equal(got, want) || p.number == other.number {
		t.Errorf("got workers %v, want %v", got, want)
	}
	list, err := other.ListWorkers(t.Context())
	Must(t, err)
	if w := list[0]; w.Name != "worker" || w.Concurrency != 4 || w.StartedAt.IsZero() || !w.RenewedAt.Equal(w.StartedAt) {
		t.Errorf("got %+v, want what it registered with, and no renewal since", w)
	}
	if got := p.dead(t, time.Now()); len(got) != 0 {
		t.Errorf("got dead workers %+v, want none", got)
	}
	Must(t, other.Unregister(t.Context(), other.number))
	if got, want := p.workers(t), []int64{p.number}; !slices.Equal(got, want) {
		t.Errorf("got workers %v, want %v", got, want)
	}
	third := p.another(t)
	third.die()
	if got := p.dead(t, time.Now()); len(got) != 0 || len(p.workers(t)) != 1 {
		t.Errorf("got dead %+v, workers %v; want none of a dead one without tasks", got, p.workers(t))
	}
}

// The attempts of a dead worker go to another one, each once, and count for nothing.
func (s queueSuite) aDeadWorkerIsReplaced(t *testing.T) {
	p := s.start(t).register()
	other := p.another(t)
	var claimed []*task.Task
	for range 3 {
		claimed = append(claimed, other.inFlight(NewRequest("example.org")))
	}
	claimed = append(claimed, other.inFlight(queuedCommand()))
	if got := p.dead(t, time.Now()); len(got) != 0 {
		t.Errorf("got dead workers %+v, want none", got)
	}
	other.die()
	got := p.dead(t, time.Now())
	if len(got) != 1 || got[0].Number != other.number || got[0].Stale || !slices.Contains(p.workers(t), other.number) {
		t.Fatalf("got dead workers %+v, want worker %d", got, other.number)
	}
	taken := p.takeOver(time.Now(), 3)
	if len(taken) != 4 {
		t.Fatalf("got %d tasks, want 4", len(taken))
	}
	for i, tk := range taken {
		before := claimed[slices.IndexFunc(claimed, func(c *task.Task) bool { return c.ID == tk.ID })]
		if tk.Nonce == before.Nonce || tk.Nonce == 0 || tk.Worker != p.number || tk.AttemptCount != 1 || tk.Last.Number != 1 {
			t.Errorf("got nonce %d, worker %d, attempt %d of %d; want a new claim of the same attempt", tk.Nonce, tk.Worker,
				tk.AttemptCount, i)
		}
		Must(t, p.settle(tk, task.Crashed(), Interrupted, Epoch, nil))
		next := p.claim(tk.Number, Epoch)
		if next.AttemptCount != 2 || next.History.Counted != 0 || next.History.Interrupted != 1 {
			t.Errorf("got attempt %d, history %+v; want the second, which is the first that counts", next.AttemptCount,
				next.History)
		}
	}
	if got := p.dead(t, time.Now()); len(got) != 0 || len(p.workers(t)) != 1 {
		t.Errorf("got dead workers %+v, listed %v; want none", got, p.workers(t))
	}
}

// A worker that stands still loses its requests. Its commands may run, and stay its own.
func (s queueSuite) aStaleWorkerKeepsItsCommands(t *testing.T) {
	p := s.start(t).register()
	stale := p.another(t)
	request, command := stale.inFlight(NewRequest("example.org")), stale.inFlight(queuedCommand())
	later := time.Now().Add(visibility + time.Minute)
	got := p.dead(t, later)
	if len(got) != 1 || got[0].Number != stale.number || !got[0].Stale {
		t.Fatalf("got dead workers %+v, want the stale worker %d alone", got, stale.number)
	}
	if got := p.dead(t, time.Now().Add(-time.Hour)); len(got) != 0 {
		t.Errorf("got dead workers %+v with a clock that was set back, want none", got)
	}
	taken := p.takeOver(later, 10)
	if len(taken) != 1 || taken[0].ID != request.ID {
		t.Fatalf("got %d tasks, want the request alone", len(taken))
	}
	p.unchanged(t, "settle the request", task.ErrNotOwner, func() error {
		return stale.settle(request, Exit(0),
			Succeeded, Epoch, nil)
	})
	if err := stale.Renew(t.Context(), stale.number, later); !errors.Is(err, state.ErrLeaseLost) {
		t.Errorf("got %v of its lease, want %v", err, state.ErrLeaseLost)
	}
	Must(t, stale.Renew(t.Context(), stale.number, later))
	Must(t, stale.settle(command, Exit(0), Succeeded, Epoch, nil))
	Must(t, p.settle(taken[0], task.Crashed(), Interrupted, Epoch, nil))
	stale.claim(request.Number, Epoch)

	only := p.another(t)
	only.inFlight(queuedCommand())
	if taken := p.takeOver(time.Now().Add(visibility+time.Second), 10); len(taken) != 0 {
		t.Errorf("got %d tasks of a worker that has a command alone, want none", len(taken))
	}
	if err := only.Renew(t.Context(), only.number, time.Now()); err != nil {
		t.Errorf("got %v of a lease that cost nothing, want no error", err)
	}
	only.die() // now its command is over
	if taken := p.takeOver(time.Now(), 10); len(taken) != 1 {
		t.Errorf("got %d tasks of the dead worker, want its command", len(taken))
	}
}

// A rescuer that looked too early takes nothing.
func (s queueSuite) aWorkerThatRenewsKeepsAll(t *testing.T) {
	p := s.start(t).register()
	other := p.another(t)
	tk := other.inFlight(NewRequest("example.org"))
	later := time.Now().Add(time.Hour)
	seen := p.dead(t, later)
	if len(seen) != 1 {
		t.Fatalf("got dead workers %+v, want one", seen)
	}
	Must(t, other.Renew(t.Context(), other.number, later))
	alive := seen[0]
	alive.Stale = false
	for name, from := range map[string]state.Worker{"it has renewed": seen[0], "it lives": alive} {
		p.unchanged(t, name, nil, func() error {
			taken, err := p.TakeOver(t.Context(), p.number, from, 10, later)
			if len(taken) != 0 {
				t.Errorf("%s: got %d tasks, want none", name, len(taken))
			}
			return err
		})
	}
	if got := p.dead(t, later); len(got) != 0 {
		t.Errorf("got dead workers %+v, want none", got)
	}
	Must(t, other.settle(tk, Exit(0), Succeeded, Epoch, nil))
	p.inFlight(NewRequest("example.org"))
	if got := p.dead(t, later.Add(time.Hour)); slices.ContainsFunc(got,
		func(w state.Worker) bool { return w.Number == p.number }) {
		t.Errorf("got dead workers %+v, want not the one that looks", got)
	}
}

// A rescuer that dies between taking over and settling is itself rescued.
func (s queueSuite) theNextRescuerTakesOver(t *testing.T) {
	p := s.start(t).register()
	first, second := p.another(t), p.another(t)
	tk := first.inFlight(NewRequest("example.org"))
	first.die()
	taken := second.takeOver(time.Now(), 10)
	if len(taken) != 1 {
		t.Fatalf("got %d tasks, want 1", len(taken))
	}
	second.die()
	again := p.takeOver(time.Now(), 10)
	if len(again) != 1 || again[0].ID != tk.ID || again[0].Nonce == taken[0].Nonce || again[0].AttemptCount != 1 {
		t.Fatalf("got %+v, want the same attempt with another nonce", again)
	}
	for _, late := range []*task.Task{tk, taken[0]} {
		p.unchanged(t, "settle", task.ErrNotOwner, func() error { return p.settle(late, Exit(0), Succeeded, Epoch, nil) })
	}
	Must(t, p.settle(again[0], task.Crashed(), Interrupted, Epoch, nil))
	if got := p.dead(t, time.Now()); len(got) != 0 || len(p.workers(t)) != 1 {
		t.Errorf("got dead workers %+v, listed %v; want none", got, p.workers(t))
	}
}

// A worker that unregisters with attempts in flight leaves them to others, though its process goes on.
func (s queueSuite) aWorkerThatLeavesKeepsNothing(t *testing.T) {
	p := s.start(t).register()
	other := p.another(t)
	tk := other.inFlight(NewRequest("example.org"))
	Must(t, other.Unregister(t.Context(), other.number))
	if taken := p.takeOver(time.Now(), 10); len(taken) != 1 || taken[0].ID != tk.ID {
		t.Errorf("got %d tasks, want that of the worker that has left", len(taken))
	}
	before := other.number
	other.register()
	own := other.inFlight(NewRequest("example.org"))
	if got := p.dead(t, time.Now()); len(got) != 0 {
		t.Errorf("got dead workers %+v, want none after it has registered again as %d, before %d", got, other.number, before)
	}
	Must(t, other.settle(own, Exit(0), Succeeded, Epoch, nil))
	if err := other.Renew(t.Context(), other.number, time.Now()); err != nil {
		t.Errorf("got %v, want that its new lease holds", err)
	}
}

// keptEnd keeps the end of a claimed task beside the store, as a worker does that cannot write it.
func (p *process) keptEnd(tk *task.Task) (*task.Task, task.Attempt) {
	p.t.Helper()
	ended, a := *tk, task.Attempt{Number: tk.AttemptCount, StartedAt: Epoch, Decision: Failed,
		Outcome: task.Outcome{Exit: 7, Error: task.ErrorConnect, Duration: time.Second}}
	ended.ApplyDecision(a, Epoch.Add(time.Hour))
	Must(p.t, p.KeepEnd(&ended))
	return &ended, a
}

// What a worker could not write before it died is no crash: the task ends as it did.
func (s queueSuite) aKeptEndIsWrittenBeforeATakeover(t *testing.T) {
	p := s.start(t).register()
	other := p.another(t)
	tk, crashed := other.inFlight(queuedCommand()), other.inFlight(queuedCommand())
	ended, attempt := other.keptEnd(tk)
	other.die()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := p.Changes(ctx)
	if taken := p.takeOver(time.Now(), 10); len(taken) != 1 || taken[0].ID != crashed.ID {
		t.Errorf("got %d tasks, want that without an end alone", len(taken))
	}
	p.expect(t, ended, attempt)
	select {
	case c := <-changes:
		if c.ID != tk.ID || c.Status != task.Failed || c.Attempt != 1 {
			t.Errorf("got the change %+v, want the end of %s", c, tk.ID)
		}
	case <-time.After(10 * time.Second):
		t.Error("got no change, want that of the end")
	}
}

// A worker that stood still may keep an end after its attempt was taken over. As long as no other attempt has begun, the
// task ends as it did; afterwards the end is late.
func (s queueSuite) aKeptEndIsWrittenBeforeAClaim(t *testing.T) {
	p := s.start(t).register()
	stale := p.another(t)
	tk, late := stale.inFlight(NewRequest("example.org")), stale.inFlight(NewRequest("example.org"))
	taken := p.takeOver(time.Now().Add(time.Hour), 10)
	for _, c := range taken {
		Must(t, p.settle(c, task.Crashed(), Interrupted, Epoch, nil))
	}
	next := p.claim(late.Number, Epoch)
	ended, attempt := stale.keptEnd(tk)
	stale.keptEnd(late)
	got, err := p.Claim(t.Context(), p.number, []int64{tk.Number}, Epoch.Add(time.Hour), nil)
	if Must(t, err); got[0] != nil {
		t.Errorf("got %+v, want no claim of a task that has ended", got[0])
	}
	p.expect(t, ended, attempt)
	Must(t, p.settle(next, Exit(0), Succeeded, Epoch, nil))
}

// What kills its workers is given up, by the same decision that a worker makes. What only stood by when they died is
// not, which the store has to remember.
func (s queueSuite) threeCrashesExhaust(t *testing.T) {
	p := s.start(t).register()
	tk := p.add(NewRequest("example.org"))[0]
	bystanders := []bool{true, true, true, false, true, false, true, false}
	for i, bystander := range bystanders {
		victim := p.another(t)
		victim.claim(tk.Number, time.Now().Add(time.Hour))
		victim.die()
		taken := p.takeOver(time.Now(), 10)
		if len(taken) != 1 {
			t.Fatalf("got %d tasks after crash %d, want 1", len(taken), i+1)
		}
		c := taken[0]
		o := c.Crashed()
		if bystander {
			o.Duration = 1500 * time.Microsecond
		}
		d := task.Decide(&c.Policy, c.History, o, time.Now(), func() float64 { return 0.5 })
		want := task.VerdictInterrupted
		if i == len(bystanders)-1 {
			want = task.VerdictExhausted
		}
		if d.Verdict != want || c.AttemptCount != i+1 {
			t.Fatalf("got %+v after crash %d of attempt %d, want %s", d, i+1, c.AttemptCount, want)
		}
		Must(t, p.settle(c, o, d, time.Now(), nil))
	}
	if found, list := p.stored(tk.ID); found.Status != task.Exhausted || found.Reason != task.ReasonCrashes ||
		len(list) != len(bystanders) {
		t.Errorf("got %s %q after %d attempts, want %s", found.Status, found.Reason, len(list), task.Exhausted)
	}
}
