package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

// rig is a worker on a queue of its own, with an executor that the test gives.
type rig struct {
	*testing.T
	queue *sqlite.Queue
	late  []time.Duration
	mutex sync.Mutex
}

func newRig(t *testing.T) *rig {
	t.Helper()
	q, err := sqlite.OpenQueue(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return &rig{T: t, queue: q}
}

func (r *rig) Began(_ *task.Task, late time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.late = append(r.late, late)
}
func (r *rig) Ended(*task.Task, task.Attempt) {}
func (r *rig) Warn(err error)                 { r.Errorf("got the warning %v, want none", err) }

// execute is an executor.
type execute func(ctx context.Context, t *task.Task, c runner.Call) task.Outcome

func (e execute) Execute(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	return e(ctx, t, c)
}
func (execute) Flush(*task.Task, <-chan os.Signal) (os.Signal, error) { return nil, nil }
func (execute) HoldsOutput(*task.Task) bool                           { return false }

func (r *rig) worker(c Config, e execute) *Worker {
	c.Queue, c.Observer, c.Random = r.queue, r, rand.Float64
	c.Open = func(*task.Task) (*Execution, error) { return &Execution{Executor: e}, nil }
	return New(c)
}

func queued(host string) *task.Task {
	t := storetest.NewTask()
	t.Kind, t.Command, t.Queue, t.CreatedAt = request.Kind, nil, task.QueueWorker, time.Now()
	t.Target = &request.Request{Method: "POST", URL: "http://" + host + "/", Keyed: true}
	return t
}

func (r *rig) add(tasks ...*task.Task) []state.Added {
	r.Helper()
	added, err := r.queue.Add(r.Context(), tasks)
	if err != nil {
		r.Fatal(err)
	}
	return added
}

var ok = task.Outcome{Reply: &task.Reply{Status: 204, Written: 1}}

func TestDrainCarriesEverything(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		var tasks []*task.Task
		for k := range 100 {
			tasks = append(tasks, queued(fmt.Sprintf("host-%d", (i+k)%7)))
		}
		r.add(tasks...)
	}
	var sent atomic.Int64
	w := r.worker(Config{Drain: DrainAll}, func(context.Context, *task.Task, runner.Call) task.Outcome {
		sent.Add(1)
		return ok
	})
	if err := w.Run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	counts, err := r.queue.Counts(t.Context(), time.Now())
	if got := counts.ByStatus[task.Succeeded]; err != nil || got != 2000 || sent.Load() != 2000 {
		t.Errorf("got %d that succeeded of %d sent, %v; want 2000 of 2000", got, sent.Load(), err)
	}
}

func TestAddedLater(t *testing.T) {
	r := newRig(t)
	began := make(chan string, 10)
	w := r.worker(Config{}, func(_ context.Context, t *task.Task, _ runner.Call) task.Outcome {
		began <- t.ID
		return ok
	})
	stop, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(stop, t.Context()) }()
	for range 5 {
		added := r.add(queued("host"))
		if got, want := <-began, added[0].Task.ID; got != want {
			t.Errorf("got the attempt of %s, want that of %s", got, want)
		}
	}
	later := queued("host")
	later.NextAttemptAt = time.Now().Add(200 * time.Millisecond)
	r.add(later)
	if <-began; time.Now().Before(later.NextAttemptAt) {
		t.Error("got an early attempt, want one at its time")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	t.Log(r.late)
}
