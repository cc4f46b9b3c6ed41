package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// What users of other systems complain of, on a journal and with more than one process. The rest stands where it belongs:
// started early and late by seconds (asynq#1071) in TestNeverEarlyAndEarlierAddsFirst, one slow host that holds all slots
// in TestSlowHostDoesNotHoldAllSlots, an overwritten result (river#1302) in TestResultAfterTakeover, limbo after the store
// was away (svix#1844) in TestStoreFailsForAWhile, an ack before the durable write (svix PR#569) in storetest and in
// test/crash, full stores that lose what they have (sidekiq#2883, asynq PR#1171) in TestServiceOnAFullDisk.

// childVariable turns the test binary into a worker that holds its attempts for ever. Its value is the directory.
const childVariable = "RETRY_WORKER_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		hold(dir)
		return
	}
	os.Exit(m.Run())
}

// hold says on stdout which attempts begin.
func hold(dir string) {
	q, err := sqlite.OpenQueue(context.Background(), dir)
	if err != nil {
		panic(err)
	}
	w := New(Config{Queue: q, Random: rand.Float64, Visibility: time.Second, Open: func(*task.Task) (*Execution, error) {
		return &Execution{Executor: execute(func(ctx context.Context, t *task.Task, _ runner.Call) task.Outcome {
			fmt.Println(t.ID, t.AttemptCount)
			<-ctx.Done()
			return ok
		})}, nil
	}})
	if err := w.Run(context.Background(), context.Background()); err != nil {
		panic(err)
	}
}

// holder is the process of a worker that holds its attempts.
type holder struct {
	*exec.Cmd
	began *bufio.Scanner
}

func (r *rig) holder() *holder {
	r.Helper()
	self, err := os.Executable()
	testkit.Must(r, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+r.queue.Dir())
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	testkit.Must(r, err)
	testkit.Must(r, cmd.Start())
	r.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &holder{cmd, bufio.NewScanner(io.Reader(said))}
}

// await returns which attempt begins next. A holder that begins none for long is killed, and ends the test.
func (h *holder) await(t testing.TB) string {
	t.Helper()
	defer time.AfterFunc(20*time.Second, func() { _ = h.Process.Kill() }).Stop()
	if !h.began.Scan() {
		t.Fatal("got the end of the worker, want an attempt")
	}
	return h.began.Text()
}

func (h *holder) kill(t testing.TB) {
	t.Helper()
	testkit.Must(t, h.Process.Kill())
	_ = h.Wait()
}

// carry runs a worker until do returns.
func (r *rig) carry(c Config, e execute, do func()) {
	r.Helper()
	stop, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	w := r.worker(c, e)
	go func() { ended <- w.Run(stop, r.Context()) }()
	do()
	cancel()
	testkit.Must(r, <-ended)
}

func (r *rig) find(id string) *task.Task {
	r.Helper()
	t, err := r.queue.Find(r.Context(), id)
	testkit.Must(r, err)
	return t
}

func (r *rig) ends(id string, want task.Status) *task.Task {
	r.Helper()
	testkit.Eventually(r, fmt.Sprintf("%s of task %s", want, id), func() bool { return r.find(id).Status == want })
	return r.find(id)
}

func succeed(context.Context, *task.Task, runner.Call) task.Outcome { return ok }

// A worker that dies leaves nothing active without a lease (asynq#1144, asynq#1051; river#1258: for 91 days), and takes no
// attempt from a task that has only one (asynq took one in 20 cases of 20).
func TestDeadWorkerLeavesNothingBehind(t *testing.T) {
	testkit.Slow(t, "it kills a process")
	r := newRig(t)
	tk := queued("host")
	tk.Policy.Attempts = 1
	r.add(tk)
	h := r.holder()
	h.await(t)
	r.carry(Config{}, succeed, func() {
		if got := r.find(tk.ID); got.Status != task.InFlight || got.Worker == 0 {
			t.Errorf("got %s of worker %d, want an attempt in flight", got.Status, got.Worker)
		}
		h.kill(t)
		killed := time.Now()
		got := r.ends(tk.ID, task.Succeeded)
		t.Logf("carried by another worker %v after the kill", time.Since(killed).Round(time.Millisecond))
		if got.AttemptCount != 2 {
			t.Errorf("got %d attempts, want the one that was cut off and another", got.AttemptCount)
		}
	})
}

// A task that kills its worker three times in a row is exhausted, and does not go round for ever.
func TestThreeCrashesExhaust(t *testing.T) {
	testkit.Slow(t, "it kills processes")
	r := newRig(t)
	tk := queued("host")
	tk.Policy.Attempts = 1
	r.add(tk)
	for n := range task.MaxCrashes {
		h := r.holder()
		if got, want := h.await(t), fmt.Sprint(tk.ID, " ", n+1); got != want {
			t.Errorf("got the attempt %s, want %s", got, want)
		}
		h.kill(t)
	}
	r.carry(Config{}, succeed, func() {
		if got := r.ends(tk.ID, task.Exhausted); got.Reason != task.ReasonCrashes {
			t.Errorf("got the reason %s, want %s", got.Reason, task.ReasonCrashes)
		}
	})
}

// A worker that is killed again and again has nothing exhausted that had just begun beside others.
func TestBystandersOfCrashesGoOn(t *testing.T) {
	testkit.Slow(t, "it kills processes")
	r := newRig(t)
	first, second := queued("host"), queued("other")
	r.add(first, second)
	for range task.MaxCrashes + 1 {
		h := r.holder()
		h.await(t)
		h.await(t)
		h.kill(t)
	}
	r.carry(Config{}, succeed, func() {
		for _, tk := range []*task.Task{first, second} {
			if got := r.ends(tk.ID, task.Succeeded); got.AttemptCount != task.MaxCrashes+2 || got.History.Crashes != 0 {
				t.Errorf("got %d attempts and %d crashes, want %d and none", got.AttemptCount, got.History.Crashes,
					task.MaxCrashes+2)
			}
		}
	})
}

// What counts against an attempt is the death of the worker that had it alone, or for longer than a second.
func TestCrashOf(t *testing.T) {
	tests := map[string]struct {
		began, found, renewed int // milliseconds after the worker has registered
		tasks                 int
		blamed                bool
	}{
		"just begun":                        {began: 60000, found: 60500, renewed: 55000, tasks: 2},
		"for a second":                      {began: 60000, found: 61000, renewed: 55000, tasks: 2},
		"for longer":                        {began: 60000, found: 61001, renewed: 55000, tasks: 2, blamed: true},
		"alone":                             {began: 60000, found: 60500, renewed: 55000, tasks: 1, blamed: true},
		"died at its start, found late":     {began: 100, found: 3600000, tasks: 2},
		"alone, died at its start":          {began: 100, found: 3600000, tasks: 1, blamed: true},
		"begun by another one":              {began: -60000, found: 1000, tasks: 2},
		"the last one begun by another one": {began: -60000, found: 1000, tasks: 1},
		"begun by one that renewed":         {began: 2000, found: 60000, renewed: 1000, tasks: 2, blamed: true},
	}
	at := func(milliseconds int) time.Time { return noon.Add(time.Duration(milliseconds) * time.Millisecond) }
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tk := queued("host")
			tk.Last = task.Attempt{Number: 1, StartedAt: at(test.began)}
			dead := state.Worker{Tasks: test.tasks, StartedAt: noon, RenewedAt: at(test.renewed)}
			o := crashOf(tk, dead, at(test.found))
			if !o.IsCrash() || o.IsBystander() == test.blamed {
				t.Errorf("got %+v, want a crash that counts: %v", o, test.blamed)
			}
			gone := crashOf(tk, state.Worker{Tasks: test.tasks}, tk.Last.StartedAt.Add(time.Minute)) // its row is gone
			if gone.IsBystander() {
				t.Errorf("got %+v of a worker without a row, want a crash that counts", gone)
			}
		})
	}
}

// An attempt may take longer than the lease, which is renewed meanwhile: nothing is sent twice (svix PR#2181), and neither
// is a batch that was claimed at once.
func TestAttemptLongerThanTheLease(t *testing.T) {
	testkit.Slow(t, "it waits for leases")
	r := newRig(t)
	for range 50 {
		r.add(queued("host"))
	}
	other, err := sqlite.OpenQueue(t.Context(), r.queue.Dir())
	testkit.Must(t, err)
	defer func() { testkit.Must(t, other.Close()) }()
	var mutex sync.Mutex
	sent := map[string]int{}
	slow := func(_ context.Context, tk *task.Task, _ runner.Call) task.Outcome {
		mutex.Lock()
		sent[tk.ID]++
		mutex.Unlock()
		time.Sleep(1200 * time.Millisecond)
		return ok
	}
	r.carry(Config{Visibility: 300 * time.Millisecond, PerHost: 25, Concurrency: 25}, slow, func() {
		second := &rig{T: r.T, queue: other}
		second.carry(Config{Visibility: 300 * time.Millisecond, PerHost: 25, Concurrency: 25}, slow, func() {
			testkit.Eventually(t, "the end of all tasks", func() bool {
				c, err := r.queue.Counts(t.Context(), time.Now())
				testkit.Must(t, err)
				return c.ByStatus[task.Succeeded] == 50
			})
		})
	})
	for id, times := range sent {
		if times != 1 {
			t.Errorf("task %s: got %d requests, want 1", id, times)
		}
	}
}

// A requeued task has as many attempts as a new one: of SQS people say that it keeps the old count, and dies at once.
func TestRequeuedTaskHasFreshAttempts(t *testing.T) {
	r := newRig(t)
	tk := queued("host")
	tk.Policy.Attempts = 2
	spec, err := backoff.Parse("constant:0", "none")
	testkit.Must(t, err)
	tk.Policy.Backoff = spec
	r.add(tk)
	refused := task.Outcome{Exit: 1, Reply: &task.Reply{Status: 500, Default: task.Eligibility{Class: task.ClassRetryable}}}
	r.carry(Config{}, func(context.Context, *task.Task, runner.Call) task.Outcome { return refused }, func() {
		if got := r.ends(tk.ID, task.Exhausted); got.AttemptCount != 2 {
			t.Errorf("got %d attempts, want 2", got.AttemptCount)
		}
		testkit.Must(t, r.queue.Requeue(t.Context(), r.find(tk.ID).Number, time.Now()))
		testkit.Eventually(t, "two more attempts", func() bool {
			got := r.find(tk.ID)
			return got.AttemptCount == 4 && got.Status == task.Exhausted
		})
		if got := r.find(tk.ID).IdempotencyKey; got != tk.IdempotencyKey {
			t.Errorf("got the key %s, want %s as before", got, tk.IdempotencyKey)
		}
	})
}

// The key of a task that was pruned is free again, and its row is gone: asynq#730 is about keys that stay.
func TestRetentionLeavesNoKeys(t *testing.T) {
	r := newRig(t)
	first := queued("host")
	first.Payload = "one"
	r.add(first)
	r.carry(Config{}, succeed, func() { r.ends(first.ID, task.Succeeded) })
	_, _, err := r.queue.Prune(t.Context(), state.Retention{Before: time.Now().Add(time.Hour), Rows: 100})
	testkit.Must(t, err)
	if _, err := r.queue.Find(t.Context(), first.ID); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v of a pruned task, want %v", err, state.ErrNotFound)
	}
	second := queued("host")
	second.IdempotencyKey, second.Payload = first.IdempotencyKey, "another"
	if added := r.add(second); added[0].Replayed {
		t.Error("got the old task for a key whose task was pruned, want a new one")
	}
}

// A worker that can claim nothing for some seconds says so, until it can again.
func TestAWorkerThatCannotClaimIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		w, stop := m.run(Config{}, sleeper(0, ok))
		m.set(func() { m.down = errDown })
		m.add(true, hosts(1, "host")...)
		time.Sleep(storePause)
		if !w.Alive() {
			t.Error("got dead after a failure, want alive: it may be one alone")
		}
		time.Sleep(2 * stuckAfter)
		if w.Alive() {
			t.Error("got alive, and it has claimed nothing for seconds")
		}
		m.set(func() { m.down = nil })
		time.Sleep(2 * storePause)
		if !w.Alive() || m.count(task.Succeeded) != 1 {
			t.Errorf("got alive %v and %d that succeeded, want both", w.Alive(), m.count(task.Succeeded))
		}
		stop()
	})
}
