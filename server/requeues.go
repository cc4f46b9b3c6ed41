package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// The statuses of a requeue of many tasks.
const (
	requeueRunning   = state.OperationRunning
	requeueDone      = "done"
	requeueCancelled = "cancelled"
)

const (
	usualRate     = 50
	mostRate      = 10_000
	requeuePage   = 200
	progressEvery = time.Second
)

// requeues gives many dead letters fresh attempts, at a rate. What it has begun is in the store, and goes on after a
// restart.
type requeues struct {
	server *Server
	group  sync.WaitGroup

	mutex   sync.Mutex
	running map[string]context.CancelFunc
}

func newRequeues(s *Server) *requeues {
	return &requeues{server: s, running: map[string]context.CancelFunc{}}
}

// resume goes on with what nobody carries: what was under way when a server ended, or when the store could not be
// written. It stops what another server has cancelled.
func (q *requeues) resume() error {
	q.mutex.Lock()
	ended := maps.Clone(q.running)
	q.mutex.Unlock()
	running, err := q.server.Queue.Operations(context.Background())
	if err != nil {
		return err
	}
	for _, o := range running {
		delete(ended, o.ID)
		q.start(o.ID)
	}
	for _, stop := range ended {
		stop()
	}
	return nil
}

// resumeEvery is how often a server looks for operations whose server has died.
const resumeEvery = 5 * time.Second

// watch resumes now and then, until the server ends.
func (q *requeues) watch() {
	q.group.Go(func() {
		tick := time.NewTicker(resumeEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-q.server.stopped:
				return
			}
			if err := q.resume(); err != nil {
				q.server.Warn(fmt.Errorf("read the requeues: %w", err))
			}
		}
	})
}

// start goes on with an operation until it is done, cancelled, or the server ends. Another server may carry it: then
// this one leaves it alone.
func (q *requeues) start(id string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	q.mutex.Lock()
	_, carried := q.running[id]
	if !carried {
		q.running[id] = func() {
			cancel()
			<-done
		}
	}
	q.mutex.Unlock()
	if carried {
		cancel()
		return
	}
	q.group.Go(func() {
		defer func() {
			cancel()
			close(done)
			q.mutex.Lock()
			delete(q.running, id)
			q.mutex.Unlock()
		}()
		go func() {
			select {
			case <-q.server.stopped:
				cancel()
			case <-done:
			}
		}()
		if err := q.carry(ctx, id); err != nil && ctx.Err() == nil && !errors.Is(err, errRequeueCancelled) {
			q.server.Warn(fmt.Errorf("requeue %s stands still for now: %w", id, err))
		}
	})
}

// carry runs an operation that no other server carries. It is read only then: that server may have ended it.
func (q *requeues) carry(ctx context.Context, id string) error {
	owned, err := q.server.Queue.OwnOperation(ctx, id)
	if !owned || err != nil {
		return err
	}
	o, err := q.server.Queue.Operation(ctx, id)
	if err == nil && o != nil && o.Status == requeueRunning {
		err = q.run(ctx, o)
	}
	return errors.Join(err, q.server.Queue.DisownOperation(id))
}

// cancel stops an operation of this process, and returns when it has written how far it came.
func (q *requeues) cancel(id string) {
	q.mutex.Lock()
	stop := q.running[id]
	q.mutex.Unlock()
	if stop != nil {
		stop()
	}
}

// run requeues task after task, from the newest on. After a restart it begins there again: what was requeued before is
// alive, or died after the operation was made.
func (q *requeues) run(ctx context.Context, o *state.Operation) error {
	p := &pace{every: time.Duration(float64(time.Second) / o.RatePerSecond), now: q.server.Now}
	saved := q.server.Now()
	f := o.Filter
	f.Limit = requeuePage
	for {
		page, err := q.server.Queue.Page(ctx, f)
		if err != nil {
			return q.save(ctx, o, err)
		}
		for _, t := range page.Tasks {
			if t.FinishedAt.After(o.CreatedAt) {
				continue
			}
			if t.Queue == task.QueueNone || runsCommand(t) && !(o.Exec && q.server.AllowExec) {
				o.Skipped++
				continue
			}
			if err := p.wait(ctx); err != nil {
				return q.save(ctx, o, err)
			}
			switch err := q.server.Queue.RequeueDead(context.WithoutCancel(ctx), t, q.server.Now()); {
			case err == nil:
				o.Requeued++
			case q.server.storeProblem(err) != nil:
				return q.save(ctx, o, err)
			default:
				o.Skipped++
			}
			if now := q.server.Now(); now.Sub(saved) >= progressEvery {
				saved = now
				if err := q.save(ctx, o, nil); err != nil {
					return err
				}
			}
		}
		if page.Next == 0 {
			o.Status = requeueDone
			return q.save(ctx, o, nil)
		}
		f.Cursor = page.Next
	}
}

var errRequeueCancelled = errors.New("the requeue was cancelled")

// save writes the progress. Another server may have cancelled the operation meanwhile.
func (q *requeues) save(ctx context.Context, o *state.Operation, failed error) error {
	ctx = context.WithoutCancel(ctx)
	if err := q.server.Queue.PutOperation(ctx, *o); err != nil {
		return errors.Join(failed, err)
	}
	stored, err := q.server.Queue.Operation(ctx, o.ID)
	if err == nil && stored != nil && stored.Status == requeueCancelled {
		failed = errors.Join(failed, errRequeueCancelled)
	}
	return failed
}

// pace spreads steps evenly. What was missed is made up for, but never more than a second's worth.
type pace struct {
	every time.Duration
	next  time.Time
	now   func() time.Time
}

// wait returns when the next step is due.
func (p *pace) wait(ctx context.Context) error {
	now := p.now()
	if p.next.Before(now.Add(-time.Second)) {
		p.next = now
	}
	due := p.next
	p.next = p.next.Add(p.every)
	if err := ctx.Err(); err != nil || !due.After(now) {
		return err
	}
	timer := time.NewTimer(due.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
