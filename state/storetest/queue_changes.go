package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// patience bounds how long a test waits for what takes milliseconds.
const patience = 30 * time.Second

// next returns the next change that says something.
func next(t *testing.T, changes <-chan state.Change) state.Change {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case c, open := <-changes:
			if !open {
				t.Fatal("got the end of the changes, want one more")
			}
			if !c.Precaution {
				return c
			}
		case <-timeout:
			t.Fatal("got no change, want one")
		}
	}
}

// Each step of a task is told to every process that listens, its own and others.
func (s queueSuite) changesAreTold(t *testing.T) {
	p := s.start(t).register()
	listener := p.another(t)
	own, others := p.Changes(t.Context()), listener.Changes(t.Context())
	tk := keyed("tenant", "order-1", "one")
	tk.Target = &Request{Authority: "b:8080"}
	lane := state.Lane{Partition: "tenant", Host: "b:8080"}
	check := func(what string, want state.Change) {
		t.Helper()
		for who, changes := range map[string]<-chan state.Change{"own": own, "another process": others} {
			got := next(t, changes)
			if got.At.IsZero() || ShowTime(got.Due) != ShowTime(want.Due) {
				t.Errorf("%s, %s: got it at %v, due %v; want due %v", what, who, got.At, got.Due, want.Due)
			}
			want := want
			got.At, got.Due, want.Due = time.Time{}, time.Time{}, time.Time{}
			if want.Status != task.Pending {
				got.Lane = state.Lane{}
			}
			if got != want {
				t.Errorf("%s, %s: got %+v, want %+v", what, who, got, want)
			}
		}
	}
	at := func(status task.Status, attempt int, due time.Time) state.Change {
		c := state.Change{Number: tk.Number, ID: tk.ID, Status: status, Attempt: attempt, Due: due}
		if status == task.Pending {
			c.Lane = lane
		}
		return c
	}
	tk = p.add(tk)[0]
	check("add", at(task.Pending, 0, Epoch))
	p.add(keyed("tenant", "order-1", "one")) // changes nothing
	flying := p.claim(tk.Number, Epoch)
	check("claim", at(task.InFlight, 1, time.Time{}))
	Must(t, p.settle(flying, Exit(1), RetryIn(time.Minute), Epoch, nil))
	check("retry", at(task.Pending, 1, Epoch.Add(time.Minute)))
	_, err := p.Reschedule(t.Context(), tk.Number, Epoch.Add(time.Second))
	Must(t, err)
	check("reschedule", at(task.Pending, 1, Epoch.Add(time.Second)))
	_, err = p.Cancel(t.Context(), tk.Number, Epoch)
	Must(t, err)
	check("cancel", at(task.Cancelled, 1, time.Time{}))
	Must(t, p.Requeue(t.Context(), tk.Number, Epoch.Add(time.Hour)))
	check("requeue", at(task.Pending, 1, Epoch.Add(time.Hour)))
	Must(t, p.PutTarget(t.Context(), state.TargetSettings{Host: "b:8080", Paused: true}))
	check("target", state.Change{Target: "b:8080"})
	flying = p.claim(tk.Number, Epoch.Add(time.Hour))
	check("claim again", at(task.InFlight, 2, time.Time{}))
	follows := NewRequest("c")
	Must(t, p.settle(flying, Exit(0), Failed, Epoch, follows))
	check("failed", at(task.Failed, 2, time.Time{}))
	check("follows", state.Change{
		Number: follows.Number, ID: follows.ID, Status: task.Pending, Due: follows.CreatedAt, Lane: state.Lane{Host: "c"},
	})
}

// Who is too slow learns that something is missing.
func (s queueSuite) changesThatAreLostAreTold(t *testing.T) {
	p := s.start(t)
	listener := p.another(t)
	all := map[string]<-chan state.Change{"own": p.Changes(t.Context()), "another process": listener.Changes(t.Context())}
	const count, last = 12_000, "the last"
	for range count / 500 {
		var batch []*task.Task
		for range 500 {
			batch = append(batch, NewRequest("example.org"))
		}
		p.add(batch...)
	}
	Must(t, p.PutTarget(t.Context(), state.TargetSettings{Host: last}))
	for who, changes := range all {
		seen, lost := 0, false
		for {
			c := next(t, changes)
			if c.Lost {
				lost = true
			} else if c.Target == "" {
				seen++
			}
			if c.Target == last || lost && seen == 0 && len(changes) == 0 {
				break
			}
		}
		if !lost && seen != count {
			t.Errorf("%s: got %d changes and none lost, want %d", who, seen, count)
		}
	}
	p.add(NewRequest("example.org")) // it goes on
	for who, changes := range all {
		for c := next(t, changes); c.Status != task.Pending; c = next(t, changes) {
			if !c.Lost && c.Target != last {
				t.Errorf("%s: got %+v, want the task", who, c)
			}
		}
	}
}

// The channel is closed at the end of its context, and nobody waits for who has gone.
func (s queueSuite) changesEnd(t *testing.T) {
	p := s.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone, stays := p.Changes(ctx), p.Changes(t.Context())
	p.add(NewRequest("example.org"))
	cancel()
	timeout := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-gone:
		case <-timeout:
			t.Fatal("got an open channel, want its end")
		}
	}
	p.add(NewRequest("example.org"))
	for range 2 {
		if c := next(t, stays); c.Status != task.Pending {
			t.Errorf("got %+v, want a new task", c)
		}
	}
}
