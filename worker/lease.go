package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// keepLease renews the lease, and stops the attempts whose lease is lost: another worker may have begun them again. It
// stops those that were cancelled, too.
func (w *Worker) keepLease(ctx context.Context) {
	tick := time.NewTicker(min(bystanderMost, w.Visibility/3)) // the first renewal is for crashOf
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tick.Reset(w.Visibility / 3)
		if !w.renew(ctx) && ctx.Err() == nil && time.Since(time.Unix(0, w.renewed.Load())) > w.Visibility*2/3 {
			w.stopAll((*carried).isSent)
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
		w.stopAll((*carried).isSent)
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
	last time.Time // of the looks
	gaps []gap     // each shorter than the one before
}

// gap is a time without a look of this process.
type gap struct {
	end    time.Time
	length time.Duration
}

// look notes the time of a look. A gap counts for workers that renew more often, for half of their own time.
func (p *patience) look(now time.Time) {
	length := (now.Round(0).Sub(p.last.Round(0)) - rescueInterval).Abs()
	if !p.last.IsZero() {
		p.gaps = slices.DeleteFunc(p.gaps, func(g gap) bool { return g.length <= length || now.Sub(g.end) > 2*g.length })
		p.gaps = append(p.gaps, gap{now, length})
	}
	p.last = now
}

// over reports whether a worker with this visibility timeout has had its time to renew at the last look.
func (p *patience) over(visibility time.Duration) bool {
	return !slices.ContainsFunc(p.gaps, func(g gap) bool {
		return g.length > visibility/3 && p.last.Before(g.end.Add(visibility/2))
	})
}

// rescue takes over the attempts of workers that have died.
func (w *Worker) rescue(ctx context.Context) {
	var p patience
	for ctx.Err() == nil && !w.isStopping() { // it would have no time for the alerts
		now := time.Now()
		p.look(now)
		dead, err := w.Queue.Dead(ctx, now, w.Visibility)
		for _, d := range dead {
			if err == nil && (!d.Stale || p.over(cmp.Or(d.Visibility, w.Visibility))) {
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
		now := time.Now()
		tasks, err := w.Queue.TakeOver(ctx, w.number, dead, takenAtOnce, now)
		if err != nil || len(tasks) == 0 {
			return err
		}
		var settled sync.WaitGroup
		for _, t := range tasks {
			t.Last.Outcome = crashOf(t, dead, now)
			settled.Go(func() { w.settleCrashed(ctx, t) })
		}
		settled.Wait()
	}
}

// bystanderMost is how long a dead worker may have had an attempt that its death does not count against.
const bystanderMost = time.Second

// crashOf is the outcome of an attempt that a dead worker had. A worker that is killed again and again must not have
// all exhausted that it has in hand: its death counts against an attempt that was alone, or in hand for long. One
// that the dead worker had only taken over from another one has not killed it.
func crashOf(t *task.Task, dead state.Worker, now time.Time) task.Outcome {
	o, began := t.Crashed(), t.Last.StartedAt
	if !dead.StartedAt.IsZero() && dead.RenewedAt.Equal(dead.StartedAt) { // it died before it renewed
		if latest := dead.StartedAt.Add(bystanderMost); latest.Before(now) {
			now = latest
		}
	}
	takenOver := began.Before(dead.StartedAt)
	if takenOver || dead.Tasks > 1 && now.Sub(began) <= bystanderMost {
		o.Duration = min(max(time.Microsecond, now.Sub(began)), bystanderMost)
	}
	return o
}

// settleCrashed writes what an attempt without an outcome comes to. An end that something follows waits for what the
// attempt has left, as the next one would.
func (w *Worker) settleCrashed(ctx context.Context, t *task.Task) {
	a := w.decideCrashed(t)
	if !a.Decision.Verdict.Status().Finished() || t.Options.OnFailure+t.Options.Exhausted+t.Options.Ping == "" {
		t.ApplyDecision(a, time.Now())
		if w.settle(ctx, t, a) == nil && t.Status.Finished() { // else it has warned
			_ = w.Queue.CancelNested(ctx, t, time.Time{}, time.Now())
		}
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.stopping { // then who rescues this worker's tasks settles it
		return
	}
	j := &job{carried: &carried{task: t, attempt: t.AttemptCount, signals: make(chan os.Signal, 2)}}
	w.running[t.Number] = j.carried
	w.group.Go(func() {
		defer w.end(j)
		if w.awaitLeft(ctx, j) {
			w.endCrashed(ctx, j)
		}
	})
}

func (w *Worker) decideCrashed(t *task.Task) task.Attempt {
	a := t.Last
	a.Decision = task.Decide(&t.Policy, t.History, a.Outcome, time.Now(), w.Random)
	return a
}

// awaitLeft waits until nothing of an attempt runs, or until its task is cancelled. It returns false where it is to
// stop.
func (w *Worker) awaitLeft(ctx context.Context, j *job) bool {
	for pause := time.Duration(0); w.Left != nil; pause = min(2*pause, leftMost) {
		err := w.Left(ctx, j.task)
		if err == nil {
			break
		}
		if pause == 0 {
			w.warn(err)
			pause = leftPause / 2
		}
		select {
		case <-time.After(pause):
		case <-j.signals:
			w.mutex.Lock()
			defer w.mutex.Unlock()
			return j.cancelled // which is told to the store
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (w *Worker) endCrashed(ctx context.Context, j *job) {
	t, a := j.task, w.decideCrashed(j.task)
	t.ApplyDecision(a, time.Now())
	if (&journal{w, ctx, j}).settleJob(t, a) != nil { // which warns
		return
	}
	_ = w.Queue.CancelNested(ctx, t, time.Time{}, time.Now())
	r, done := w.open(ctx, j)
	defer done()
	r.Finish(ctx, t, runner.Result{Decision: a.Decision, Outcome: a.Outcome})
}
