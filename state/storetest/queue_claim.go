package storetest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// due returns a request that is due some time after Epoch.
func due(host, partition string, after time.Duration) *task.Task {
	t := NewRequest(host)
	t.Partition, t.NextAttemptAt = partition, Epoch.Add(after)
	return t
}

func numbers(items []state.Item) []int64 {
	list := make([]int64, len(items))
	for i, item := range items {
		list[i] = item.Number
	}
	return list
}

// waiting reads in steps what is due until a time.
func (p *process) waiting(until time.Time, lane *state.Lane, limit int) (items []state.Item) {
	p.t.Helper()
	var after state.Position
	for {
		list, err := p.Waiting(context.Background(), after, until, lane, limit)
		Must(p.t, err)
		if len(list) > limit {
			p.t.Fatalf("got %d tasks at once, want at most %d", len(list), limit)
		}
		if items = append(items, list...); len(list) < limit {
			return items
		}
		after = list[len(list)-1].Position
	}
}

// Queued tasks come by their time, then by their number, however long the steps are.
func (s queueSuite) waitingIsInOrder(t *testing.T) {
	p := s.start(t).register()
	var all []*task.Task
	for _, after := range []int{5, 1, 3, 3, 1, 9, 3, 2, 8, 3} {
		all = append(all, due("example.org", "", time.Duration(after)*time.Second))
	}
	all = p.add(all...)
	p.claim(all[1].Number, Epoch.Add(time.Minute)) // runs
	_, err := p.Cancel(t.Context(), all[2].Number, Epoch)
	Must(t, err)
	want := []int64{}
	for _, i := range []int{4, 7, 3, 6, 9, 0, 8, 5} {
		want = append(want, all[i].Number)
	}
	for limit := 1; limit <= 11; limit++ {
		if got := numbers(p.waiting(Epoch.Add(time.Hour), nil, limit)); !slices.Equal(got, want) {
			t.Errorf("got %v in steps of %d, want %v", got, limit, want)
		}
	}
	got := p.waiting(Epoch.Add(3*time.Second), nil, 100)
	if !slices.Equal(numbers(got), want[:5]) {
		t.Errorf("got %v until 3 s, want %v", numbers(got), want[:5])
	}
	first := got[0]
	if first.Lane != (state.Lane{Host: "example.org"}) || ShowTime(first.Due) != ShowTime(all[4].NextAttemptAt) {
		t.Errorf("got %+v, want the lane of example.org and the time %v", first, all[4].NextAttemptAt)
	}
}

func (s queueSuite) waitingInALane(t *testing.T) {
	p := s.start(t)
	lanes := []state.Lane{{}, {Host: "a"}, {Host: "b"}, {Partition: "x"}, {Partition: "x", Host: "a"}}
	want := map[state.Lane][]int64{}
	for i := range 20 {
		l := lanes[i%len(lanes)]
		tk := due(l.Host, l.Partition, time.Duration(i)*time.Second)
		if l.Host == "" {
			tk = queuedCommand()
			tk.Partition, tk.NextAttemptAt = l.Partition, Epoch.Add(time.Duration(i)*time.Second)
		}
		want[l] = append(want[l], p.add(tk)[0].Number)
	}
	for _, l := range lanes {
		if got := numbers(p.waiting(Epoch.Add(time.Hour), &l, 3)); !slices.Equal(got, want[l]) {
			t.Errorf("got %v in lane %+v, want %v", got, l, want[l])
		}
	}
	if got := p.waiting(Epoch.Add(time.Hour), &state.Lane{Host: "c"}, 3); len(got) != 0 {
		t.Errorf("got %v in a lane without tasks, want none", got)
	}
}

// Of eight workers that claim everything, in an order of their own, each task goes to one.
func (s queueSuite) eachTaskIsClaimedOnce(t *testing.T) {
	count, atOnce := 10_000, 64
	if testing.Short() {
		count = 1000
	}
	p := s.start(t)
	var all []int64
	for len(all) < count {
		var batch []*task.Task
		for range 500 {
			batch = append(batch, NewRequest("example.org"))
		}
		for _, tk := range p.add(batch...) {
			all = append(all, tk.Number)
		}
	}
	claimers := []*process{p.register()}
	for range 7 {
		claimers = append(claimers, p.another(t))
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	holders, nonces := map[int64]int64{}, map[int64]bool{}
	for _, c := range claimers {
		order := slices.Clone(all)
		rand.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		group.Go(func() {
			for part := range slices.Chunk(order, atOnce) {
				got, err := c.Claim(context.Background(), c.number, part, Epoch, nil)
				if err != nil {
					t.Error(err)
					return
				}
				mutex.Lock()
				for i, tk := range got {
					if tk == nil {
						continue
					}
					if by := holders[part[i]]; by != 0 || tk.Number != part[i] || nonces[tk.Nonce] || tk.Nonce == 0 {
						t.Errorf("got task %d for number %d with nonce %d, want one that worker %d does not have", tk.Number, part[i],
							tk.Nonce, by)
					}
					holders[part[i]], nonces[tk.Nonce] = c.number, true
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if len(holders) != count {
		t.Errorf("got claims of %d tasks, want %d", len(holders), count)
	}
	counts, err := p.Counts(t.Context(), Epoch)
	if err != nil || counts.ByStatus[task.InFlight] != count || counts.Due != 0 {
		t.Errorf("got %+v, %v; want %d in flight", counts, err, count)
	}
}

// A claim is an attempt without an outcome, held by a worker.
func (s queueSuite) claimStoresTheIntent(t *testing.T) {
	p := s.start(t).register()
	added := p.add(NewRequest("example.org"))[0]
	tk := p.claim(added.Number, Epoch.Add(time.Second))
	if tk.Worker != p.number || tk.Status != task.InFlight || tk.AttemptCount != 1 {
		t.Errorf("got %s of worker %d, attempt %d; want the first of %d", tk.Status, tk.Worker, tk.AttemptCount, p.number)
	}
	attempt := task.Attempt{Number: 1, StartedAt: Epoch.Add(time.Second), Outcome: task.Outcome{Exit: task.NoExit}}
	p.expect(t, tk, attempt)
	found, list := p.stored(tk.ID)
	if found.Worker != p.number || found.Nonce != tk.Nonce || list[0].Worker != "worker" {
		t.Errorf("got worker %d %q, nonce %d; want %d \"worker\", %d", found.Worker, list[0].Worker, found.Nonce, p.number,
			tk.Nonce)
	}
	if page, err := p.Page(t.Context(), state.PageFilter{}); err != nil || page.Tasks[0].Last.Worker != "worker" ||
		found.Last.Worker != "worker" {
		t.Errorf("got %q, %v; want the last attempt by \"worker\" in a page and alone", found.Last.Worker, err)
	}
	Must(t, p.settle(tk, Exit(1), RetryIn(time.Minute), Epoch.Add(2*time.Second), nil))
	if found, _ := p.stored(tk.ID); found.Worker != 0 || found.Nonce != 0 {
		t.Errorf("got worker %d, nonce %d of a task that waits, want none", found.Worker, found.Nonce)
	}
	again := p.claim(tk.Number, Epoch.Add(time.Hour))
	if again.Nonce == tk.Nonce || again.AttemptCount != 2 || again.History.Counted != 1 || again.Last.Number != 1 {
		t.Errorf("got attempt %d, history %+v, last %d; want the second with a history", again.AttemptCount, again.History,
			again.Last.Number)
	}
}

func (s queueSuite) aClaimAnswersInOrder(t *testing.T) {
	p := s.start(t).register()
	tasks := p.add(NewRequest("a"), NewRequest("b"), NewRequest("c"), NewRequest("d"))
	_, err := p.Cancel(t.Context(), tasks[3].Number, Epoch)
	Must(t, err)
	p.claim(tasks[2].Number, Epoch)
	asked := []int64{tasks[1].Number, 1 << 40, tasks[0].Number, tasks[1].Number, tasks[2].Number, tasks[3].Number, -1, 0}
	got, err := p.Claim(t.Context(), p.number, asked, Epoch, nil)
	Must(t, err)
	want := []int64{tasks[1].Number, 0, tasks[0].Number, 0, 0, 0, 0, 0}
	for i, tk := range got {
		if (tk == nil) != (want[i] == 0) || tk != nil && tk.Number != want[i] {
			t.Errorf("got %+v in place %d, want number %d", tk, i, want[i])
		}
	}
	if _, attempts := p.stored(tasks[1].ID); len(got) != len(asked) || len(attempts) != 1 {
		t.Errorf("got %d answers, %d attempts; want %d and 1", len(got), len(attempts), len(asked))
	}
	if got, err := p.Claim(t.Context(), p.number, nil, Epoch, nil); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v of no number, want none", got, err)
	}
}

// Only the claimer's clock counts, whichever way it was set.
func (s queueSuite) claimWaitsForTheTime(t *testing.T) {
	p := s.start(t).register()
	tk := p.add(due("example.org", "", time.Minute))[0]
	early := func(now time.Time) {
		t.Helper()
		got, err := p.Claim(t.Context(), p.number, []int64{tk.Number}, now, nil)
		if err != nil || got[0] != nil {
			t.Errorf("got %+v, %v at %v; want nothing before its time", got[0], err, now)
		}
	}
	early(Epoch)
	early(Epoch.Add(time.Minute - time.Microsecond))
	early(Epoch.AddDate(-1, 0, 0))
	flying := p.claim(tk.Number, Epoch.AddDate(1, 0, 0))
	Must(t, p.settle(flying, Exit(1), RetryIn(time.Hour), Epoch.AddDate(1, 0, 0), nil))
	early(Epoch.Add(time.Minute)) // the clock was set back
	early(Epoch.AddDate(1, 0, 0))
	p.claim(tk.Number, Epoch.AddDate(1, 0, 0).Add(time.Hour))
}

// What the claimer is not ready for stays as it is. It sees the last attempt.
func (s queueSuite) whatIsNotReadyIsNotClaimed(t *testing.T) {
	p := s.start(t).register()
	tasks := p.add(due("example.org", "", 0), due("example.org", "", 0))
	flying := p.claim(tasks[0].Number, Epoch)
	Must(t, p.settle(flying, Exit(1), RetryIn(time.Second), Epoch, nil))
	now := Epoch.Add(time.Minute)
	got, err := p.Claim(t.Context(), p.number, []int64{tasks[0].Number, tasks[1].Number}, now,
		func(tk *task.Task) bool { return tk.Last.Number == 0 })
	Must(t, err)
	if got[0] != nil || got[1] == nil {
		t.Errorf("got %+v and %+v, want the second alone", got[0], got[1])
	}
	if tk, attempts := p.stored(tasks[0].ID); tk.Status != task.Pending || tk.AttemptCount != 1 || len(attempts) != 1 {
		t.Errorf("got %s with %d attempts, %d stored; want it as it was", tk.Status, tk.AttemptCount, len(attempts))
	}
	p.claim(tasks[0].Number, now)
}

// The end of a task whose budget has run out while it waited is left to its claimer.
func (s queueSuite) aBudgetThatIsOverIsNotClaimed(t *testing.T) {
	p := s.start(t).register()
	tk := NewRequest("example.org")
	tk.Policy.Budget = time.Minute
	tk = p.add(tk)[0]
	now := Epoch.Add(time.Hour)
	got, err := p.Claim(t.Context(), p.number, []int64{tk.Number}, now, func(*task.Task) bool { return false })
	Must(t, err)
	if got[0] == nil || got[0].Nonce != 0 || got[0].AttemptCount != 0 {
		t.Fatalf("got %+v, want the task without a nonce", got[0])
	}
	if _, attempts := p.stored(tk.ID); len(attempts) != 0 {
		t.Errorf("got %d attempts, want none", len(attempts))
	}
	Must(t, p.settleEnd(got[0], Exhausted, now))
	want := *tk
	want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = task.Exhausted, task.ReasonBudget, now, time.Time{}
	p.expect(t, &want)
	if err := p.settleEnd(got[0], Exhausted, now); err != nil {
		t.Errorf("got %v the second time, want no error", err)
	}
}
