package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

func queuedRequest(i int) *task.Task {
	t := storetest.NewTask()
	t.Kind, t.Command, t.Queue = request.Kind, nil, task.QueueWorker
	t.CreatedAt = time.Now()
	t.Target = &request.Request{Method: "POST", URL: fmt.Sprintf("http://127.0.0.1:%d/hook", 8000+i%10), Keyed: true,
		Header: []string{"Content-Type: application/json"}, Body: []request.Part{{Text: make([]byte, 256)}}}
	return t
}

func openQueue(t testing.TB) *Queue {
	q, err := OpenQueue(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// BenchmarkQueue measures the journal's part of an attempt that succeeds.
func BenchmarkQueue(b *testing.B) {
	q, ctx := openQueue(b), context.Background()
	worker, err := q.Register(ctx, state.Worker{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	numbers := make([]int64, b.N)
	for i := 0; i < b.N; i += 500 {
		var tasks []*task.Task
		for k := i; k < min(i+500, b.N); k++ {
			tasks = append(tasks, queuedRequest(k))
		}
		added, err := q.Add(ctx, tasks)
		if err != nil {
			b.Fatal(err)
		}
		for k, a := range added {
			numbers[i+k] = a.Task.Number
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				from := next.Add(64) - 64
				if from >= int64(b.N) {
					return
				}
				tasks, err := q.Claim(ctx, worker, numbers[from:min(from+64, int64(b.N))], time.Now(), nil)
				if err != nil {
					b.Error(err)
					return
				}
				var settled sync.WaitGroup
				for _, t := range tasks {
					settled.Go(func() {
						t.BeginAttempt()
						a := task.Attempt{Number: t.AttemptCount, StartedAt: time.Now(), Outcome: task.Outcome{
							Reply: &task.Reply{Status: 204, Written: 1}, Duration: time.Millisecond,
						}, Decision: task.Decision{Verdict: task.VerdictSucceeded}}
						t.ApplyDecision(a, time.Now())
						if err := q.Settle(ctx, t, a, nil); err != nil {
							b.Error(err)
						}
					})
				}
				settled.Wait()
			}
		})
	}
	group.Wait()
}

// BenchmarkQueueAdd measures durable creates by 16 clients.
func BenchmarkQueueAdd(b *testing.B) {
	q, ctx := openQueue(b), context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if _, err := q.Add(ctx, []*task.Task{queuedRequest(0)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func TestQueue(t *testing.T) {
	storetest.RunQueue(t, func(t *testing.T) func() (state.Queue, error) {
		dir := t.TempDir()
		return func() (state.Queue, error) {
			q, err := OpenQueue(context.Background(), dir)
			if err != nil {
				return nil, err
			}
			return checkedQueue{q, t}, nil
		}
	})
}

// checkedQueue is a queue whose file is checked before it is closed.
type checkedQueue struct {
	*Queue
	t *testing.T
}

func (c checkedQueue) Close() error {
	integrity(c.t, c.Journal)
	return c.Queue.Close()
}

// What could not be synced was not made, and its key is free.
func TestAFailedSyncMakesNothing(t *testing.T) {
	q := openQueue(t)
	synced := q.sync
	tk := queuedRequest(0)
	tk.Payload = "hash"
	q.sync = func() error { return syscall.EIO }
	if _, err := q.Add(t.Context(), []*task.Task{tk}); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want %v", err, syscall.EIO)
	}
	if n := count(t, q.Journal, "tasks"); n != 0 {
		t.Errorf("got %d tasks, want none", n)
	}
	q.sync = synced
	if added, err := q.Add(t.Context(), []*task.Task{tk}); err != nil || added[0].Replayed {
		t.Errorf("got %+v, %v; want a new task", added, err)
	}
}

// A task that was moved, or requeued, between the read and the write of a claim is not begun with what was read.
func TestAClaimIsOfWhatWasRead(t *testing.T) {
	for _, test := range []struct {
		name  string
		moves func(q *Queue, number int64) error
	}{
		{"rescheduled", func(q *Queue, number int64) error {
			_, err := q.Reschedule(t.Context(), number, time.Now().Add(time.Hour))
			return err
		}},
		{"cancelled and requeued", func(q *Queue, number int64) error {
			_, err := q.Cancel(t.Context(), number, time.Now())
			return errors.Join(err, q.Requeue(t.Context(), number, time.Now()))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := openQueue(t)
			added, err := q.Add(t.Context(), []*task.Task{queuedRequest(0)})
			must(t, err)
			due, err := q.dueTasks(t.Context(), []int64{added[0].Task.Number}, time.Now())
			must(t, err)
			must(t, test.moves(q, due[0].Number))
			err = q.submit(t.Context(), false, func(c *conn.Conn) ([]state.Change, error) {
				return nil, q.claimFor(c, due[0], 1, 1, time.Now())
			})
			if !errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v, want %v", err, task.ErrNotOwner)
			}
		})
	}
}

// Two processes that find the same dead worker remove its row once: a new worker may have its number by then.
func TestANewWorkerKeepsItsRow(t *testing.T) {
	q := openQueue(t)
	number, err := q.Register(t.Context(), state.Worker{Name: "old"})
	must(t, err)
	seen, err := q.Journal.ListWorkers(t.Context()) // the system does not tell a process of its own locks
	must(t, err)
	if len(seen) != 1 || seen[0].Gone {
		t.Errorf("got %+v, want that the worker of this process lives", seen)
	}
	old, err := q.ListWorkers(t.Context())
	must(t, err)
	must(t, q.Unregister(t.Context(), number))
	again, err := q.Register(t.Context(), state.Worker{Name: "new"})
	must(t, err)
	q.forgetWorkers() // so that it looks dead, until its own row is read
	must(t, q.bury(t.Context(), old[0]))
	if n := count(t, q.Journal, "workers"); n != 1 || again != number {
		t.Errorf("got %d workers, the new one has number %d; want one with number %d", n, again, number)
	}
}

// A worker is judged by its own time, whatever that of the others is.
func TestDeadByItsOwnTime(t *testing.T) {
	dir := t.TempDir()
	slow, err := OpenQueue(t.Context(), dir)
	must(t, err)
	defer func() { must(t, slow.Close()) }()
	quick, err := OpenQueue(t.Context(), dir)
	must(t, err)
	defer func() { must(t, quick.Close()) }()
	for visibility, want := range map[time.Duration]int{10 * time.Minute: 0, 0: 1, time.Second: 1} {
		number, err := slow.Register(t.Context(), state.Worker{Name: "slow", Visibility: visibility})
		must(t, err)
		added, err := slow.Add(t.Context(), []*task.Task{queuedRequest(0)})
		must(t, err)
		claimed, err := slow.Claim(t.Context(), number, []int64{added[0].Task.Number}, time.Now(), nil)
		must(t, err)
		dead, err := quick.Dead(t.Context(), time.Now().Add(time.Minute), 30*time.Second)
		must(t, err)
		if len(dead) != want {
			t.Errorf("visibility %v: got %+v, want %d dead workers", visibility, dead, want)
		}
		_, err = slow.Cancel(t.Context(), claimed[0].Number, time.Now())
		must(t, err)
		must(t, slow.Unregister(t.Context(), number))
	}
}

// Of two workers that see the end of a budget in the same microsecond, one settles it.
func TestOneEndOfABudget(t *testing.T) {
	q := openQueue(t)
	added, err := q.Add(t.Context(), []*task.Task{queuedRequest(0)})
	must(t, err)
	now := time.Now()
	d := task.Decision{Verdict: task.VerdictExhausted, Reason: task.ReasonBudget}
	first, second := *added[0].Task, *added[0].Task
	first.Move(d, now)
	second.Move(d, now)
	must(t, q.Settle(t.Context(), &first, task.Attempt{Decision: d}, nil))
	must(t, q.Settle(t.Context(), &first, task.Attempt{Decision: d}, nil)) // it does not know whether it was written
	if err := q.Settle(t.Context(), &second, task.Attempt{Decision: d}, nil); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v, want %v", err, task.ErrNotOwner)
	}
}

// An attempt does not stay in flight for ever, not even where nothing is known of its worker.
func TestAnAttemptOfALostWorker(t *testing.T) {
	dir := t.TempDir()
	lost, err := OpenQueue(t.Context(), dir)
	must(t, err)
	number, err := lost.Register(t.Context(), state.Worker{Name: "lost"})
	must(t, err)
	added, err := lost.Add(t.Context(), []*task.Task{queuedRequest(0)})
	must(t, err)
	_, err = lost.Claim(t.Context(), number, []int64{added[0].Task.Number}, time.Now(), nil)
	must(t, err)
	_, err = rawExec(lost.Journal, "DELETE FROM workers")
	must(t, err)
	q, err := OpenQueue(t.Context(), dir)
	must(t, err)
	defer func() { must(t, q.Close()) }()
	rescuer, err := q.Register(t.Context(), state.Worker{Name: "rescuer"})
	must(t, err)
	for _, lives := range []bool{true, false} {
		if !lives {
			must(t, lost.Close())
		}
		dead, err := q.Dead(t.Context(), time.Now(), time.Minute)
		must(t, err)
		if len(dead) != 1 || dead[0].Number != number || dead[0].Stale != lives {
			t.Fatalf("got dead workers %+v, want %d, stale %v", dead, number, lives)
		}
		taken, err := q.TakeOver(t.Context(), rescuer, dead[0], 10, time.Now())
		must(t, err)
		if (len(taken) == 1) == lives {
			t.Errorf("got %d tasks of a worker that lives: %v", len(taken), lives)
		}
	}
}

// The log of a queue stays short while others read, and the writer does not wait for the disk meanwhile.
func TestTheLogOfAQueueIsCopied(t *testing.T) {
	q, ctx := openQueue(t), context.Background()
	length := func() (pages int) {
		must(t, q.conn.Use(func() (err error) {
			pages, _, err = q.conn.Checkpoint("NOOP")
			return err
		}))
		return pages
	}
	body := make([]byte, 60<<10)
	for i := range 3 * queueLog / 15 { // each has 15 pages and some
		added := queuedRequest(i)
		added.Target.(*request.Request).Body[0].Text = body
		_, err := q.Add(ctx, []*task.Task{added})
		must(t, err)
	}
	for length() > queueLog {
		_, err := q.Add(ctx, []*task.Task{queuedRequest(0)})
		must(t, err)
		time.Sleep(time.Millisecond)
	}
	info, err := os.Stat(filepath.Join(q.dir, DatabaseName+walSuffix))
	must(t, err)
	if got, most := info.Size(), int64(longestQueueLog*4096); got >= most {
		t.Errorf("got a log of %d bytes, want less than %d", got, most)
	}
}

// Where few writes come, none waits for others. After a transaction with several, the next one begins a millisecond
// after it, with what has come until then, or as soon as it is full.
func TestBusyTransactionsGather(t *testing.T) {
	for name, tt := range map[string]struct {
		latest  int             // writes in the transaction before, which has just begun
		come    []time.Duration // when further writes come
		want    int             // how many are in the group
		begins  time.Duration   // after the first
		stopped time.Duration   // when the queue is closed; 0: later
	}{
		"few": {latest: busyGroup - 1, come: []time.Duration{groupTime / 2}, want: 1},
		"busy": {latest: busyGroup, come: []time.Duration{groupTime / 4, groupTime / 2, 2 * groupTime}, want: 3,
			begins: groupTime},
		"full":      {latest: busyGroup, come: make([]time.Duration, groupSize+3), want: groupSize},
		"is closed": {latest: busyGroup, stopped: groupTime / 2, want: 1, begins: groupTime / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &Queue{writes: make(chan *queuedWrite), stopped: make(chan struct{}), begun: time.Now(), latest: tt.latest}
				over := make(chan struct{})
				defer close(over)
				for _, after := range tt.come {
					go func() {
						select {
						case <-time.After(after):
						case <-over:
							return
						}
						select {
						case q.writes <- &queuedWrite{}:
						case <-over:
						}
					}()
				}
				if tt.stopped > 0 {
					time.AfterFunc(tt.stopped, func() { close(q.stopped) })
				}
				synctest.Wait()
				begun := time.Now()
				got := q.gather(&queuedWrite{})
				if len(got) != tt.want || time.Since(begun) != tt.begins {
					t.Errorf("got %d writes after %v, want %d after %v", len(got), time.Since(begun), tt.want, tt.begins)
				}
			})
		})
	}
}
