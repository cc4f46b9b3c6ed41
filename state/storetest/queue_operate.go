package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func (s queueSuite) cancelEndsWhatIsUnfinished(t *testing.T) {
	p := s.start(t).register()
	now := Epoch.Add(time.Hour)
	cancelled := func(tk *task.Task) *task.Task {
		want := *tk
		want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = task.Cancelled, task.ReasonCancelled, now, time.Time{}
		return &want
	}
	waits := p.add(NewRequest("example.org"))[0]
	before, err := p.Cancel(t.Context(), waits.Number, now)
	if err != nil || before != task.Pending {
		t.Errorf("waiting: got %q, %v; want %s", before, err, task.Pending)
	}
	p.expect(t, cancelled(waits))
	flying := p.inFlight(NewRequest("example.org"))
	if before, err = p.Cancel(t.Context(), flying.Number, now); err != nil || before != task.InFlight {
		t.Errorf("in flight: got %q, %v; want %s", before, err, task.InFlight)
	}
	p.expect(t, cancelled(flying), task.Attempt{
		Number: 1, StartedAt: Epoch, Outcome: task.Outcome{Exit: task.NoExit},
		Decision: task.Decision{Verdict: task.VerdictCancelled},
	})
	if found, _ := p.stored(flying.ID); found.Worker != 0 || found.Nonce != 0 {
		t.Errorf("got worker %d, nonce %d of a cancelled task; want none", found.Worker, found.Nonce)
	}
	for _, d := range []task.Decision{Succeeded, Failed, Exhausted, Cancelled} {
		tk := p.inFlight(NewRequest("example.org"))
		Must(t, p.settle(tk, Exit(1), d, Epoch, nil))
		p.unchanged(t, "cancel after it has "+string(d.Verdict), state.ErrFinished, func() error {
			before, err := p.Cancel(t.Context(), tk.Number, now)
			if before != tk.Status {
				t.Errorf("got %q before, want %s", before, tk.Status)
			}
			return err
		})
	}
	if _, err := p.Cancel(t.Context(), 1<<40, now); err == nil {
		t.Error("got no error of an unknown number, want one")
	}
}

// A requeued task has fresh attempts; their numbers go on, and its key is the same.
func (s queueSuite) requeueGivesFreshAttempts(t *testing.T) {
	p := s.start(t).register()
	for _, d := range []task.Decision{Succeeded, Failed, Exhausted, Cancelled} {
		added := keyed("tenant", "key of "+string(d.Verdict), "hash")
		added.Parent = "parent"
		tk := p.inFlight(added)
		Must(t, p.settle(tk, Exit(1), RetryIn(0), Epoch, nil))
		tk = p.claim(tk.Number, Epoch)
		Must(t, p.settle(tk, Exit(1), d, Epoch, nil))
		later := Epoch.Add(time.Hour)
		Must(t, p.Requeue(t.Context(), tk.Number, later))
		want := *tk
		want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = task.Pending, "", time.Time{}, later
		want.RequeuedAt, want.RequeuedAfter = later, 2
		found, list := p.stored(tk.ID)
		if g, w := showQueued(found), showQueued(&want); g != w || len(list) != 2 || found.Parent != "" {
			t.Errorf("got\n%s with %d attempts, parent %q\nwant\n%s with 2, none", g, len(list), found.Parent, w)
		}
		if got, err := p.Claim(t.Context(), p.number, []int64{tk.Number}, Epoch, nil); err != nil || got[0] != nil {
			t.Errorf("got %+v, %v before its time, want nothing", got[0], err)
		}
		next := p.claim(tk.Number, later)
		if h := next.History; h.Counted+h.Own.Step+h.Successes != 0 || next.AttemptCount != 3 ||
			!h.Began.Equal(found.RequeuedAt) {
			t.Errorf("got attempt %d with history %+v, want the third with none", next.AttemptCount, h)
		}
		added2, err := p.Add(t.Context(), []*task.Task{keyed("tenant", tk.IdempotencyKey, "hash")})
		if err != nil || !added2[0].Replayed {
			t.Errorf("got %+v, %v of its key, want the task", added2, err)
		}
	}
}

func (s queueSuite) whatCannotBeRequeued(t *testing.T) {
	p := s.start(t).register()
	named := NewRequest("example.org")
	named.Name = "nightly"
	ended := p.inFlight(named)
	Must(t, p.settle(ended, Exit(1), Failed, Epoch, nil))
	again := NewRequest("example.org")
	again.Name = "nightly"
	p.add(again)
	replayed := queuedCommand()
	replayed.Options.Stdin = task.StdinReplay
	dropped := p.inFlight(replayed)
	Must(t, p.settle(dropped, Exit(1), Failed, Epoch, nil))
	for _, test := range []struct {
		name   string
		number int64
		want   error
	}{
		{"waiting", p.add(NewRequest("example.org"))[0].Number, state.ErrUnfinished},
		{"in flight", p.inFlight(NewRequest("example.org")).Number, state.ErrUnfinished},
		{"its name is taken", ended.Number, state.ErrNamed},
		{"its stdin was dropped", dropped.Number, state.ErrInputDropped},
		{"unknown", 1 << 40, state.ErrNotFound},
	} {
		p.unchanged(t, test.name, test.want, func() error { return p.Requeue(t.Context(), test.number, Epoch) })
	}
}

// The next attempt of a waiting task can be moved both ways.
func (s queueSuite) rescheduleMovesWhatWaits(t *testing.T) {
	p := s.start(t).register()
	tk := p.add(due("example.org", "", time.Hour))[0]
	for _, after := range []time.Duration{time.Minute, 2 * time.Hour, 0} {
		waits, err := p.Reschedule(t.Context(), tk.Number, Epoch.Add(after))
		if err != nil || !waits {
			t.Errorf("got %v, %v; want that it waits", waits, err)
		}
		if found, _ := p.stored(tk.ID); ShowTime(found.NextAttemptAt) != ShowTime(Epoch.Add(after)) {
			t.Errorf("got %v, want %v", found.NextAttemptAt, Epoch.Add(after))
		}
	}
	flying := p.claim(tk.Number, Epoch)
	refused := func(name string, number int64) {
		t.Helper()
		p.unchanged(t, name, nil, func() error {
			waits, err := p.Reschedule(t.Context(), number, Epoch)
			if waits {
				t.Errorf("%s: got that it waits, want not", name)
			}
			return err
		})
	}
	refused("in flight", tk.Number)
	Must(t, p.settle(flying, Exit(0), Succeeded, Epoch, nil))
	refused("succeeded", tk.Number)
	refused("unknown", 1<<40)
}

// What has a parent and is queued, as what follows a dead task, was handed over: it does not end with its parent.
func (s queueSuite) cancelNested(t *testing.T) {
	p := s.start(t).register()
	parent := p.inFlight(queuedCommand())
	nested := func(name string) *task.Task {
		tk := queuedCommand()
		tk.Parent, tk.Name = parent.ID, name
		return p.add(tk)[0]
	}
	plain, named, other := nested(""), nested("nightly"), p.add(queuedCommand())[0]
	Must(t, p.CancelNested(t.Context(), parent, time.Time{}, Epoch))
	for _, test := range []struct {
		t    *task.Task
		want task.Status
	}{{plain, task.Pending}, {named, task.Pending}, {other, task.Pending}, {parent, task.InFlight}} {
		if found, _ := p.stored(test.t.ID); found.Status != test.want {
			t.Errorf("got %s of %q, want %s", found.Status, test.t.Name, test.want)
		}
	}
}

func (s queueSuite) policiesHaveRevisions(t *testing.T) {
	p := s.start(t)
	policy := task.DefaultPolicy()
	policy.Name = "deploy"
	first, err := p.PutPolicy(t.Context(), policy, state.NewRevision, Epoch)
	Must(t, err)
	if first.Name != "deploy" || first.Revision() == "" || ShowTime(first.UpdatedAt) != ShowTime(Epoch) {
		t.Errorf("got %+v, want the policy of %v", first, Epoch)
	}
	again, err := p.PutPolicy(t.Context(), policy, first.Revision(), Epoch)
	if err != nil || again.Revision() != first.Revision() {
		t.Errorf("got revision %q, %v of the same policy; want %q", again.Revision(), err, first.Revision())
	}
	policy.Attempts = 7
	refused := func(expected string) {
		t.Helper()
		if _, err := p.PutPolicy(t.Context(), policy, expected, Epoch); !errors.Is(err, state.ErrRevision) {
			t.Errorf("put, expecting %q: got %v, want %v", expected, err, state.ErrRevision)
		}
		if got, err := p.GetPolicy(t.Context(), "deploy"); err != nil || got.Attempts == 7 {
			t.Errorf("got %+v, %v after a refused write, want the one before", got, err)
		}
	}
	refused(state.NewRevision)
	refused("another")
	second, err := p.PutPolicy(t.Context(), policy, "", Epoch.Add(time.Hour))
	Must(t, err)
	if second.Attempts != 7 || second.Revision() == first.Revision() {
		t.Errorf("got %d attempts, revision %q; want 7, another", second.Attempts, second.Revision())
	}
	policy.Name = "another"
	if _, err := p.PutPolicy(t.Context(), policy, first.Revision(), Epoch); !errors.Is(err, state.ErrRevision) {
		t.Errorf("got %v of a revision of no policy, want %v", err, state.ErrRevision)
	}
	_, err = p.PutPolicy(t.Context(), policy, "", Epoch)
	Must(t, err)
	list, err := p.ListPolicies(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "another" || list[1].Name != "deploy" {
		t.Errorf("got %+v, %v; want both by name", list, err)
	}
	if err := p.DeletePolicy(t.Context(), "deploy", first.Revision()); !errors.Is(err, state.ErrRevision) {
		t.Errorf("delete: got %v, want %v", err, state.ErrRevision)
	}
	Must(t, p.DeletePolicy(t.Context(), "deploy", second.Revision()))
	if err := p.DeletePolicy(t.Context(), "deploy", ""); !errors.Is(err, state.ErrNoPolicy) {
		t.Errorf("delete again: got %v, want %v", err, state.ErrNoPolicy)
	}
	if got, err := p.GetPolicy(t.Context(), "deploy"); got != nil || err != nil {
		t.Errorf("got %+v, %v of a deleted policy; want none", got, err)
	}
}

func (s queueSuite) targets(t *testing.T) {
	p := s.start(t)
	a := state.TargetSettings{Host: "a:8080", Paused: true, MaxConcurrent: 3, RatePerSecond: 0.5}
	for _, settings := range []state.TargetSettings{{Host: "b", MaxConcurrent: 1}, {Host: "a:8080"}, a} {
		Must(t, p.PutTarget(t.Context(), settings))
	}
	other := p.another(t)
	got, err := other.Targets(t.Context())
	if want := []state.TargetSettings{a, {Host: "b", MaxConcurrent: 1}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func (s queueSuite) operations(t *testing.T) {
	p := s.start(t)
	tenant := "tenant"
	o := state.Operation{
		ID: "one", RatePerSecond: 50, Status: "running", Matched: 3, CreatedAt: Epoch.UTC(),
		Filter: state.PageFilter{Statuses: []task.Status{task.Failed}, Partition: &tenant, Host: "a", Since: Epoch.UTC()},
	}
	Must(t, p.PutOperation(t.Context(), o))
	other := o
	other.ID, other.Status = "two", "done"
	Must(t, p.PutOperation(t.Context(), other))
	o.Requeued, o.Skipped = 2, 1
	Must(t, p.PutOperation(t.Context(), o))
	got, err := p.Operation(t.Context(), "one")
	Must(t, err)
	if got == nil || got.Requeued != 2 || got.Skipped != 1 || !got.CreatedAt.Equal(o.CreatedAt) ||
		*got.Filter.Partition != tenant || !got.Filter.Since.Equal(o.Filter.Since) || !slices.Equal(got.Filter.Statuses,
		o.Filter.Statuses) {
		t.Errorf("got %+v, want %+v", got, o)
	}
	running, err := p.Operations(t.Context())
	if err != nil || len(running) != 1 || running[0].ID != "one" {
		t.Errorf("got %+v, %v; want the one that is not finished", running, err)
	}
	if got, err := p.Operation(t.Context(), "none"); got != nil || err != nil {
		t.Errorf("got %+v, %v of an unknown id; want none", got, err)
	}
	o.Status = "cancelled"
	Must(t, p.PutOperation(t.Context(), o))
	o.Status, o.Requeued = state.OperationRunning, 3
	Must(t, p.PutOperation(t.Context(), o)) // by who has not heard of it
	if got, err := p.Operation(t.Context(), "one"); err != nil || got.Status != "cancelled" || got.Requeued != 3 {
		t.Errorf("got %+v, %v; want it cancelled still, with its progress", got, err)
	}
	for i := range state.OperationsKept {
		o.ID, o.Status = fmt.Sprintf("x%04d", i), "done"
		Must(t, p.PutOperation(t.Context(), o))
	}
	for id, want := range map[string]bool{"one": false, "two": false, "x0000": true, "x0999": true} {
		if got, err := p.Operation(t.Context(), id); (got != nil) != want || err != nil {
			t.Errorf("got %+v, %v of %s; want it kept: %v", got, err, id, want)
		}
	}
}

// operationOwner: one process carries an operation, until it gives it back or dies.
func (s queueSuite) operationOwner(t *testing.T) {
	p := s.start(t).register()
	other := p.another(t)
	own := func(when string, p *process, id string, want bool) {
		t.Helper()
		if got, err := p.OwnOperation(t.Context(), id); got != want || err != nil {
			t.Errorf("%s: got %v, %v of %s; want %v", when, got, err, id, want)
		}
	}
	own("nobody has it", p, "one", true)
	own("another process has it", other, "one", false)
	own("nobody has the other", other, "two", true)
	Must(t, p.DisownOperation("one"))
	own("it was given back", other, "one", true)
	own("it is the other's now", p, "one", false)
	other.die()
	own("its process has died", p, "one", true)
	own("so has that of the other", p, "two", true)
}

func (s queueSuite) blobInUse(t *testing.T) {
	p := s.start(t).register()
	tk := NewRequest("example.org")
	tk.Target = &Request{Authority: "example.org", Hash: "abc"}
	tk = p.add(tk)[0]
	check := func(when, hash string, want bool) {
		t.Helper()
		if got, err := p.BlobInUse(t.Context(), hash, time.Now()); got != want || err != nil {
			t.Errorf("%s: got %v, %v of %q; want %v", when, got, err, hash, want)
		}
	}
	check("waiting", "abc", true)
	check("another", "ab", false)
	cancellingIt(p, tk)
	check("cancelled", "abc", true) // it can be requeued
	p.prune(t)
	check("pruned", "abc", false)
}
