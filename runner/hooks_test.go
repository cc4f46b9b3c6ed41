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

	"github.com/10f93571/retry/task"
)

// hooks is a Hooks that notes what it is asked to run.
type hooks struct {
	*diary
	takes time.Duration
	err   error
}

func (h *hooks) Run(_ context.Context, t *task.Task, command string, signals <-chan os.Signal) (os.Signal, error) {
	h.note("hook " + command + " " + string(t.Status))
	for end := time.After(h.takes); ; {
		select {
		case <-end:
			return nil, h.err
		case sig := <-signals:
			if task.Stops(sig) {
				return sig, h.err
			}
		}
	}
}

// withHooks has the task want all of them.
func (b *bench) withHooks(takes time.Duration, err error) {
	b.Hooks = &hooks{diary: b.diary, takes: takes, err: err}
	b.task.Options.OnRetry, b.task.Options.OnSuccess, b.task.Options.OnFailure = "on-retry", "on-success", "on-failure"
}

// hooksRun are the hooks that have run, each with the task's status.
func (b *bench) hooksRun() (ran []string) {
	for _, line := range b.lines {
		if hook, ok := strings.CutPrefix(line, "hook "); ok {
			ran = append(ran, hook)
		}
	}
	return ran
}

// after sends a signal when so much time has passed.
func (b *bench) after(d time.Duration, sig os.Signal) {
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
		{"a rescue", nil, []task.Outcome{exit(1), exit(1), exit(0)}, []string{"on-retry PENDING", "on-retry PENDING", "on-success SUCCEEDED"}},
		{"one success of two", func(p *task.Policy) { p.Consecutive = 2 }, []task.Outcome{exit(0)}, []string{"on-retry PENDING", "on-success SUCCEEDED"}},
		{"attempts used up", func(p *task.Policy) { p.Attempts = 2 }, []task.Outcome{exit(1)}, []string{"on-retry PENDING", "on-failure EXHAUSTED"}},
		{"budget used up", func(p *task.Policy) { p.Budget = time.Millisecond }, []task.Outcome{exit(1)}, []string{"on-failure EXHAUSTED"}},
		{"not eligible", nil, []task.Outcome{{Exit: 127, Error: task.ErrorNotFound}}, []string{"on-failure FAILED"}},
		{"final", nil, []task.Outcome{{Exit: 1, Final: true}}, []string{"on-failure FAILED"}},
		{"INT in the attempt", nil, []task.Outcome{stopping(130, syscall.SIGINT)}, nil},
		{"TERM in the attempt", nil, []task.Outcome{stopping(143, syscall.SIGTERM)}, nil},
		{"INT in a later attempt", nil, []task.Outcome{exit(1), stopping(130, syscall.SIGINT)}, []string{"on-retry PENDING"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.change, tt.outcomes...)
				b.executor.plain = true
				b.withHooks(0, nil)
				if _, err := b.Run(t.Context(), b.task); err != nil || !slices.Equal(b.hooksRun(), tt.want) {
					t.Errorf("%v, ran %q, want %q", err, b.hooksRun(), tt.want)
				}
			})
		})
	}
}

// A task that wants none has none run, and a runner that cannot run any ignores them.
func TestNoHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, exit(1), exit(0))
		b.Hooks = &hooks{diary: b.diary}
		if _, err := b.Run(t.Context(), b.task); err != nil || b.hooksRun() != nil {
			t.Errorf("%v, ran %q", err, b.hooksRun())
		}
		b = newBench(t, nil, exit(1), exit(0))
		b.withHooks(0, nil)
		b.Hooks = nil
		if _, err := b.Run(t.Context(), b.task); err != nil || len(b.witness.warnings) > 0 || b.task.Status != task.Succeeded {
			t.Errorf("%v, %q, %s", err, b.witness.warnings, b.task.Status)
		}
	})
}

// A hook runs after what it is about is written down and told, so that it can ask the journal or send the report.
func TestHooksAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, exit(1), exit(0))
		b.withHooks(0, nil)
		if _, err := b.Run(t.Context(), b.task); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"claim", "started", "record retry PENDING", "release PENDING", "ended retry", "hook on-retry PENDING",
			"claim", "started", "record succeeded SUCCEEDED", "release SUCCEEDED", "ended succeeded", "finished succeeded", "hook on-success SUCCEEDED",
		}
		if !slices.Equal(b.lines, want) {
			t.Errorf("got  %q\nwant %q", b.lines, want)
		}
	})
}

// The delay counts from the end of the attempt: a hook takes its time from it, and does not put the next attempt off.
func TestAHookIsInsideTheDelay(t *testing.T) {
	tests := []struct{ takes, second time.Duration }{
		{0, 11 * time.Second}, {4 * time.Second, 11 * time.Second}, {10 * time.Second, 11 * time.Second}, {25 * time.Second, 26 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil, exit(1), exit(0))
				b.withHooks(tt.takes, nil)
				_, _ = b.Run(t.Context(), b.task)
				if want := []time.Duration{0, tt.second}; !slices.Equal(b.executor.starts, want) {
					t.Errorf("attempts started at %v, want %v", b.executor.starts, want)
				}
			})
		})
	}
}

func TestAFailingHookIsAWarning(t *testing.T) {
	for _, last := range []task.Outcome{exit(0), exit(7)} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(p *task.Policy) { p.Attempts = 2 }, exit(1), last)
			plain := newBench(t, func(p *task.Policy) { p.Attempts = 2 }, exit(1), last)
			failure := errors.New("exit status 3")
			b.withHooks(time.Second, failure)
			result, err := b.Run(t.Context(), b.task)
			same, _ := plain.Run(t.Context(), plain.task)
			if err != nil || result.ExitCode() != same.ExitCode() || result.Decision != same.Decision || result.Signal != nil || b.task.Status != plain.task.Status {
				t.Errorf("%+v, %v, %s; without hooks %+v, %s", result, err, b.task.Status, same, plain.task.Status)
			}
			if !slices.Equal(b.journal.log, plain.journal.log) || !slices.Equal(b.witness.log, plain.witness.log) {
				t.Errorf("journal %q, told %q", b.journal.log, b.witness.log)
			}
			if w := b.witness.warnings; len(w) != 2 || w[0] != `hook "on-retry": exit status 3` {
				t.Errorf("warnings %q", w)
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
				b := newBench(t, nil, exit(7))
				b.withHooks(5*time.Second, nil)
				b.after(3*time.Second, tt.sig)
				begun := time.Now()
				result, err := b.Run(t.Context(), b.task)
				if err != nil || result.Signal != tt.sig || result.DeathSignal() != tt.sig || result.ExitCode() != tt.code || b.task.Status != tt.status {
					t.Errorf("%+v, %v, %s", result, err, b.task.Status)
				}
				if took := time.Since(begun); took != 3*time.Second || b.journal.claims != 1 {
					t.Errorf("ended after %v and %d claims", took, b.journal.claims)
				}
				if last := b.journal.log[len(b.journal.log)-1]; last != tt.log {
					t.Errorf("journal: %q", last)
				}
				if due := begun.Add(11 * time.Second); tt.status == task.Pending && !b.task.NextAttemptAt.Equal(due) {
					t.Errorf("next attempt at %v, was due at %v", b.task.NextAttemptAt, due)
				}
				if ran := b.hooksRun(); len(ran) != 1 || len(b.witness.warnings) > 0 {
					t.Errorf("ran %q, warned %q", ran, b.witness.warnings)
				}
			})
		})
	}
}

// What happened to the task has happened. But retry dies of a signal in its last hook, as a shell would that ran both.
func TestASignalInALastHook(t *testing.T) {
	for _, code := range []int{0, 7} {
		for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(p *task.Policy) { p.Attempts = 1 }, exit(code))
				b.withHooks(time.Hour, nil)
				b.after(3*time.Second, sig)
				result, err := b.Run(t.Context(), b.task)
				if err != nil || result.ExitCode() != code || result.DeathSignal() != sig || !b.task.Status.Finished() || b.task.Status == task.Cancelled {
					t.Errorf("%v, exit %d: %+v, %v, %s", sig, code, result, err, b.task.Status)
				}
				if want := "record " + string(b.task.Last.Decision.Verdict) + " " + string(b.task.Status); b.journal.log[len(b.journal.log)-1] != want {
					t.Errorf("journal %q", b.journal.log)
				}
			})
		}
	}
}

// A signal that ended the run has the last word: who sent it waits for the end, not for a hook.
func TestNoHookAfterASignal(t *testing.T) {
	t.Run("in a wait", func(t *testing.T) {
		for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil, exit(1))
				b.withHooks(0, nil)
				b.after(4*time.Second, sig)
				_, _ = b.Run(t.Context(), b.task)
				if ran := b.hooksRun(); len(ran) != 1 {
					t.Errorf("%v: ran %q", sig, ran)
				}
			})
		}
	})
	t.Run("with the end of the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil, exit(1))
			b.withHooks(0, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, _ = b.Run(ctx, b.task)
			if ran := b.hooksRun(); len(ran) != 1 {
				t.Errorf("ran %q", ran)
			}
		})
	})
}

// Who cancelled the task wanted it to end; it did not fail.
func TestNoHookForATakenTask(t *testing.T) {
	for _, call := range []string{"claim", "record"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(p *task.Policy) { p.Attempts = 1 }, exit(1))
			b.withHooks(0, nil)
			b.journal.refuse = map[string]error{call: task.ErrNotOwner}
			if _, err := b.Run(t.Context(), b.task); err != nil || b.hooksRun() != nil {
				t.Errorf("%s: %v, ran %q", call, err, b.hooksRun())
			}
		})
	}
}

// A budget that ends while a hook runs ends the task: no attempt begins that would be stopped at once.
func TestABudgetThatEndsInAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(p *task.Policy) { p.Budget = 30 * time.Second }, exit(7))
		b.withHooks(time.Minute, nil)
		result, err := b.Run(t.Context(), b.task)
		if err != nil || b.task.Status != task.Exhausted || b.task.Reason != task.ReasonBudget || result.ExitCode() != 7 || len(b.executor.starts) != 1 {
			t.Errorf("%+v, %v, %s (%s) after attempts at %v", result, err, b.task.Status, b.task.Reason, b.executor.starts)
		}
		if want := []string{"claim", "record retry PENDING", "settle exhausted EXHAUSTED"}; !slices.Equal(b.journal.log, want) {
			t.Errorf("journal: %q", b.journal.log)
		}
		if want := []string{"on-retry PENDING", "on-failure EXHAUSTED"}; !slices.Equal(b.hooksRun(), want) {
			t.Errorf("ran %q", b.hooksRun())
		}
	})
}

// The hooks of a task that a resume finds used up are run as by the run that would have seen it.
func TestHooksOfAResume(t *testing.T) {
	tests := []struct {
		name   string
		change func(*task.Policy)
		before func(*bench)
		want   []string
	}{
		{"crashes", nil, func(b *bench) {
			b.task.Status, b.task.AttemptCount, b.task.History.Crashes = task.InFlight, 3, 2
			b.task.Last = task.Attempt{Number: 3, Outcome: task.Crashed()}
		}, []string{"on-failure EXHAUSTED"}},
		{"budget", func(p *task.Policy) { p.Budget = time.Minute }, func(b *bench) {
			b.task.AttemptCount = 1
			time.Sleep(time.Hour)
		}, []string{"on-failure EXHAUSTED"}},
		{"goes on", nil, func(b *bench) { b.task.AttemptCount = 1 }, []string{"on-success SUCCEEDED"}},
		{"cancelled meanwhile", func(p *task.Policy) { p.Budget = time.Minute }, func(b *bench) {
			b.task.AttemptCount = 1
			b.journal.refuse = map[string]error{"settle": task.ErrNotOwner}
			time.Sleep(time.Hour)
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.change, exit(0))
				b.withHooks(0, nil)
				tt.before(b)
				if _, err := b.Resume(t.Context(), b.task); err != nil || !slices.Equal(b.hooksRun(), tt.want) {
					t.Errorf("%v, ran %q, want %q", err, b.hooksRun(), tt.want)
				}
			})
		})
	}
}
