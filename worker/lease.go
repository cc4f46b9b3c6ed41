package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// keepLease renews the lease, and stops the attempts whose lease is lost: another worker may have begun them again. It
// stops those that were cancelled, too.
func (w *Worker) keepLease(ctx context.Context) {
	tick := time.NewTicker(w.Visibility / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !w.renew(ctx) && ctx.Err() == nil && time.Since(time.Unix(0, w.renewed.Load())) > w.Visibility*2/3 {
			w.stopAll((*carried).isRequest)
		}
		w.stopCancelled(ctx)
	}
}

// renew renews the lease, and reports whether it was held all the time.
func (w *Worker) renew(ctx context.Context) bool {
	now := time.Now()
	err := w.Queue.Renew(ctx, w.number, now)
	lost := errors.Is(err, state.ErrLeaseLost)
	if lost { // before leased says that it is held again
		w.stopAll((*carried).isRequest)
	}
	if err == nil || lost {
		w.renewed.Store(now.UnixNano())
	}
	if err != nil && ctx.Err() == nil {
		w.warn(fmt.Errorf("renew the worker's lease: %w", err))
	}
	return err == nil
}

// leased reports whether no other worker can hold this one for dead. A process that stood still renews first.
func (w *Worker) leased(ctx context.Context) bool {
	return time.Since(time.Unix(0, w.renewed.Load())) < w.Visibility*2/3 || w.renew(ctx)
}

// rescueInterval is how often a worker looks for dead ones.
const rescueInterval = 500 * time.Millisecond

// patience says whether workers that live and do not renew may be taken for stopped. Where this process stood still
// too, or the clock was set, they get the time to renew.
type patience struct {
	visibility  time.Duration
	last, until time.Time
}

func (p *patience) over(now time.Time) bool {
	gap := now.Round(0).Sub(p.last.Round(0))
	if !p.last.IsZero() && (gap < 0 || gap > p.visibility/3+rescueInterval) {
		p.until = now.Add(p.visibility / 2)
	}
	p.last = now
	return !now.Before(p.until)
}

// rescue takes over the attempts of workers that have died.
func (w *Worker) rescue(ctx context.Context) {
	p := patience{visibility: w.Visibility}
	for ctx.Err() == nil && !w.isStopping() { // it would have no time for the alerts
		now := time.Now()
		over := p.over(now)
		dead, err := w.Queue.Dead(ctx, now, w.Visibility)
		for _, d := range dead {
			if err == nil && (over || !d.Stale) {
				err = w.takeOver(ctx, d)
			}
		}
		if err != nil && ctx.Err() == nil {
			w.warn(fmt.Errorf("look for dead workers: %w", err))
		}
		select {
		case <-time.After(rescueInterval):
		case <-ctx.Done():
		}
	}
}

func (w *Worker) isStopping() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.stopping
}

// takenAtOnce is how many attempts of a dead worker are taken over in one transaction.
const takenAtOnce = 500

// takeOver settles the attempts of a dead worker: they have no outcome.
func (w *Worker) takeOver(ctx context.Context, dead state.Worker) error {
	for {
		tasks, err := w.Queue.TakeOver(ctx, w.number, dead, takenAtOnce, time.Now())
		if err != nil || len(tasks) == 0 {
			return err
		}
		var settled sync.WaitGroup
		for _, t := range tasks {
			settled.Go(func() { w.settleCrashed(ctx, t) })
		}
		settled.Wait()
	}
}

// settleCrashed writes what an attempt without an outcome comes to. One that ends the task has its alerts.
func (w *Worker) settleCrashed(ctx context.Context, t *task.Task) {
	now := time.Now()
	a := t.Last
	a.Outcome = t.Crashed()
	a.Decision = task.Decide(&t.Policy, t.History, a.Outcome, now, w.Random)
	t.ApplyDecision(a, now)
	if !t.Status.Finished() || t.Options.FinalHook(t.Status)+t.Options.Ping == "" {
		_ = w.settle(ctx, t, a) // which warns
		return
	}
	j := &job{carried: w.begin(t)}
	(&journal{w, ctx, j}).hook(t, a.Decision)
	err := w.settle(ctx, t, a)
	w.mutex.Lock()
	alerts := err == nil && !w.stopping
	if alerts {
		w.group.Add(1) // before finish waits
	}
	w.mutex.Unlock()
	if !alerts {
		w.end(j)
		return
	}
	go func() {
		defer w.group.Done()
		defer w.end(j)
		r, done := w.open(ctx, j)
		defer done()
		r.Finish(ctx, t, runner.Result{Decision: a.Decision, Outcome: a.Outcome})
	}()
}
