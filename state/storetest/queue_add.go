package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// What was added is read back whole, by this process and by another.
func (s queueSuite) addStoresTasks(t *testing.T) {
	p := s.start(t)
	other := p.another(t)
	command, request, later := queuedCommand(), NewRequest("example.org:8080"), NewRequest("example.org")
	command.Name, command.Directory, command.Environment = "nightly", "/tmp/\xff", []string{"HOME=/\n", "USER"}
	request.Partition, request.Tags, request.Payload = "tenant", []string{"a", "b c", `"`}, "hash"
	later.NextAttemptAt = Epoch.Add(time.Hour)
	given := []*task.Task{command, request, later}
	added, err := p.Add(t.Context(), given)
	Must(t, err)
	last := int64(0)
	for i, tk := range given {
		a := added[i]
		if a.Replayed || a.Task.ID != tk.ID || a.Task.Number <= last || a.Task.Status != task.Pending {
			t.Errorf("got %+v of task %d, want a new one with a number above %d", a, i, last)
		}
		last = a.Task.Number
		want := *tk
		want.Number = a.Task.Number
		if want.NextAttemptAt.IsZero() {
			want.NextAttemptAt = tk.CreatedAt
		}
		found, attempts := other.stored(tk.ID)
		if g, w := showQueued(found), showQueued(&want); g != w || len(attempts) != 0 {
			t.Errorf("got\n%s and %d attempts\nwant\n%s and none", g, len(attempts), w)
		}
		if found.History.Phase != a.Task.History.Phase || found.Damage != nil {
			t.Errorf("got phase %v, damage %v; want %v, none", found.History.Phase, found.Damage, a.Task.History.Phase)
		}
	}
	if _, err := p.Find(t.Context(), "none"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v of an unknown id, want %v", err, state.ErrNotFound)
	}
	if added, err := p.Add(t.Context(), nil); len(added) != 0 || err != nil {
		t.Errorf("got %v, %v of no task, want none", added, err)
	}
}

// One task that cannot be made keeps the others from being made.
func (s queueSuite) addIsAllOrNothing(t *testing.T) {
	p := s.start(t)
	named := func(name string) *task.Task {
		tk := NewRequest("example.org")
		tk.Name = name
		return tk
	}
	first := p.add(named("nightly"))[0]
	p.add(keyed("", "order-1", "one"))
	again := NewRequest("example.org")
	again.ID = first.ID
	for _, test := range []struct {
		name  string
		tasks []*task.Task
		want  error // nil for any
	}{
		{"a name that is taken", []*task.Task{named(""), named("hourly"), named("nightly")}, state.ErrNamed},
		{"a name twice", []*task.Task{named("hourly"), named("hourly")}, state.ErrNamed},
		{"a key of another payload", []*task.Task{named(""), keyed("", "order-1", "two")}, nil},
		{"an id that is taken", []*task.Task{named(""), again}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p.unchanged(t, "add", test.want, func() error {
				_, err := p.Add(t.Context(), test.tasks)
				if err == nil {
					t.Error("got no error, want one")
				}
				if test.want == nil {
					return nil
				}
				return err
			})
		})
	}
	_, err := p.Cancel(t.Context(), first.Number, Epoch)
	Must(t, err)
	second := p.add(named("nightly"))[0] // of a task that has ended, the name is free
	p.register()
	Must(t, p.settle(p.claim(second.Number, Epoch), Exit(0), Succeeded, Epoch, nil))
	once := named("nightly")
	once.Once = true
	p.unchanged(t, "add what may succeed once", state.ErrSucceeded, func() error {
		_, err := p.Add(t.Context(), []*task.Task{named(""), once})
		return err
	})
}

// A success may be recorded under a cancel after another task of the name was added: no worker begins that then.
func (s queueSuite) onceUnderACancel(t *testing.T) {
	p := s.start(t).register()
	named := func() *task.Task {
		tk := NewRequest("example.org")
		tk.Name, tk.Once = "nightly", true
		return tk
	}
	other := p.claim(p.add(NewRequest("example.org"))[0].Number, time.Now())
	_, err := p.Cancel(t.Context(), other.Number, Epoch)
	Must(t, err)
	if err := p.Requeue(t.Context(), other.Number, Epoch); !errors.Is(err, state.ErrOwned) {
		t.Errorf("a requeue of any task while its worker has it: got %v, want a refusal", err)
	}
	first := p.claim(p.add(named())[0].Number, time.Now())
	_, err = p.Cancel(t.Context(), first.Number, Epoch)
	Must(t, err)
	if err := p.Requeue(t.Context(), first.Number, Epoch); !errors.Is(err, state.ErrOwned) {
		t.Errorf("a requeue while its worker has it: got %v, want a refusal", err)
	}
	second := p.add(named())[0]
	if err := p.settle(first, Exit(0), Succeeded, Epoch, nil); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	list, err := p.Claim(t.Context(), p.number, []int64{second.Number}, Epoch, nil)
	if stored, _ := p.stored(second.ID); err != nil || list[0] != nil || stored.Status != task.Cancelled {
		t.Errorf("got %+v, %v and it %s, want no claim, and it cancelled", list[0], err, stored.Status)
	}
}

// A key belongs to a payload and a partition, as long as its task is kept.
func (s queueSuite) keys(t *testing.T) {
	p := s.start(t).register()
	first := p.add(keyed("", "order-1", "one"))[0]
	Must(t, p.settle(p.claim(first.Number, Epoch), Exit(0), Succeeded, Epoch, nil))
	for _, test := range []struct {
		name, partition, key, payload string
		replayed, refused             bool
	}{
		{name: "the same", key: "order-1", payload: "one", replayed: true},
		{name: "another payload", key: "order-1", payload: "two", refused: true},
		{name: "another partition", partition: "tenant", key: "order-1", payload: "two"},
		{name: "another key", key: "order-2", payload: "one"},
		{name: "a key that retry made up", key: "order-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := keyed(test.partition, test.key, test.payload)
			added, err := p.Add(t.Context(), []*task.Task{next})
			var reused *state.KeyError
			switch {
			case test.refused:
				if !errors.As(err, &reused) || reused.ID != first.ID || reused.Index != 0 {
					t.Errorf("got %v, want that the key is that of %s", err, first.ID)
				}
			case err != nil || added[0].Replayed != test.replayed:
				t.Errorf("got %+v, %v; want replayed %v", added, err, test.replayed)
			case test.replayed && (added[0].Task.ID != first.ID || added[0].Task.Status != task.Succeeded):
				t.Errorf("got %s %s, want %s, which has succeeded", added[0].Task.ID, added[0].Task.Status, first.ID)
			case !test.replayed && added[0].Task.ID != next.ID:
				t.Errorf("got %s, want %s", added[0].Task.ID, next.ID)
			}
		})
	}
}

// A key that comes twice in one batch is that of the first of the two.
func (s queueSuite) keysInOneBatch(t *testing.T) {
	p := s.start(t)
	one, two := keyed("", "order-1", "one"), keyed("", "order-1", "one")
	added, err := p.Add(t.Context(), []*task.Task{one, two, keyed("", "order-2", "one")})
	Must(t, err)
	if added[0].Replayed || !added[1].Replayed || added[2].Replayed || added[1].Task.ID != one.ID {
		t.Errorf("got %+v, want the first one again in the second place", added)
	}
	if got := p.all(state.PageFilter{}); len(got) != 2 {
		t.Errorf("got %d tasks, want 2", len(got))
	}
	p.unchanged(t, "another payload", nil, func() error {
		_, err := p.Add(t.Context(), []*task.Task{keyed("", "a", "one"), keyed("", "b", "one"), keyed("", "a", "two")})
		if reused := (*state.KeyError)(nil); !errors.As(err, &reused) || reused.Index != 2 {
			t.Errorf("got %v, want a *KeyError of task 2", err)
		}
		return nil
	})
}

// Of many equal requests at once, in two processes, one makes a task.
func (s queueSuite) equalAddsMakeOneTask(t *testing.T) {
	p := s.start(t)
	processes := []*process{p, p.another(t)}
	const clients = 64
	var group sync.WaitGroup
	var results [clients]state.Added
	for i := range clients {
		group.Go(func() {
			added, err := processes[i%2].Add(context.Background(), []*task.Task{keyed("", "order-1", "one")})
			if err != nil {
				t.Error(err)
				return
			}
			results[i] = added[0]
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	made := 0
	for i, r := range results {
		if !r.Replayed {
			made++
		}
		if r.Task.ID != results[0].Task.ID {
			t.Errorf("got task %s for client %d, want %s", r.Task.ID, i, results[0].Task.ID)
		}
	}
	if all := p.all(state.PageFilter{}); made != 1 || len(all) != 1 {
		t.Errorf("got %d that made a task, and %d tasks; want 1", made, len(all))
	}
}

// pruner is a queue that can remove what has ended.
type pruner interface {
	Prune(ctx context.Context, r state.Retention) (tasks int, more bool, err error)
}

// prune removes everything that has ended, or skips the test.
func (p *process) prune(t *testing.T) {
	t.Helper()
	q, ok := p.Queue.(pruner)
	if !ok {
		t.Skip("this queue prunes by itself")
	}
	for more := true; more; {
		var err error
		_, more, err = q.Prune(t.Context(), state.Retention{Rows: 1000})
		Must(t, err)
	}
}

func (s queueSuite) aKeyIsFreeAfterPruning(t *testing.T) {
	p := s.start(t).register()
	Must(t, p.settle(p.inFlight(keyed("", "order-1", "one")), Exit(0), Succeeded, Epoch, nil))
	p.prune(t)
	added, err := p.Add(t.Context(), []*task.Task{keyed("", "order-1", "two")})
	if err != nil || added[0].Replayed {
		t.Errorf("got %+v, %v; want a new task", added, err)
	}
}

// What is asked for after the end of a context is not done.
func (s queueSuite) anEndedContextWritesNothing(t *testing.T) {
	p := s.start(t).register()
	waiting, flying := p.add(NewRequest("example.org"))[0], p.inFlight(NewRequest("example.org"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // where two cases of a select are ready, either one may be taken
		for name, do := range map[string]func() error{
			"add":        func() error { _, err := p.Add(ctx, []*task.Task{NewRequest("a")}); return err },
			"claim":      func() error { _, err := p.Claim(ctx, p.number, []int64{waiting.Number}, Epoch, nil); return err },
			"note":       func() error { return p.NoteProcess(ctx, flying, "1") },
			"cancel":     func() error { _, err := p.Cancel(ctx, waiting.Number, Epoch); return err },
			"reschedule": func() error { _, err := p.Reschedule(ctx, waiting.Number, Epoch); return err },
		} {
			p.unchanged(t, name, context.Canceled, do)
		}
	}
}

// After Close every call returns, with an error.
func (s queueSuite) aClosedQueueAnswers(t *testing.T) {
	p := s.start(t)
	p.die()
	for i := range 50 {
		if _, err := p.Add(t.Context(), []*task.Task{NewRequest(fmt.Sprint(i))}); err == nil {
			t.Error("got no error of Add, want one")
		}
		if _, err := p.Page(t.Context(), state.PageFilter{Limit: 1}); err == nil {
			t.Error("got no error of Page, want one")
		}
	}
}
