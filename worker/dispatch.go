package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

const (
	claimMost   = 64 // tasks claimed at once
	claimsMost  = 4  // claims under way
	storePause  = time.Second
	loadAgain   = horizon / 2
	tidyEvery   = time.Minute
	drainLook   = 100 * time.Millisecond
	longestWait = 30 * time.Second // a timer stops while the machine sleeps: the clock is read again
	// claimAhead is how much earlier than due a task is claimed, as long as half of the slots are free: the claim takes
	// a millisecond or more, and so does a timer of a process that sleeps. The attempt begins when it is due.
	claimAhead = 5 * time.Millisecond
)

// dispatch claims what is due, until stop ends or the queue is drained. Everything that it changes belongs to this
// goroutine alone; what takes time runs beside it, and comes back as a function in answers.
func (w *Worker) dispatch(stop, ctx context.Context, changes <-chan state.Change) {
	w.reloadTargets(ctx)
	w.load(ctx)
	reload, tidy := time.NewTicker(loadAgain), time.NewTicker(tidyEvery)
	defer reload.Stop()
	defer tidy.Stop()
	var drain <-chan time.Time
	if w.Drain != DrainNever {
		look := time.NewTicker(drainLook)
		defer look.Stop()
		drain = look.C
	}
	for {
		wait := w.claimDue(ctx)
		timer, asleep := time.NewTimer(wait), time.Now()
		select {
		case <-stop.Done():
			timer.Stop()
			return
		case <-timer.C:
		case c, open := <-changes:
			if !open {
				return
			}
			w.apply(ctx, c)
			for range len(changes) {
				w.apply(ctx, <-changes)
			}
		case s := <-w.freed:
			w.release(s)
			for range len(w.freed) {
				w.release(<-w.freed)
			}
		case answer := <-w.answers:
			answer()
		case <-reload.C:
			w.load(ctx)
		case <-tidy.C:
			w.plan.tidy()
		case <-drain:
			if w.drained(ctx) {
				timer.Stop()
				return
			}
			if w.slots == w.Concurrency && time.Since(w.anew) > 50*drainLook { // what a resume had may be free
				w.startAnew(ctx)
			}
		}
		timer.Stop()
		if time.Now().Round(0).Sub(asleep.Round(0)) > wait+stoodStill { // changes may be lost
			w.startAnew(ctx)
		}
	}
}

// stoodStill is how much later than it should a process goes on that was stopped, or whose machine slept.
const stoodStill = 2 * time.Second

func (w *Worker) release(s slot) {
	w.slots++
	w.plan.done(s.lane, s.class, s.asked, s.replied)
}

// claimDue begins claims of what is due, as far as slots are free, and returns how long there is nothing to do.
func (w *Worker) claimDue(ctx context.Context) time.Duration {
	now, ahead := time.Now(), time.Duration(0)
	if w.slots > w.Concurrency/2 {
		ahead = claimAhead
	}
	w.plan.advance(now.Add(ahead))
	wait := longestWait
	if w.again.After(now) {
		return w.again.Sub(now)
	}
	for w.slots > 0 && (w.claiming == 0 || w.slots >= claimMost/2 && w.claiming < claimsMost) {
		var items []state.Item
		var classes []int
		var from time.Time
		begins := now // the last of the attempts
		for len(items) < min(claimMost, w.slots) {
			item, class, ok, later := w.plan.take(now)
			if from = later; !ok {
				break
			}
			if h := w.held[item.Number]; h != nil {
				h.inPlan = false
			}
			if item.Due.After(begins) {
				begins = item.Due
			}
			items, classes = append(items, item), append(classes, class)
		}
		if !from.IsZero() {
			wait = min(wait, max(time.Millisecond, from.Sub(now)))
		}
		if len(items) == 0 {
			break
		}
		w.slots -= len(items)
		w.claim(ctx, items, classes, begins)
	}
	if len(w.plan.future) > 0 {
		wait = min(wait, max(0, w.plan.future[0].Due.Sub(now)-ahead))
	}
	if w.slots > 0 && !w.loading && w.plan.crowded(now) {
		w.plan.shorten()
	}
	w.loadMore(ctx)
	return wait
}

// claim claims tasks beside the dispatcher, and has them carried.
func (w *Worker) claim(ctx context.Context, items []state.Item, classes []int, now time.Time) {
	w.claiming++
	w.group.Go(func() {
		numbers := make([]int64, len(items))
		for i, item := range items {
			numbers[i] = item.Number
		}
		w.beginClaim()
		defer w.endClaim()
		var tasks []*task.Task
		var err error
		left := map[int64]error{}
		if w.leased(ctx) {
			tasks, err = w.Queue.Claim(ctx, w.number, numbers, now, func(t *task.Task) bool {
				return !w.awaits(t, items[slices.Index(numbers, t.Number)]) && !w.hasLeft(ctx, t, left)
			})
		}
		for i, item := range items {
			s := slot{lane: item.Lane, class: classes[i]}
			if err != nil || tasks == nil || tasks[i] == nil {
				w.freed <- s
				continue
			}
			// What follows the end of a budget would run beside what an attempt has left, as the next one would.
			o := &tasks[i].Options
			if tasks[i].Nonce == 0 && o.OnFailure+o.Exhausted != "" &&
				(w.awaits(tasks[i], item) || w.hasLeft(ctx, tasks[i], left)) {
				w.freed <- s
				continue
			}
			w.hand(ctx, &job{carried: w.begin(tasks[i]), slot: s, due: item.Due})
		}
		w.answers <- func() {
			w.claiming--
			if w.claimed(err); err == nil {
				w.hold(items, left)
			}
			if err != nil || tasks == nil { // what was not claimed is found again
				if err != nil {
					w.warn(fmt.Errorf("claim tasks: %w", err))
				}
				w.again = time.Now().Add(storePause)
				w.startAnew(ctx)
			}
		}
	})
}

// hand gives an attempt to a goroutine that has nothing to do, or to a new one. They are used again, since their stacks
// have grown by then.
func (w *Worker) hand(ctx context.Context, j *job) {
	w.group.Add(1)
	select {
	case w.jobs <- j:
	default:
		go w.work(ctx, j)
	}
}

// work carries one attempt after the other, until there is none for a while.
func (w *Worker) work(ctx context.Context, j *job) {
	idle := time.NewTimer(idleGoroutine)
	defer idle.Stop()
	for {
		w.carry(ctx, j)
		w.free(j)
		w.group.Done()
		idle.Reset(idleGoroutine)
		select {
		case j = <-w.jobs:
		case <-idle.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// idleGoroutine is how long a goroutine waits for another attempt.
const idleGoroutine = 10 * time.Second

// apply takes note of a change of the store.
func (w *Worker) apply(ctx context.Context, c state.Change) {
	switch {
	case c.Lost:
		w.reloadTargets(ctx)
		w.startAnew(ctx)
	case c.Target != "":
		w.reloadTargets(ctx)
	case c.Status == task.Pending:
		item := state.Item{Position: state.Position{Due: c.Due, Number: c.Number}, Lane: c.Lane}
		switch {
		case !w.plan.loaded.Before(item.Position):
			w.plan.push(item, time.Now())
		case w.loading:
			w.missed = append(w.missed, c)
		}
	case c.Status == task.Cancelled:
		w.cancelled(c)
	}
}

// cancelled stops the attempt of a task that was cancelled. That of a claim under way is stopped when it begins.
func (w *Worker) cancelled(c state.Change) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch running := w.running[c.Number]; {
	case running != nil && running.ended: // it is another run that was cancelled, after a requeue
	case running != nil && running.attempt <= c.Attempt && !running.cancelled:
		running.cancelled = true
		running.stop()
	case running == nil && w.claims > 0:
		w.early[c.Number] = c.Attempt
	}
}

// stopCancelled asks the store which of the attempts that run were cancelled: the change that tells may be lost.
func (w *Worker) stopCancelled(ctx context.Context) {
	w.mutex.Lock()
	numbers := slices.Collect(maps.Keys(w.running))
	w.mutex.Unlock()
	if len(numbers) == 0 {
		return
	}
	changes, err := w.Queue.Cancelled(ctx, numbers)
	for _, c := range changes {
		w.cancelled(c)
	}
	if err != nil && ctx.Err() == nil {
		w.warn(fmt.Errorf("read what was cancelled: %w", err))
	}
}

// startAnew forgets what is in memory, and loads it again.
func (w *Worker) startAnew(ctx context.Context) {
	w.group.Go(func() { w.stopCancelled(ctx) })
	w.plan.forget()
	w.generation++
	w.anew = time.Now()
	w.load(ctx)
}

// load reads what is due until the horizon, as far as there is room.
func (w *Worker) load(ctx context.Context) {
	if w.plan.partial = w.plan.size() >= windowMax; w.plan.partial {
		return
	}
	after, until := w.plan.loaded, time.Now().Add(horizon)
	w.read(ctx, func() ([]state.Item, error) { return w.Queue.Waiting(ctx, after, until, nil, pageMax) },
		func(items []state.Item) {
			if w.plan.loaded != after { // memory was full meanwhile, and has lost some of what it had
				w.load(ctx)
				return
			}
			w.plan.partial = len(items) == pageMax
			w.plan.loaded = state.Position{Due: until, Number: 1 << 62}
			if w.plan.partial {
				w.plan.loaded = items[len(items)-1].Position
			}
			now := time.Now()
			for _, item := range items {
				w.plan.push(item, now)
			}
		})
}

// loadMore goes on where memory was full, and feeds a lane that was too long.
func (w *Worker) loadMore(ctx context.Context) {
	if w.loading {
		return
	}
	if w.plan.partial && w.plan.size() < windowMax/2 {
		w.load(ctx)
		return
	}
	l, after, ok := w.plan.nextHungry()
	if !ok {
		return
	}
	limit, until := w.plan.ration(l), time.Now().Add(claimAhead) // as far as a lane may have come
	w.read(ctx, func() ([]state.Item, error) { return w.Queue.Waiting(ctx, after, until, &l.key, limit) },
		func(items []state.Item) { w.plan.feed(l, items, len(items) < limit) })
}

// read reads the queue beside the dispatcher, one read at a time. Changes that come meanwhile are looked at again
// afterwards, as the read may not have seen them.
func (w *Worker) read(ctx context.Context, read func() ([]state.Item, error), apply func([]state.Item)) {
	if w.loading {
		return
	}
	w.loading = true
	generation := w.generation
	w.group.Go(func() {
		items, err := read()
		w.answers <- func() {
			w.loading = false
			missed := w.missed
			w.missed = nil
			switch {
			case err != nil:
				w.retryLater(ctx, err)
			case generation != w.generation:
				w.load(ctx)
			default:
				apply(items)
			}
			for _, c := range missed {
				w.apply(ctx, c)
			}
		}
	})
}

func (w *Worker) retryLater(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	w.claimed(err)
	w.warn(fmt.Errorf("read the queue: %w", err))
	time.AfterFunc(storePause, func() {
		select {
		case w.answers <- func() { w.startAnew(ctx) }: // what a full lane misses is not known any more
		case <-ctx.Done():
		}
	})
}

// reloadTargets reads what bounds the hosts.
func (w *Worker) reloadTargets(ctx context.Context) {
	list, err := w.Queue.Targets(ctx)
	if err != nil {
		w.warn(fmt.Errorf("read the targets: %w", err))
		return
	}
	w.setTargets(list)
}

// setTargets also bounds the commands, which are what goes to no host.
func (w *Worker) setTargets(list []state.TargetSettings) {
	if w.Commands > 0 && !slices.ContainsFunc(list, func(t state.TargetSettings) bool { return t.Host == "" }) {
		list = append(slices.Clone(list), state.TargetSettings{MaxConcurrent: w.Commands})
	}
	w.plan.set(list)
}

// drained reports whether there is nothing to do any more.
func (w *Worker) drained(ctx context.Context) bool {
	if w.slots < w.Concurrency || w.claiming > 0 || w.carries() {
		return false
	}
	var due time.Time
	if w.Drain == DrainDue {
		due = time.Now()
	}
	unfinished, err := w.Queue.Unfinished(ctx, due)
	if err != nil {
		w.warn(fmt.Errorf("read the queue: %w", err))
	}
	return err == nil && !unfinished
}
