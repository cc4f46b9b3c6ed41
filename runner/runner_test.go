package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

func half() float64 { return 0.5 }

// exit is the outcome of a command that exited.
func exit(code int) task.Outcome { return task.Outcome{Exit: code, Duration: time.Second} }

// policy returns the default policy with a constant delay of 10 s and what change does to it.
func policy(t *testing.T, change func(*task.Policy)) *task.Policy {
	t.Helper()
	spec, err := backoff.Parse("constant:10s", "none")
	if err != nil {
		t.Fatal(err)
	}
	p := task.DefaultPolicy()
	p.Backoff = spec
	if change != nil {
		change(&p)
	}
	return &p
}

// answered is the outcome of a request that ended in an event.
func answered(event string, class task.Class, change func(*task.Reply)) task.Outcome {
	o := task.Outcome{Exit: 22, Duration: time.Second,
		Reply: &task.Reply{Default: task.Eligibility{Class: class, Event: event}}}
	if change != nil {
		change(o.Reply)
	}
	return o
}

// reply is the outcome of a request that was answered with a status.
func reply(status int) task.Outcome {
	o := task.Outcome{Reply: &task.Reply{Status: status}}
	if status >= 400 {
		o.Exit = 22
		o.Reply.Default.Class = task.ClassFatal
	}
	return o
}

// events are the calls of all interfaces of a runner, in order.
type events struct{ lines []string }

func (d *events) note(line string) {
	if d != nil {
		d.lines = append(d.lines, line)
	}
}

// script is an Executor that returns outcomes in order, and then the last one again and again.
type script struct {
	*events
	outcomes []task.Outcome
	starts   []time.Duration // of each attempt, since the first
	begun    time.Time
	plain    bool      // the outcomes are as they are, whatever happens meanwhile
	process  string    // what it says of its processes, where that is not empty
	sig      os.Signal // what Flush returns
	lost     error
}

func (s *script) Execute(ctx context.Context, _ *task.Task, c Call) task.Outcome {
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	s.starts = append(s.starts, time.Since(s.begun))
	o := s.outcomes[min(len(s.starts), len(s.outcomes))-1]
	if s.process != "" {
		_ = c.Started(s.process)
	}
	if s.plain {
		time.Sleep(o.Duration)
		return o
	}
	select {
	case <-time.After(o.Duration):
	case o.Stop = <-c.Signals:
	case <-ctx.Done():
		o = task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout, Message: context.Cause(ctx).Error()}
	}
	return o
}

func (s *script) Flush(t *task.Task, _ <-chan os.Signal) (os.Signal, error) {
	s.note("flush " + string(t.Status))
	return s.sig, s.lost
}

func (s *script) HoldsOutput(*task.Task) bool { return true }

// memory is a Journal that records its calls, in order.
type memory struct {
	*events
	log    []string
	claims int
	busy   func()           // what happens while a claim waits
	nested int              // how often nested tasks were to be cancelled
	refuse map[string]error // by the name of the call

	looks    int       // how often it was asked whether the task is due earlier
	hastened time.Time // the time that another process has set; zero for none
}

func (m *memory) note(line string) {
	m.log = append(m.log, line)
	m.events.note(line)
}

func (m *memory) Claim(_ context.Context, t *task.Task, _ time.Time) error {
	m.claims++
	m.note("claim")
	if m.busy != nil {
		m.busy()
	}
	t.Number = 1
	return m.refuse["claim"]
}

func (m *memory) NoteProcess(_ context.Context, t *task.Task, process string) bool {
	m.note(fmt.Sprint("note ", t.AttemptCount, " ", process))
	return true
}

func (m *memory) NextAttempt(_ context.Context, t *task.Task) time.Time {
	m.looks++
	if m.hastened.IsZero() {
		return t.NextAttemptAt
	}
	return m.hastened
}

func (m *memory) NoteStart(*task.Task, string) {}

func (m *memory) Record(_ context.Context, t *task.Task, a task.Attempt) error {
	m.note("record " + string(a.Decision.Verdict) + " " + string(t.Status))
	return m.refuse["record"]
}

func (m *memory) RecordAndClaim(context.Context, *task.Task, task.Attempt, time.Time) error {
	return errors.New("one write at a time")
}

func (m *memory) Unclaim(context.Context, *task.Task) { m.log = append(m.log, "unclaim") }

func (m *memory) CancelNested(context.Context, *task.Task, time.Time) { m.nested++ }

func (m *memory) Settle(_ context.Context, t *task.Task, d task.Decision) error {
	m.note("settle " + string(d.Verdict) + " " + string(t.Status))
	return m.refuse["settle"]
}

// observer is an Observer that records its calls.
type observer struct {
	*events
	log      []string
	warnings []string
}

func (w *observer) note(line string) {
	w.log = append(w.log, line)
	w.events.note(line)
}

func (w *observer) Started(*task.Task) { w.note("started") }

func (w *observer) Ended(_ *task.Task, a task.Attempt) { w.note("ended " + string(a.Decision.Verdict)) }

func (w *observer) Waiting(*task.Task, time.Duration) time.Duration {
	return time.Second
}

func (w *observer) Finished(_ *task.Task, r Result) { w.note("finished " + string(r.Decision.Verdict)) }

func (w *observer) Warn(err error) {
	w.warnings = append(w.warnings, err.Error())
	w.events.note("warning")
}

type rig struct {
	*Runner
	*events  // of all that follow
	task     *task.Task
	executor *script
	journal  *memory
	observer *observer
	signals  chan os.Signal
}

// newRig must be called inside synctest.Test, so that its task is created at the fake time.
func newRig(t *testing.T, change func(*task.Policy), outcomes ...task.Outcome) *rig {
	d := &events{}
	b := &rig{
		events: d, executor: &script{events: d, outcomes: outcomes}, journal: &memory{events: d},
		observer: &observer{events: d},
		signals:  make(chan os.Signal, 8),
		task:     &task.Task{Status: task.Pending, CreatedAt: time.Now(), Policy: *policy(t, change)},
	}
	b.task.History.Began = b.task.CreatedAt
	b.Runner = &Runner{Journal: b.journal, Executor: b.executor, Observer: b.observer, Signals: b.signals, Random: half}
	return b
}

func TestRunRetriesUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1), exit(1), exit(0))
		result, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "exit code", result.ExitCode(), 0)
		check(t, "status", b.task.Status, task.Succeeded)
		check(t, "attempts", b.task.AttemptCount, 3)
		want := []string{"claim", "record retry PENDING", "claim", "record retry PENDING", "claim",
			"record succeeded SUCCEEDED"}
		check(t, "journal", b.journal.log, want)
		if starts := []time.Duration{0, 11 * time.Second, 22 * time.Second}; !slices.Equal(b.executor.starts, starts) {
			t.Errorf("got starts %v, want %v", b.executor.starts, starts)
		}
		check(t, "observer", b.observer.log,
			[]string{"started", "ended retry", "started", "ended retry", "started", "ended succeeded", "finished succeeded"})
	})
}

func TestRunNeverSleepsAfterTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, func(p *task.Policy) { p.Attempts = 2 }, exit(7))
		begun := time.Now()
		result, _ := b.Run(t.Context(), b.task)
		check(t, "time", time.Since(begun), 12*time.Second)
		check(t, "exit code", result.ExitCode(), 7)
		check(t, "status", b.task.Status, task.Exhausted)
		check(t, "reason", b.task.Reason, task.ReasonAttempts)
	})
}

func TestRunEndsAnAttemptInTime(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*task.Policy)
		message string
		status  task.Status
		after   time.Duration
	}{
		{"timeout", func(p *task.Policy) { p.Timeout, p.Attempts = 3*time.Second, 1 }, "timed out after 3s",
			task.Exhausted, 3 * time.Second},
		{"budget", func(p *task.Policy) { p.Budget = 20 * time.Second }, "stopped at the end of the budget",
			task.Exhausted, 20 * time.Second},
		{"the earlier of both",
			func(p *task.Policy) { p.Timeout, p.Budget, p.Attempts = 30*time.Second, 20*time.Second, 1 },
			"stopped at the end of the budget", task.Exhausted, 20 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, tt.change, task.Outcome{Duration: time.Hour})
				begun := time.Now()
				result, _ := b.Run(t.Context(), b.task)
				check(t, "message", result.Outcome.Message, tt.message)
				check(t, "status", b.task.Status, tt.status)
				check(t, "time", time.Since(begun), tt.after)
				check(t, "exit code", result.ExitCode(), task.ExitTimeout)
			})
		})
	}
}

// An attempt ends with the budget also where only the wall clock shows it: the machine slept, or the clock was set.
func TestABudgetEndsByTheWallClock(t *testing.T) {
	b := newRig(t, func(p *task.Policy) { p.Budget = 30 * time.Minute })
	b.task.History.Began = testkit.SetWallClock(time.Now(), -time.Hour)
	ctx, release := withBudget(t.Context(), b.task)
	defer release()
	select {
	case <-ctx.Done():
		check(t, "cause", context.Cause(ctx), ErrBudgetEnd)
	case <-time.After(10 * time.Second):
		t.Error("got no end, want one at once")
	}
}

// A task is always tried once, however little time it has.
func TestRunMakesAFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, func(p *task.Policy) { p.Budget = time.Millisecond }, exit(0))
		time.Sleep(time.Second)
		result, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "exit code", result.ExitCode(), task.ExitTimeout)
		check(t, "status", b.task.Status, task.Exhausted)
		check(t, "number of starts", len(b.executor.starts), 1)
	})
}

// An attempt does not begin if the budget ended while it waited for a slot.
func TestABudgetThatEndsInAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, func(p *task.Policy) { p.Budget = time.Minute }, exit(7))
		b.Slots = make(chan struct{}, 1)
		go func() {
			time.Sleep(5 * time.Second)
			b.Slots <- struct{}{}
			time.Sleep(time.Hour)
			<-b.Slots
		}()
		result, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "exit code", result.ExitCode(), 7)
		check(t, "status", b.task.Status, task.Exhausted)
		check(t, "reason", b.task.Reason, task.ReasonBudget)
		check(t, "number of slots", len(b.Slots), 0)
		check(t, "number of starts", len(b.executor.starts), 1)
	})
}

func TestRunStoppedInAWait(t *testing.T) {
	tests := []struct {
		sig    os.Signal
		status task.Status
		log    string
	}{
		{syscall.SIGINT, task.Cancelled, "settle cancelled CANCELLED"},
		{syscall.SIGTERM, task.Pending, "settle interrupted PENDING"},
		{syscall.SIGHUP, task.Pending, "settle interrupted PENDING"},
	}
	for _, tt := range tests {
		t.Run(tt.sig.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(1))
				begun := time.Now()
				go func() {
					time.Sleep(4 * time.Second)
					b.signals <- tt.sig
				}()
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "signal", result.Signal, tt.sig)
				check(t, "death signal", result.DeathSignal(), tt.sig)
				check(t, "status", b.task.Status, tt.status)
				check(t, "time", time.Since(begun), 4*time.Second)
				check(t, "last entry", b.journal.log[len(b.journal.log)-1], tt.log)
				if due := begun.Add(11 * time.Second); tt.status == task.Pending && !b.task.NextAttemptAt.Equal(due) {
					t.Errorf("next attempt: got %v, want %v", b.task.NextAttemptAt, due)
				}
			})
		})
	}
}

// The next attempt waits while nobody knows whether its input is whole, for ten seconds at the most, within its budget.
// A signal ends that wait.
func TestRunWaitsInDoubtAboutTheInput(t *testing.T) {
	for name, tt := range map[string]struct {
		settled, budget, stop, want time.Duration // want is the begin of the second attempt; 0: it does not begin
	}{
		"settled at once": {want: 11 * time.Second},
		"settled":         {settled: 14 * time.Second, want: 14 * time.Second},
		"never":           {settled: time.Hour, want: 21 * time.Second},
		"stopped":         {settled: time.Hour, stop: 15 * time.Second},
		"out of budget":   {settled: time.Hour, budget: 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, func(p *task.Policy) { p.Budget = tt.budget }, exit(1), exit(0))
				begun := time.Now()
				b.Unsettled = func() bool { return time.Since(begun) > time.Millisecond && time.Since(begun) < tt.settled }
				if tt.stop > 0 {
					b.after(tt.stop, syscall.SIGTERM)
				}
				_, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				switch starts := b.executor.starts; {
				case tt.want == 0 && len(starts) > 1, tt.want > 0 && (len(starts) < 2 || starts[1] != tt.want):
					t.Errorf("got starts %v, want the second one at %v", starts, tt.want)
				}
				limit := max(tt.want+time.Second, tt.stop, tt.budget) + time.Second
				if took := time.Since(begun); took > limit {
					t.Errorf("took %v, want %v at the most", took, limit)
				}
			})
		})
	}
}

// A signal that came while a claim waited for other processes leaves the same doubt: the claimed attempt waits.
func TestRunWaitsInDoubtAfterAClaim(t *testing.T) {
	for name, stop := range map[string]time.Duration{"settled": 0, "stopped": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(0))
				begun, doubt := time.Now(), false
				b.journal.busy = func() { time.Sleep(2 * time.Second); doubt = true }
				b.Unsettled = func() bool { return doubt && time.Since(begun) < 5*time.Second }
				if stop > 0 {
					b.after(stop, syscall.SIGTERM)
				}
				_, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "claims", b.journal.claims, 1)
				if stop > 0 {
					check(t, "status", b.task.Status, task.Pending)
					check(t, "log", b.journal.log[len(b.journal.log)-2:], []string{"unclaim", "settle interrupted PENDING"})
				} else if got := b.executor.begun.Sub(begun); got != 5*time.Second {
					t.Errorf("begun after %v, want 5s", got)
				}
			})
		})
	}
}

func TestRunStoppedInAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(143))
		go func() {
			time.Sleep(time.Millisecond)
			b.signals <- syscall.SIGTERM
		}()
		result, _ := b.Run(t.Context(), b.task)
		check(t, "verdict", result.Decision.Verdict, task.VerdictInterrupted)
		check(t, "status", b.task.Status, task.Pending)
		check(t, "claims", b.journal.claims, 1)
	})
}

// A signal to all may come here a moment after the command has exited with 1 because of it. Where attempts are left,
// the wait for the next one takes it.
func TestRunStoppedAfterItsLastAttempt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration
		status task.Status
	}{
		{name: "a moment later", after: 4 * time.Millisecond, status: task.Pending},
		{name: "later", after: 6 * time.Millisecond, status: task.Exhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(1))
				b.task.Policy.Attempts, b.LateStop = 1, func() { time.Sleep(5 * time.Millisecond) }
				go func() {
					time.Sleep(time.Second + tt.after)
					b.signals <- syscall.SIGTERM
				}()
				_, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "status", b.task.Status, tt.status)
				time.Sleep(time.Second)
			})
		})
	}
}

func TestRunLeavesATakenTask(t *testing.T) {
	for _, call := range []string{"claim", "record"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(1))
				b.journal.refuse = map[string]error{call: task.ErrNotOwner}
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "verdict", result.Decision.Verdict, task.VerdictCancelled)
				check(t, "claims", b.journal.claims, 1)
			})
		})
	}
}

func TestRunFailsWhereTheJournalDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(0))
		b.journal.refuse = map[string]error{"claim": errors.New("disk full")}
		if _, err := b.Run(t.Context(), b.task); err == nil || len(b.executor.starts) != 0 {
			t.Errorf("got error %v, %d attempts, want an error and none", err, len(b.executor.starts))
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		result, err := b.Run(ctx, b.task)
		check(t, "error", err, nil)
		check(t, "verdict", result.Decision.Verdict, task.VerdictInterrupted)
		check(t, "status", b.task.Status, task.Pending)
	})
}

// One slot for two tasks: their attempts never overlap, their waits do.
func TestRunSharesSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make(chan struct{}, 1)
		begun := time.Now()
		done := make(chan struct{})
		for range 2 {
			b := newRig(t, func(p *task.Policy) { p.Attempts = 2 }, exit(1))
			b.Slots = slots
			go func() {
				_, _ = b.Run(t.Context(), b.task)
				done <- struct{}{}
			}()
		}
		<-done
		<-done
		check(t, "time", time.Since(begun), 13*time.Second)
	})
}

// An attempt that never ends, or waits for a task that has no slot, does not keep its slot for ever.
func TestALongAttemptFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := exit(0)
		hour.Duration = time.Hour
		long, second := newRig(t, nil, hour), newRig(t, nil, exit(0))
		long.Slots = make(chan struct{}, 1)
		second.Slots = long.Slots
		begun := time.Now()
		done := make(chan error)
		go func() {
			_, err := long.Run(t.Context(), long.task)
			done <- err
		}()
		synctest.Wait()
		_, err := second.Run(t.Context(), second.task)
		check(t, "error", err, nil)
		check(t, "begin of the second", second.executor.begun.Sub(begun), longestSlot)
		check(t, "error", <-done, nil)
		check(t, "slots taken", len(long.Slots), 0)
	})
}

func TestResume(t *testing.T) {
	inFlight := func(b *rig) {
		b.task.Status, b.task.AttemptCount, b.task.Number = task.InFlight, 2, 1
		b.task.Last = task.Attempt{Number: 2, Outcome: task.Outcome{Exit: task.NoExit}}
	}
	tests := []struct {
		name   string
		change func(*task.Policy)
		before func(*rig)
		status task.Status
		reason task.Reason
		count  int
		log    []string
	}{
		{"an attempt was in flight", nil, inFlight, task.Succeeded, "", 3,
			[]string{"record interrupted PENDING", "claim", "record succeeded SUCCEEDED"}},
		{"the third in a row", nil, func(b *rig) { inFlight(b); b.task.History.Crashes = 2 }, task.Exhausted,
			task.ReasonCrashes, 2,
			[]string{"record exhausted EXHAUSTED"}},
		{"a wait was cut off", nil, func(b *rig) { b.task.AttemptCount = 1 }, task.Succeeded, "", 2,
			[]string{"claim", "record succeeded SUCCEEDED"}},
		{"the budget ended meanwhile", func(p *task.Policy) { p.Budget = time.Minute },
			func(b *rig) { b.task.AttemptCount = 1; time.Sleep(time.Hour) }, task.Exhausted, task.ReasonBudget, 1,
			[]string{"settle exhausted EXHAUSTED"}},
		{"a request was in flight that may be sent twice", nil,
			func(b *rig) { inFlight(b); b.task.Target = &request.Request{Method: "PUT"} },
			task.Succeeded, "", 3, []string{"record interrupted PENDING", "claim", "record succeeded SUCCEEDED"}},
		{"a request was in flight that may not", nil,
			func(b *rig) { inFlight(b); b.task.Target = &request.Request{Method: "POST"} },
			task.Failed, task.ReasonAmbiguous, 2, []string{"record failed FAILED"}},
		{"the idempotency key expired meanwhile", nil,
			func(b *rig) { b.task.AttemptCount = 1; b.task.History.Expires = time.Now(); time.Sleep(time.Hour) },
			task.Exhausted, task.ReasonExpired, 1, []string{"settle exhausted EXHAUSTED"}},
		{"the budget ended in flight", func(p *task.Policy) { p.Budget = time.Minute },
			func(b *rig) { inFlight(b); time.Sleep(time.Hour) }, task.Exhausted, task.ReasonBudget, 2,
			[]string{"record interrupted PENDING", "settle exhausted EXHAUSTED"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, tt.change, exit(0))
				tt.before(b)
				_, err := b.Resume(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "status", b.task.Status, tt.status)
				check(t, "reason", b.task.Reason, tt.reason)
				check(t, "attempts", b.task.AttemptCount, tt.count)
				check(t, "journal", b.journal.log, tt.log)
			})
		})
	}
}

// A resumed wait ends at the time that was planned.
func TestResumeWaitsForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(0))
		b.task.AttemptCount, b.task.NextAttemptAt, b.task.History.Delay = 1, time.Now().Add(time.Hour), 2*time.Hour
		begun := time.Now()
		_, err := b.Resume(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "time", time.Since(begun), time.Hour+time.Second)
	})
}

// If a server asks for a delay above the limit, the task is left to another run.
func TestDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := answered("429", task.ClassRetryable,
			func(x *task.Reply) { x.ServerDelay, x.MaxDelay = 2*time.Hour, time.Hour })
		b := newRig(t, nil, o)
		due := time.Now().Add(o.Duration + 2*time.Hour)
		result, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "exit code", result.ExitCode(), task.ExitDeferred)
		check(t, "status", b.task.Status, task.Pending)
		check(t, "reason", b.task.Reason, task.ReasonDeferred)
		if b.task.NextAttemptAt.Before(due) || len(b.executor.starts) != 1 {
			t.Errorf("got next attempt %v after %d, want %v after 1", b.task.NextAttemptAt, len(b.executor.starts), due)
		}
		b.signals <- syscall.SIGTERM
		_, err = b.Resume(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "reason", b.task.Reason, task.ReasonDeferred)
	})
}

// A signal that comes while the journal waits for others ends the run before anything was started.
func TestASignalEndsTheWaitForTheJournal(t *testing.T) {
	for sig, status := range map[os.Signal]task.Status{syscall.SIGTERM: task.Pending, os.Interrupt: task.Cancelled} {
		synctest.Test(t, func(t *testing.T) {
			b := newRig(t, nil, exit(0))
			b.journal.busy = func() { b.signals <- syscall.SIGALRM; b.signals <- sig }
			b.journal.refuse = map[string]error{"claim": task.ErrStopped}
			result, err := b.Run(t.Context(), b.task)
			check(t, "error", err, nil)
			check(t, "signal", result.Signal, sig)
			check(t, "status", b.task.Status, status)
			check(t, "number of starts", len(b.executor.starts), 0)
		})
	}
}

// A clock that was set back while the task was stopped makes neither the wait nor the budget longer.
func TestAResumeAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, func(p *task.Policy) { p.Budget = 10 * time.Minute }, exit(1), exit(0))
		begun := time.Now()
		b.task.AttemptCount, b.task.History.Delay = 1, time.Minute
		b.task.NextAttemptAt = begun.Add(time.Hour + 30*time.Second)
		b.task.CreatedAt, b.task.History.Began = begun.Add(time.Hour), begun.Add(time.Hour)
		_, err := b.Resume(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "status", b.task.Status, task.Succeeded)
		check(t, "wait", b.executor.begun.Sub(begun), time.Minute)
		if deadline, _ := b.task.Deadline(); !deadline.Equal(begun.Add(10 * time.Minute)) {
			t.Errorf("got a deadline %v after the resume, want 10m", deadline.Sub(begun))
		}
	})
}

// Timers stop while a machine is suspended, its wall clock does not. A clock that is set back must not prolong a wait.
func TestUntilDueTakesTheShorterWay(t *testing.T) {
	now := time.Now()
	due := now.Add(time.Hour)
	check(t, "untilDue(due, now.Add(time.Minute))", untilDue(due, now.Add(time.Minute)), 59*time.Minute)
	wallOnly := now.Round(0)
	if got := untilDue(due, wallOnly.Add(2*time.Hour)); got > 0 {
		t.Errorf("the wall clock is past it: got %v, want at most 0", got)
	}
	check(t, "untilDue(due.Round(0).Add(time.Hour), now.Add(time.Minute))",
		untilDue(due.Round(0).Add(time.Hour), now.Add(time.Minute)), 119*time.Minute)
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
