package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// hooks is a Hooks that records its calls.
type hooks struct {
	*events
	takes time.Duration
	err   error
}

func (h *hooks) Run(ctx context.Context, t *task.Task, command string, signals <-chan os.Signal) (os.Signal, error) {
	h.note("hook " + command + " " + string(t.Status))
	for end := time.After(h.takes); ; {
		select {
		case <-end:
			return nil, h.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case sig := <-signals:
			if task.Stops(sig) {
				return sig, h.err
			}
		}
	}
}

// withHooks gives the task all hooks but on-start, and a day for each.
func (b *rig) withHooks(takes time.Duration, err error) {
	b.Hooks = &hooks{events: b.events, takes: takes, err: err}
	b.task.Options.HookTimeout = 24 * time.Hour
	b.task.Options.OnRetry, b.task.Options.OnSuccess, b.task.Options.OnFailure = "on-retry", "on-success", "on-failure"
}

// hooksRun returns the hooks that have run, each with the status of the task.
func (b *rig) hooksRun() (ran []string) {
	for _, line := range b.lines {
		if hook, ok := strings.CutPrefix(line, "hook "); ok {
			ran = append(ran, hook)
		}
	}
	return ran
}

// after sends a signal when so much time has passed.
func (b *rig) after(d time.Duration, sig os.Signal) {
	go func() {
		time.Sleep(d)
		b.signals <- sig
	}()
}

func stopping(code int, sig os.Signal) task.Outcome { return task.Outcome{Exit: code, Stop: sig} }

func TestHooks(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*task.Policy)
		outcomes []task.Outcome
		want     []string
	}{
		{"success at once", nil, []task.Outcome{exit(0)}, []string{"on-success SUCCEEDED"}},
		{"a rescue", nil, []task.Outcome{exit(1), exit(1), exit(0)},
			[]string{"on-retry PENDING", "on-retry PENDING", "on-success SUCCEEDED"}},
		{"one success of two", func(p *task.Policy) { p.Consecutive = 2 }, []task.Outcome{exit(0)},
			[]string{"on-retry PENDING", "on-success SUCCEEDED"}},
		{"attempts used up", func(p *task.Policy) { p.Attempts = 2 }, []task.Outcome{exit(1)},
			[]string{"on-retry PENDING", "on-failure EXHAUSTED"}},
		{"budget used up", func(p *task.Policy) { p.Budget = time.Millisecond }, []task.Outcome{exit(1)},
			[]string{"on-failure EXHAUSTED"}},
		{"not eligible", nil, []task.Outcome{{Exit: 127, Error: task.ErrorNotFound}}, []string{"on-failure FAILED"}},
		{"final", nil, []task.Outcome{{Exit: 1, Final: true}}, []string{"on-failure FAILED"}},
		{"INT in the attempt", nil, []task.Outcome{stopping(130, syscall.SIGINT)}, nil},
		{"TERM in the attempt", nil, []task.Outcome{stopping(143, syscall.SIGTERM)}, nil},
		{"INT in a later attempt", nil, []task.Outcome{exit(1), stopping(130, syscall.SIGINT)},
			[]string{"on-retry PENDING"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, tt.change, tt.outcomes...)
				b.executor.plain = true
				b.withHooks(0, nil)
				_, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "hooks", b.hooksRun(), tt.want)
			})
		})
	}
}

// No hook runs for a task without hooks, or in a runner without Hooks.
func TestNoHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1), exit(0))
		b.Hooks = &hooks{events: b.events}
		_, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "number of hooks", len(b.hooksRun()), 0)
		b = newRig(t, nil, exit(1), exit(0))
		b.withHooks(0, nil)
		b.Hooks = nil
		if _, err := b.Run(t.Context(), b.task); err != nil || len(b.observer.warnings) > 0 ||
			b.task.Status != task.Succeeded {
			t.Errorf("got error %v, warnings %q, status %s, want a success", err, b.observer.warnings, b.task.Status)
		}
	})
}

// A hook runs after the journal and the observer got the event, so that it can read the journal or send the report.
func TestHooksAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1), exit(0))
		b.withHooks(0, nil)
		if _, err := b.Run(t.Context(), b.task); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"claim", "started", "record retry PENDING", "flush PENDING", "ended retry", "hook on-retry PENDING",
			"claim", "started", "record succeeded SUCCEEDED", "flush SUCCEEDED", "ended succeeded",
			"finished succeeded", "hook on-success SUCCEEDED",
		}
		if !slices.Equal(b.lines, want) {
			t.Errorf("got  %q\nwant %q", b.lines, want)
		}
	})
}

// The delay counts from the end of the attempt. A hook runs during it and does not make it longer.
func TestAHookIsInsideTheDelay(t *testing.T) {
	tests := []struct{ takes, second time.Duration }{
		{0, 11 * time.Second}, {4 * time.Second, 11 * time.Second}, {10 * time.Second, 11 * time.Second},
		{25 * time.Second, 26 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(1), exit(0))
				b.withHooks(tt.takes, nil)
				_, _ = b.Run(t.Context(), b.task)
				check(t, "starts", b.executor.starts, []time.Duration{0, tt.second})
			})
		})
	}
}

func TestAFailingHookIsAWarning(t *testing.T) {
	for _, last := range []task.Outcome{exit(0), exit(7)} {
		synctest.Test(t, func(t *testing.T) {
			b := newRig(t, func(p *task.Policy) { p.Attempts = 2 }, exit(1), last)
			plain := newRig(t, func(p *task.Policy) { p.Attempts = 2 }, exit(1), last)
			failure := errors.New("exit status 3")
			b.withHooks(time.Second, failure)
			result, err := b.Run(t.Context(), b.task)
			same, _ := plain.Run(t.Context(), plain.task)
			check(t, "error", err, nil)
			check(t, "exit code", result.ExitCode(), same.ExitCode())
			check(t, "result.Decision", result.Decision, same.Decision)
			check(t, "signal", result.Signal, nil)
			check(t, "status", b.task.Status, plain.task.Status)
			check(t, "journal", b.journal.log, plain.journal.log)
			check(t, "observer", b.observer.log, plain.observer.log)
			if w := b.observer.warnings; len(w) != 2 || w[0] != `hook "on-retry": exit status 3` {
				t.Errorf("got warnings %q, want exit status 3 twice", w)
			}
		})
	}
}

// A signal while an on-retry hook runs ends the run as it would have ended the wait.
func TestASignalInAHookEndsTheRun(t *testing.T) {
	tests := []struct {
		sig    os.Signal
		status task.Status
		log    string
		code   int
	}{
		{syscall.SIGINT, task.Cancelled, "settle cancelled CANCELLED", 7},
		{syscall.SIGQUIT, task.Cancelled, "settle cancelled CANCELLED", 7},
		{syscall.SIGTERM, task.Pending, "settle interrupted PENDING", 7},
		{syscall.SIGHUP, task.Pending, "settle interrupted PENDING", 7},
	}
	for _, tt := range tests {
		t.Run(tt.sig.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(7))
				b.withHooks(5*time.Second, nil)
				b.after(3*time.Second, tt.sig)
				begun := time.Now()
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "signal", result.Signal, tt.sig)
				check(t, "death signal", result.DeathSignal(), tt.sig)
				check(t, "exit code", result.ExitCode(), tt.code)
				check(t, "status", b.task.Status, tt.status)
				check(t, "time", time.Since(begun), 3*time.Second)
				check(t, "claims", b.journal.claims, 1)
				check(t, "last entry", b.journal.log[len(b.journal.log)-1], tt.log)
				if due := begun.Add(11 * time.Second); tt.status == task.Pending && !b.task.NextAttemptAt.Equal(due) {
					t.Errorf("next attempt: got %v, want %v", b.task.NextAttemptAt, due)
				}
				if ran := b.hooksRun(); len(ran) != 1 || len(b.observer.warnings) > 0 {
					t.Errorf("got hooks %q, warnings %q, want one hook", ran, b.observer.warnings)
				}
			})
		})
	}
}

// A signal in the last hook does not change the result of the task, but retry dies of it, as a shell would.
func TestASignalInALastHook(t *testing.T) {
	for _, code := range []int{0, 7} {
		for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, func(p *task.Policy) { p.Attempts = 1 }, exit(code))
				b.withHooks(time.Hour, nil)
				b.after(3*time.Second, sig)
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "exit code", result.ExitCode(), code)
				check(t, "death signal", result.DeathSignal(), sig)
				if !b.task.Status.Finished() || b.task.Status == task.Cancelled {
					t.Errorf("got status %s, want the end of the attempt", b.task.Status)
				}
				check(t, "last entry", b.journal.log[len(b.journal.log)-1],
					"record "+string(b.task.Last.Decision.Verdict)+" "+string(b.task.Status))
			})
		}
	}
}

// No hook runs after a signal that ended the run: its sender waits for the end.
func TestNoHookAfterASignal(t *testing.T) {
	t.Run("in a wait", func(t *testing.T) {
		for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(1))
				b.withHooks(0, nil)
				b.after(4*time.Second, sig)
				_, _ = b.Run(t.Context(), b.task)
				check(t, "number of hooks", len(b.hooksRun()), 1)
			})
		}
	})
	t.Run("with the end of the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newRig(t, nil, exit(1))
			b.withHooks(0, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, _ = b.Run(ctx, b.task)
			check(t, "number of hooks", len(b.hooksRun()), 1)
		})
	})
}

// A task that was cancelled did not fail, so no hook runs.
func TestNoHookForATakenTask(t *testing.T) {
	for _, call := range []string{"claim", "record"} {
		synctest.Test(t, func(t *testing.T) {
			b := newRig(t, func(p *task.Policy) { p.Attempts = 1 }, exit(1))
			b.withHooks(0, nil)
			b.journal.refuse = map[string]error{call: task.ErrNotOwner}
			_, err := b.Run(t.Context(), b.task)
			check(t, "error", err, nil)
			check(t, "number of hooks", len(b.hooksRun()), 0)
		})
	}
}

// If the budget ends while a hook runs, no further attempt begins.
func TestABudgetThatEndsInAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, func(p *task.Policy) { p.Budget = 30 * time.Second }, exit(7))
		b.withHooks(time.Minute, nil)
		result, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "status", b.task.Status, task.Exhausted)
		check(t, "reason", b.task.Reason, task.ReasonBudget)
		check(t, "exit code", result.ExitCode(), 7)
		check(t, "number of starts", len(b.executor.starts), 1)
		check(t, "journal", b.journal.log, []string{"claim", "record retry PENDING", "settle exhausted EXHAUSTED"})
		check(t, "hooks", b.hooksRun(), []string{"on-retry PENDING", "on-failure EXHAUSTED"})
	})
}

// A hook ends in time: after its timeout, and between attempts with the budget. The last one is the alert, so that it
// has its timeout whatever the budget says.
func TestHooksEndInTime(t *testing.T) {
	const late, over = `hook "on-retry": timed out after `, `hook "on-retry": stopped at the end of the budget`
	tests := []struct {
		name            string
		timeout, budget time.Duration
		warnings        []string
		takes           time.Duration
	}{
		{"default", 0, 0, []string{late + "30s", `hook "on-failure": timed out after 30s`}, 62 * time.Second},
		{"its own", time.Minute, 0, []string{late + "1m", `hook "on-failure": timed out after 1m`}, 122 * time.Second},
		{"the budget", time.Minute, 20 * time.Second, []string{over, `hook "on-failure": timed out after 1m`},
			80 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, func(p *task.Policy) { p.Attempts, p.Budget = 2, tt.budget }, exit(7))
				b.withHooks(1001*time.Second, nil)
				b.task.Options.HookTimeout = tt.timeout
				begun := time.Now()
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "exit code", result.ExitCode(), 7)
				check(t, "warnings", b.observer.warnings, tt.warnings)
				check(t, "time", time.Since(begun), tt.takes)
			})
		})
	}
}

// The on-start hook runs once, before the first attempt, and again for the fresh attempts of a requeued task.
func TestOnStart(t *testing.T) {
	tests := []struct {
		name   string
		before func(*task.Task)
		want   []string
	}{
		{"new", func(*task.Task) {}, []string{"on-start PENDING"}},
		{"resumed", func(t *task.Task) { t.AttemptCount = 1 }, nil},
		{"requeued", func(t *task.Task) { t.AttemptCount, t.RequeuedAfter = 5, 5 }, []string{"on-start PENDING"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, nil, exit(1), exit(0))
				b.Hooks, b.task.Options.OnStart = &hooks{events: b.events}, "on-start"
				tt.before(b.task)
				_, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "hooks", b.hooksRun(), tt.want)
				if tt.want != nil && b.lines[0] != "hook on-start PENDING" {
					t.Errorf("got %q, want the hook first", b.lines)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // a signal in it ends the run before anything began
		b := newRig(t, nil, exit(0))
		b.Hooks, b.task.Options.OnStart = &hooks{events: b.events, takes: time.Hour}, "on-start"
		b.after(time.Second, syscall.SIGTERM)
		result, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "signal", result.Signal, os.Signal(syscall.SIGTERM))
		check(t, "number of starts", len(b.executor.starts), 0)
	})
}

// A resume that finds no attempt left runs the hooks that the interrupted run would have run.
func TestHooksOfAResume(t *testing.T) {
	tests := []struct {
		name   string
		change func(*task.Policy)
		before func(*rig)
		want   []string
	}{
		{"crashes", nil, func(b *rig) {
			b.task.Status, b.task.AttemptCount, b.task.History.Crashes = task.InFlight, 3, 2
			b.task.Last = task.Attempt{Number: 3, Outcome: task.Crashed()}
		}, []string{"on-failure EXHAUSTED"}},
		{"budget", func(p *task.Policy) { p.Budget = time.Minute }, func(b *rig) {
			b.task.AttemptCount = 1
			time.Sleep(time.Hour)
		}, []string{"on-failure EXHAUSTED"}},
		{"goes on", nil, func(b *rig) { b.task.AttemptCount = 1 }, []string{"on-success SUCCEEDED"}},
		{"cancelled meanwhile", func(p *task.Policy) { p.Budget = time.Minute }, func(b *rig) {
			b.task.AttemptCount = 1
			b.journal.refuse = map[string]error{"settle": task.ErrNotOwner}
			time.Sleep(time.Hour)
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, tt.change, exit(0))
				b.withHooks(0, nil)
				tt.before(b)
				_, err := b.Resume(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "hooks", b.hooksRun(), tt.want)
			})
		})
	}
}

// A worker runs --on-start before the first attempt that begins, and not before the first that it claims.
func TestHasBegun(t *testing.T) {
	cutOff := task.Decision{Verdict: task.VerdictInterrupted}
	unbegun := task.Attempt{Decision: cutOff, Outcome: task.Outcome{Exit: task.ExitInternal}}
	killed := task.Attempt{Decision: cutOff, Outcome: task.Crashed()}
	begun, sent := killed, unbegun
	begun.Process, sent.Outcome.Exit = "token", 7
	for name, tt := range map[string]struct {
		attempts, before, interrupted int
		last                          task.Attempt
		target                        task.Target
		want                          bool
	}{
		"new":                     {},
		"requeued":                {attempts: 3, before: 3, last: begun},
		"cut off before":          {attempts: 1, interrupted: 1, last: unbegun},
		"killed before":           {attempts: 1, interrupted: 1, last: killed},
		"killed twice before":     {attempts: 5, before: 3, interrupted: 2, last: killed},
		"killed":                  {attempts: 1, interrupted: 1, last: begun, want: true},
		"failed, then killed":     {attempts: 2, interrupted: 1, last: killed, want: true},
		"a request, killed":       {attempts: 1, interrupted: 1, last: killed, target: &request.Request{}, want: true},
		"a safe one, killed":      {attempts: 1, interrupted: 1, last: killed, target: &request.Request{Method: "PUT"}},
		"a request that was sent": {attempts: 1, interrupted: 1, last: sent, target: &request.Request{}, want: true},
	} {
		tk := &task.Task{AttemptCount: tt.attempts, RequeuedAfter: tt.before, Last: tt.last, Target: tt.target}
		tk.History.Interrupted = tt.interrupted
		check(t, name, hasBegun(tk), tt.want)
	}
}
