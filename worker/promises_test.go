package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// sleeper is an attempt that takes a time, unless a signal or the context ends it.
func sleeper(takes time.Duration, o task.Outcome) execute {
	return func(ctx context.Context, _ *task.Task, c runner.Call) task.Outcome {
		select {
		case <-time.After(takes):
			return o
		case sig := <-c.Signals:
			return task.Outcome{Exit: 1, Stop: sig, Reply: &task.Reply{Default: task.Eligibility{Class: task.ClassRetryable}}}
		case <-ctx.Done():
			return task.Outcome{Exit: 1, Error: task.ErrorTimeout, Reply: &task.Reply{}}
		}
	}
}

// hosts queues tasks to a host.
func hosts(n int, host string) (tasks []*task.Task) {
	for range n {
		t := queued(host)
		t.Policy.Attempts, t.Policy.Timeout = 2, time.Minute
		tasks = append(tasks, t)
	}
	return tasks
}

func TestNeverEarlyAndEarlierAddsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		later := hosts(1, "later")
		later[0].NextAttemptAt = time.Now().Add(time.Minute)
		m.add(false, later...)
		var b begun
		_, stop := m.run(Config{Observer: &b}, sleeper(0, ok))
		synctest.Wait()
		sooner := hosts(1, "sooner")
		sooner[0].NextAttemptAt = time.Now().Add(time.Second)
		m.add(true, sooner...)
		time.Sleep(2 * time.Second)
		if b.latest("sooner") != 0 || b.times(1) != 0 {
			t.Errorf("got late %v, the later one %d times, want 0 and 0", b.latest("sooner"), b.times(1))
		}
		time.Sleep(time.Minute)
		stop()
		if late, ran := b.latest("later"), b.times(1); late != 0 || ran != 1 {
			t.Errorf("got the later one %d times, late by %v, want once and 0", ran, late)
		}
	})
}

// What a claim takes makes no task late, as long as half of the slots are free.
func TestTasksAreClaimedAhead(t *testing.T) {
	for busy, want := range map[int]time.Duration{1: 0, 2: claimAhead / 2} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t)
			m.took = claimAhead / 2
			scheduled := hosts(1, "scheduled")
			scheduled[0].NextAttemptAt = time.Now().Add(time.Minute)
			m.add(false, append(hosts(busy, "busy"), scheduled...)...)
			var b begun
			send := func(ctx context.Context, tk *task.Task, c runner.Call) task.Outcome {
				if tk.Host() == "busy" {
					return sleeper(time.Hour, ok)(ctx, tk, c)
				}
				return sleeper(0, ok)(ctx, tk, c)
			}
			_, stop := m.run(Config{Concurrency: 4, PerHost: 4, Observer: &b}, send)
			time.Sleep(50 * time.Second)
			for n := 1; n <= busy; n++ {
				if b.times(int64(n)) != 1 {
					t.Errorf("got busy task %d begun %d times, want once", n, b.times(int64(n)))
				}
			}
			time.Sleep(11 * time.Second)
			if late, ran := b.latest("scheduled"), b.times(int64(busy+1)); late != want || ran != 1 {
				t.Errorf("%d of 4 slots are busy: got %d attempts, late by %v, want one and %v", busy, ran, late, want)
			}
			stop()
		})
	}
}

// A clock that is set back makes nothing early, and one that is set forward does not leave tasks behind.
func TestRescheduledTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		moved := hosts(2, "host")
		moved[0].NextAttemptAt = time.Now().Add(time.Hour)
		moved[1].NextAttemptAt = time.Now().Add(time.Second)
		m.add(false, moved...)
		var b begun
		_, stop := m.run(Config{Observer: &b}, sleeper(0, ok))
		synctest.Wait()
		m.move(1, 2*time.Second)
		m.move(2, time.Hour)
		time.Sleep(3 * time.Second)
		if b.times(1) != 1 || b.times(2) != 0 || b.latest("host") != 0 {
			t.Errorf("got %d and %d, late by %v, want the first alone, on time", b.times(1), b.times(2), b.latest("host"))
		}
		time.Sleep(2 * time.Hour)
		stop()
		if b.times(2) != 1 {
			t.Errorf("got the second %d times, want once", b.times(2))
		}
	})
}

// A command that is told twice to stop is killed: an attempt that goes on after a cancel is told once, however often
// the store is asked.
func TestACancelIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, hosts(1, "host")...)
		told := 0
		_, stop := m.run(Config{}, func(_ context.Context, _ *task.Task, c runner.Call) task.Outcome {
			for end := time.After(time.Minute); ; {
				select {
				case <-c.Signals:
					told++
				case <-end:
					return task.Outcome{}
				}
			}
		})
		time.Sleep(time.Second)
		m.cancel(1)
		time.Sleep(2 * time.Minute)
		stop()
		if told != 1 {
			t.Errorf("told %d times, want once", told)
		}
	})
}

// The attempt of a task that is cancelled is stopped, also where its claim is under way, and an attempt that follows a
// requeue is not.
func TestCancelledInFlight(t *testing.T) {
	for _, when := range []string{"running", "unheard", "during the claim", "of an earlier attempt"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.took = time.Second
				m.add(false, hosts(1, "host")...)
				began := make(chan int, 10)
				w, stop := m.run(Config{}, func(ctx context.Context, tk *task.Task, c runner.Call) task.Outcome {
					began <- tk.AttemptCount
					return sleeper(50*time.Second, ok)(ctx, tk, c)
				})
				switch when {
				case "running":
					<-began
					m.cancel(1)
				case "unheard":
					<-began
					m.cancelUnheard(1)
				case "during the claim":
					time.Sleep(time.Second / 2)
					m.tell(state.Change{Number: 1, Status: task.Cancelled, Attempt: 1})
				case "of an earlier attempt":
					<-began
					m.tell(state.Change{Number: 1, Status: task.Cancelled, Attempt: 0})
				}
				time.Sleep(20 * time.Second)
				stopped := when == "running" || when == "unheard"
				if got := w.Running(); stopped && got != 0 || when == "of an earlier attempt" && got != 1 {
					t.Errorf("got %d attempts that run", got)
				}
				time.Sleep(time.Minute)
				stop()
				switch first := m.settled; when {
				case "running", "unheard":
					if got := m.tasks[1].Status; got != task.Cancelled || len(first) > 0 {
						t.Errorf("got %s, want the late result refused", got)
					}
				case "during the claim":
					if len(first) == 0 || first[0].Decision.Verdict != task.VerdictInterrupted {
						t.Errorf("got %+v, want an attempt that did not begin", first)
					}
				default:
					if got := m.tasks[1].Status; got != task.Succeeded {
						t.Errorf("got %s, want %s", got, task.Succeeded)
					}
				}
			})
		})
	}
}

func TestGraceAndSecondSignal(t *testing.T) {
	tests := map[string]struct {
		takes  time.Duration
		second time.Duration // after the first; 0 for none
		ends   time.Duration
		want   task.Status
		deaf   bool
	}{
		"ends in time":  {takes: 20 * time.Second, ends: 19 * time.Second, want: task.Succeeded},
		"cut off":       {takes: time.Hour, ends: 25 * time.Second, want: task.Pending},
		"second signal": {takes: time.Hour, second: 3 * time.Second, ends: 3 * time.Second, want: task.Pending},
		"deaf to TERM":  {takes: time.Hour, deaf: true, second: 3 * time.Second, ends: 8 * time.Second, want: task.Pending},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.add(false, hosts(1, "host")...)
				stop, cancelStop := context.WithCancel(context.Background())
				kill, cancelKill := context.WithCancel(context.Background())
				defer cancelKill()
				e := sleeper(test.takes, ok)
				if test.deaf {
					e = func(ctx context.Context, tk *task.Task, c runner.Call) task.Outcome {
						<-c.Signals
						return sleeper(test.takes, ok)(context.WithoutCancel(ctx), tk, c)
					}
				}
				w := New(Config{Queue: m, Random: rand.Float64, Grace: 25 * time.Second,
					Open: func(*task.Task) (*Execution, error) { return &Execution{Executor: e}, nil }})
				ended := make(chan error, 1)
				go func() { ended <- w.Run(stop, kill) }()
				time.Sleep(time.Second)
				cancelStop()
				m.add(true, hosts(1, "another")...)
				told := time.Now()
				if test.second > 0 {
					time.AfterFunc(test.second, cancelKill)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if got := time.Since(told); got != test.ends {
					t.Errorf("got the end after %v, want %v", got, test.ends)
				}
				if got := m.tasks[1].Status; got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
				if h := m.tasks[1].History; test.want == task.Pending && (h.Counted != 0 || h.Crashes != 0) {
					t.Errorf("got %+v, want no attempt used up", h)
				}
				if got := m.tasks[2].AttemptCount; got != 0 {
					t.Errorf("got %d attempts of what came after the stop, want 0", got)
				}
			})
		})
	}
}

// What an earlier attempt has left running is waited for without an attempt or a slot, and is told once.
func TestWhatIsLeftIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, hosts(2, "host")...)
		var b begun
		var looks atomic.Int64
		until := time.Now().Add(time.Minute)
		left := func(_ context.Context, tk *task.Task) error {
			if tk.Number != 1 {
				return nil
			}
			if looks.Add(1); time.Now().Before(until) {
				return errors.New("something runs")
			}
			return nil
		}
		_, stop := m.run(Config{Observer: &b, Left: left, Concurrency: 1}, sleeper(time.Second, ok))
		time.Sleep(2 * time.Second)
		m.set(func() {
			if got := m.tasks[2].Status; got != task.Succeeded {
				t.Errorf("beside it: got %s, want %s", got, task.Succeeded)
			}
		})
		m.set(func() { m.down = errDown }) // memory forgets all, and loads it anew
		time.Sleep(3 * time.Second)
		m.set(func() { m.down = nil })
		time.Sleep(time.Until(until) - time.Second)
		m.set(func() {
			if got := m.tasks[1]; got.Status != task.Pending || got.AttemptCount != 0 {
				t.Errorf("while something runs: got %s with %d attempts, want it pending without", got.Status, got.AttemptCount)
			}
		})
		if got := looks.Load(); got < int64(time.Minute/leftMost) || got > 30 {
			t.Errorf("got %d looks, want one every %v at last", got, leftMost)
		}
		time.Sleep(leftMost + 3*time.Second)
		stop()
		if got := m.tasks[1]; got.Status != task.Succeeded || got.AttemptCount != 1 {
			t.Errorf("at the end: got %s with %d attempts, want a success in one", got.Status, got.AttemptCount)
		}
		if got := b.warned("something runs"); got != 1 {
			t.Errorf("got told %d times, want once", got)
		}
	})
}

// A signal that stops the worker and its commands together cuts them off: no failure, and no attempt used up. A command
// that fails later does so by itself, and so does a request.
func TestSignalToWorkerAndCommandsIsNoFailure(t *testing.T) {
	const killAfter = 5 * time.Second
	for _, c := range []struct {
		outcome task.Outcome
		later   time.Duration // than the worker is told to stop
		request bool
		counted int
	}{
		{task.Outcome{Exit: 143, Signal: "SIGTERM"}, time.Millisecond, true, 0},
		{task.Outcome{Exit: 130, Signal: "SIGINT"}, time.Millisecond, false, 0},
		{task.Outcome{Exit: 131}, 2 * killAfter, false, 0},
		{task.Outcome{Exit: 1, GroupLeft: true}, 2 * killAfter, false, 0},
		{task.Outcome{Exit: 1}, time.Millisecond, false, 0},
		{task.Outcome{Exit: 1}, -time.Millisecond, false, 0}, // the command was told first
		{task.Outcome{Exit: 1}, killAfter + time.Second, false, 1},
		{task.Outcome{Exit: 22}, time.Millisecond, true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t)
			added := hosts(1, "host")
			added[0].Policy.Attempts, added[0].Policy.KillAfter = 1, killAfter
			if !c.request {
				added[0].Kind, added[0].Target, added[0].Command = task.KindCommand, nil, []string{"false"}
			}
			m.add(false, added...)
			stop, cancelStop := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancelStop)
			dies := func(context.Context, *task.Task, runner.Call) task.Outcome {
				time.Sleep(time.Second + c.later)
				return c.outcome
			}
			w := New(Config{
				Queue: m, Random: rand.Float64, Grace: time.Minute, LateStop: func() { time.Sleep(5 * time.Millisecond) },
				Open: func(*task.Task) (*Execution, error) { return &Execution{Executor: execute(dies)}, nil },
			})
			if err := w.Run(stop, context.Background()); err != nil {
				t.Error(err)
			}
			want := task.Pending
			if c.counted > 0 {
				want = task.Exhausted
			}
			if got := m.tasks[1]; got.Status != want || got.History.Counted != c.counted {
				t.Errorf("%+v: got %s, %d attempts used up; want %s, %d", c, got.Status, got.History.Counted, want, c.counted)
			}
		})
	}
}

// Outcomes wait for a store that cannot be written, and nothing is sent again.
func TestStoreFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, hosts(40, "host")...)
		var b begun
		_, stop := m.run(Config{Observer: &b}, sleeper(3*time.Second, ok))
		time.Sleep(time.Second)
		m.set(func() { m.down = errDown })
		time.Sleep(time.Minute)
		m.set(func() { m.down = nil })
		m.add(true, hosts(1, "new")...)
		time.Sleep(20 * time.Second)
		stop()
		if got := m.count(task.Succeeded); got != 41 {
			t.Errorf("got %d that succeeded, want 41", got)
		}
		for number, times := range b.ran {
			if times != 1 {
				t.Errorf("task %d: got %d attempts, want 1", number, times)
			}
		}
		if len(b.warnings) == 0 || !errors.Is(b.warnings[0], errDown) {
			t.Errorf("got the warnings %v, want some", b.warnings)
		}
	})
}

// A request's slot is free when its reply is there. No more outcomes than slots are written meanwhile.
func TestSlotsAreFreeWhileOutcomesAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.writes = time.Hour
		m.add(false, hosts(10, "host")...)
		var b begun
		w, stop := m.run(Config{Observer: &b, Concurrency: 2}, sleeper(time.Second, ok))
		for _, row := range []struct{ after, begun, running int }{{0, 2, 2}, {1, 4, 2}, {60, 4, 0}} {
			time.Sleep(time.Duration(row.after)*time.Second + time.Millisecond)
			b.Lock()
			got := len(b.ran)
			b.Unlock()
			if got != row.begun || w.Running() != row.running {
				t.Errorf("got %d attempts, %d of them running, want %d and %d", got, w.Running(), row.begun, row.running)
			}
		}
		time.Sleep(12 * time.Hour)
		stop()
		if got := m.count(task.Succeeded); got != 10 {
			t.Errorf("got %d that succeeded, want 10", got)
		}
	})
}

// A worker whose store never comes back ends all the same when it is told twice.
func TestStoreFailsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, hosts(3, "host")...)
		_, stop := m.run(Config{Grace: time.Second}, sleeper(time.Second, ok))
		time.Sleep(time.Second / 2)
		m.set(func() { m.down = errDown })
		time.Sleep(time.Minute)
		told := time.Now()
		stop()
		if got := time.Since(told); got > 15*time.Second {
			t.Errorf("got the end after %v, want 15 s at most", got)
		}
	})
}

// What has ended when a worker gives up its store is kept beside that, so that nobody does it again. Where that fails
// too, or where another task would have to follow, a warning says under -q as well that it may run again.
func TestEndsAreKeptWhereTheStoreFails(t *testing.T) {
	refused := task.Outcome{Exit: 1, Reply: &task.Reply{Status: 400, Default: task.Eligibility{Class: task.ClassFatal}}}
	again := task.Outcome{Exit: 1, Reply: &task.Reply{Status: 503, Default: task.Eligibility{Class: task.ClassRetryable}}}
	for _, test := range []struct {
		name      string
		outcome   task.Outcome
		full      error
		exhausted string
		kept      []task.Status
		loss      bool
		failed    int
	}{
		{name: "succeeded", outcome: ok, kept: []task.Status{task.Succeeded}},
		{name: "failed", outcome: refused, kept: []task.Status{task.Failed}, failed: 1},
		{name: "another attempt follows", outcome: again},
		{name: "no room for it", outcome: ok, full: errDown, loss: true},
		{name: "another task follows", outcome: refused, exhausted: "{}", loss: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.full = test.full
				tk := hosts(1, "host")[0]
				tk.Options.Exhausted = test.exhausted
				m.add(false, tk)
				var b begun
				follow := func(*task.Task) (*task.Task, error) { return queued("next"), nil }
				w, stop := m.run(Config{Grace: time.Second, Observer: &b, FollowUp: follow}, sleeper(time.Second, test.outcome))
				time.Sleep(time.Second / 2)
				m.set(func() { m.down = errDown })
				time.Sleep(time.Minute)
				m.mutex.Lock()
				early := slices.Clone(m.kept)
				m.mutex.Unlock()
				if !slices.Equal(early, test.kept) { // a SIGKILL may come before the worker gives up
					t.Errorf("before it gives up: got kept %v, want %v", early, test.kept)
				}
				stop()
				loss := slices.ContainsFunc(b.warnings, func(err error) bool {
					l, found := errors.AsType[runner.Loss](err)
					return found && l.New && strings.Contains(err.Error(), "may run again")
				})
				if !slices.Equal(m.kept, test.kept) || loss != test.loss || w.Failed() != test.failed {
					t.Errorf("got kept %v, failed %d, warnings %v; want kept %v, failed %d, loss %v", m.kept, w.Failed(),
						b.warnings, test.kept, test.failed, test.loss)
				}
			})
		})
	}
}

// What follows a dead task, and cannot be made, is told once, and the task has ended.
func TestUnfollowed(t *testing.T) {
	refused := task.Outcome{Exit: 1, Reply: &task.Reply{Status: 400, Default: task.Eligibility{Class: task.ClassFatal}}}
	unread := errors.New("the variable KEY may not be named")
	taken := &state.UnfollowedError{ID: "a", Err: &state.KeyError{ID: "another"}}
	for _, test := range []struct {
		name    string
		outcome task.Outcome
		follow  error
		taken   error
		want    string
	}{
		{name: "made", outcome: refused},
		{name: "not dead", outcome: ok, follow: unread},
		{name: "not to be read", outcome: refused, follow: unread, want: unread.Error()},
		{name: "its key is taken", outcome: refused, taken: taken, want: "the idempotency key is that of task another"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.taken = test.taken
				tk := hosts(1, "host")[0]
				tk.Options.Exhausted = "{}"
				m.add(false, tk)
				var b begun
				follow := func(*task.Task) (*task.Task, error) { return queued("next"), test.follow }
				_, stop := m.run(Config{Observer: &b, FollowUp: follow}, sleeper(time.Second, test.outcome))
				time.Sleep(time.Minute)
				stop()
				told := len(b.warnings) == 1 && len(m.alone) == 1 && m.alone[0] == tk.Number
				if want := test.want != ""; told != want || !want && len(b.warnings)+len(m.alone) != 0 {
					t.Fatalf("got warnings %v, told of %v, want %q", b.warnings, m.alone, test.want)
				}
				if told && !strings.Contains(b.warnings[0].Error(), test.want) {
					t.Errorf("got %v, want %q", b.warnings[0], test.want)
				}
				if !tk.Status.Finished() {
					t.Errorf("got %s, want its end", tk.Status)
				}
			})
		})
	}
}

// A worker renews its lease after a second, so that one that has not is known to have lived for less, and then seldom.
func TestRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		_, stop := m.run(Config{}, sleeper(0, ok))
		for _, test := range []struct {
			after time.Duration
			want  int
		}{
			{900 * time.Millisecond, 0}, {200 * time.Millisecond, 1}, {9 * time.Second, 1}, {time.Second, 2},
			{20 * time.Second, 4},
		} {
			time.Sleep(test.after)
			m.set(func() {
				if m.renewed != test.want {
					t.Errorf("got %d renewals, want %d", m.renewed, test.want)
				}
			})
		}
		stop()
	})
}

// A worker whose lease was lost stops its requests, and leaves its commands alone.
func TestLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		command := queued("")
		command.Target, command.Kind, command.Command = nil, task.KindCommand, []string{"true"}
		m.add(false, append(hosts(2, "host"), command)...)
		w, stop := m.run(Config{Visibility: 6 * time.Second}, sleeper(50*time.Second, ok))
		time.Sleep(time.Second)
		m.set(func() {
			m.renew = state.ErrLeaseLost
			m.tasks[1].Nonce, m.tasks[2].Nonce = -1, -1 // another worker has them
		})
		time.Sleep(3 * time.Second)
		if got := w.Running(); got != 1 {
			t.Errorf("got %d attempts after the lease was lost, want that of the command", got)
		}
		time.Sleep(50 * time.Second)
		stop()
		if got := m.tasks[3].Status; got != task.Succeeded {
			t.Errorf("got the command %s, want %s", got, task.Succeeded)
		}
	})
}

// A lost lease stops what may be sent twice, and no hook that runs after it.
func TestALostLeaseLeavesHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.renew = state.ErrLeaseLost
		w := New(Config{Queue: m})
		tasks := hosts(2, "host")
		tasks[0].Number, tasks[1].Number = 1, 2
		sent, inHook := w.begin(tasks[0]), w.begin(tasks[1])
		inHook.executed = true
		if w.renew(t.Context()) || len(sent.signals) != 1 || len(inHook.signals) != 0 {
			t.Errorf("got %d signals for a request that is sent and %d for a hook, want 1 and 0",
				len(sent.signals), len(inHook.signals))
		}
	})
}

// A request that is not safe to repeat is not sent by a worker that stood still since its claim: another one may have
// ended the task, which may have been requeued.
func TestAWorkerThatStoodStillDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		unsafe := hosts(1, "host")
		unsafe[0].Target = &request.Request{Method: "POST", URL: "http://host/"}
		sent := 0
		var w *Worker
		var stop func()
		w, stop = m.run(Config{Visibility: 6 * time.Second, Open: func(*task.Task) (*Execution, error) {
			w.renewed.Store(time.Now().Add(-time.Minute).UnixNano())
			m.set(func() { m.renew, m.tasks[1].Nonce = state.ErrLeaseLost, -1 }) // another worker has it
			return &Execution{Executor: execute(func(context.Context, *task.Task, runner.Call) task.Outcome {
				sent++
				return ok
			})}, nil
		}}, nil)
		m.add(true, unsafe...)
		time.Sleep(time.Second)
		stop()
		if sent != 0 {
			t.Errorf("got it sent %d times, want not at all", sent)
		}
	})
}

// 10,000 hosts to which connections hang, with tasks that are tried again, leave one that answers on time.
func TestDeadHostsLeaveTheOthersOnTime(t *testing.T) {
	dead := 10_000
	if testing.Short() {
		dead = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		timeout := task.Outcome{Exit: 1, Error: task.ErrorTimeout,
			Reply: &task.Reply{Default: task.Eligibility{Class: task.ClassRetryable}}}
		e := func(ctx context.Context, tk *task.Task, c runner.Call) task.Outcome {
			if strings.HasPrefix(tk.Host(), "dead") {
				return sleeper(5*time.Second, timeout)(ctx, tk, c)
			}
			return sleeper(10*time.Millisecond, ok)(ctx, tk, c)
		}
		m.add(false, hosts(1, "healthy")...)
		var b begun
		_, stop := m.run(Config{Observer: &b}, e)
		time.Sleep(time.Second)
		for n := range dead {
			m.add(true, hosts(5, fmt.Sprint("dead-", n))...)
		}
		time.Sleep(time.Minute)
		for range 600 {
			m.add(true, hosts(2, "healthy")...)
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		if got := b.latest("healthy"); got != 0 {
			t.Errorf("got tasks late by up to %v, want 0", got)
		}
		if got := m.count(task.Succeeded); got != 1201 {
			t.Errorf("got %d that succeeded, want 1201", got)
		}
	})
}

// asynq and River let one slow host have all slots.
func TestSlowHostDoesNotHoldAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, hosts(500, "slow")...)
		var b begun
		w, stop := m.run(Config{Observer: &b}, func(ctx context.Context, tk *task.Task, c runner.Call) task.Outcome {
			if tk.Host() == "slow" {
				return sleeper(20*time.Second, ok)(ctx, tk, c)
			}
			return ok
		})
		time.Sleep(time.Second)
		if got := w.Running(); got != DefaultPerHost {
			t.Errorf("got %d attempts to one host, want %d", got, DefaultPerHost)
		}
		m.add(true, hosts(100, "quick")...)
		synctest.Wait()
		if got := m.count(task.Succeeded); got != 100 {
			t.Errorf("got %d of 100 done at once", got)
		}
		stop()
	})
}

func TestDrain(t *testing.T) {
	tests := map[string]struct {
		drain  Drain
		ends   time.Duration
		fails  bool
		failed int
	}{
		"all":               {drain: DrainAll, ends: 10 * time.Second},
		"due":               {drain: DrainDue, ends: 2 * time.Second},
		"all, without luck": {drain: DrainAll, ends: 10 * time.Second, fails: true, failed: 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.add(false, hosts(2, "host")...)
				later := hosts(1, "host")
				later[0].NextAttemptAt = time.Now().Add(10 * time.Second)
				m.add(false, later...)
				o := ok
				if test.fails {
					o = task.Outcome{Exit: 1, Reply: &task.Reply{Default: task.Eligibility{Class: task.ClassFatal}}}
				}
				began := time.Now()
				w := New(Config{Queue: m, Random: rand.Float64, Drain: test.drain,
					Open: func(*task.Task) (*Execution, error) { return &Execution{Executor: sleeper(2*time.Second, o)}, nil }})
				if err := w.Run(context.Background(), context.Background()); err != nil {
					t.Error(err)
				}
				if got := time.Since(began); got < test.ends || got > test.ends+3*time.Second {
					t.Errorf("got the end after %v, want it after %v", got, test.ends)
				}
				if w.Failed() != test.failed {
					t.Errorf("got %d that failed, want %d", w.Failed(), test.failed)
				}
			})
		})
	}
}

// River's rescuer works by a lease of an hour, and one that overwrites a result is river#1302: a result that comes
// after the task was taken over is refused.
func TestResultAfterTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, hosts(1, "host")...)
		_, stop := m.run(Config{}, sleeper(5*time.Second, ok))
		time.Sleep(time.Second)
		m.set(func() { m.tasks[1].Nonce++ })
		time.Sleep(10 * time.Second)
		stop()
		if got := m.tasks[1].Status; got != task.InFlight || len(m.settled) > 0 {
			t.Errorf("got %s and %d results, want those of another worker untouched", got, len(m.settled))
		}
	})
}

// An attempt of the same task that runs on in this process, after its lease was lost, is stopped. The next one waits
// for its end.
func TestAttemptIsStoppedByItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, hosts(1, "host")...)
		w, stop := m.run(Config{}, sleeper(50*time.Second, ok))
		time.Sleep(time.Second)
		m.set(func() {
			m.tasks[1].Status = task.Pending
			m.tasks[1].NextAttemptAt = time.Now()
			m.wait(m.tasks[1], true)
		})
		time.Sleep(time.Second)
		if got := w.Running(); got != 1 {
			t.Errorf("got %d attempts, want the second", got)
		}
		m.cancel(1)
		time.Sleep(time.Second)
		if got := w.Running(); got != 0 {
			t.Errorf("got %d attempts after the cancellation, want 0", got)
		}
		stop()
	})
}

// After a sleep of the machine, and when the clock is set, the other workers get the time to renew: each its own.
func TestPatienceWithOtherWorkers(t *testing.T) {
	tests := map[string]struct {
		set        time.Duration // how far the clock is set
		visibility time.Duration
		want       []bool // what may be done at each of the looks that follow, 10 s apart
	}{
		"steady":                      {0, 30 * time.Second, []bool{true, true, true}},
		"set forward":                 {time.Hour, 30 * time.Second, []bool{false, false, true}},
		"set back":                    {-time.Hour, 30 * time.Second, []bool{false, false, true}},
		"set a bit":                   {time.Second, 30 * time.Second, []bool{true, true, true}},
		"slept a minute":              {time.Minute, 30 * time.Second, []bool{false, false, true}},
		"slept, and one renews often": {time.Minute, 6 * time.Second, []bool{false, false, false}}, // 9 s are a gap, too
		"slept, and one seldom":       {time.Minute, 2 * time.Minute, []bool{false, false, false}},
		"slept too short for one":     {30 * time.Second, 2 * time.Minute, []bool{true, true, true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			var p patience
			p.look(now)
			if !p.over(test.visibility) {
				t.Error("got patience at the first look, want none")
			}
			now = testkit.SetWallClock(now, test.set)
			for n, want := range test.want {
				p.look(now.Add(time.Millisecond))
				if got := p.over(test.visibility); got != want {
					t.Errorf("look %d: got %v, want %v", n, got, want)
				}
				now = now.Add(9 * time.Second)
			}
		})
	}
}
