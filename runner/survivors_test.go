package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/task"
)

// tooManyLooks ends a test that would otherwise never end.
const tooManyLooks = 10_000

// leftovers is a Survivors with a process that ends by itself or of a signal.
type leftovers struct {
	*events
	none     bool
	unwanted bool
	lasts    time.Duration                  // from the first look on; 0 = for ever
	dieOf    map[os.Signal]int              // how many of these signals end it
	begun    time.Time                      // the first look
	looks    []time.Duration                // since then
	signals  []string                       // with their times since then
	asked    map[int]bool                   // the attempts that were asked for
	got      map[os.Signal]int              // signals
	wrong    func(*task.Task, task.Attempt) // called by Find
	unseen   error                          // what Find returns where it finds nothing
	hook     time.Duration                  // how long what a hook has left lasts, from the first look for it on
}

func (l *leftovers) Find(t *task.Task, a task.Attempt) (string, error) {
	if l.begun.IsZero() {
		l.begun, l.asked, l.got = time.Now(), map[int]bool{}, map[os.Signal]int{}
	}
	l.asked[a.Number] = true
	l.looks = append(l.looks, time.Since(l.begun))
	if l.wrong != nil {
		l.wrong(t, a)
	}
	if l.none || len(l.looks) > tooManyLooks {
		return "", l.unseen
	}
	for sig, n := range l.dieOf {
		if l.got[sig] >= n {
			return "", l.unseen
		}
	}
	if l.lasts != 0 && time.Since(l.begun) >= l.lasts {
		return "", l.unseen
	}
	return "process 42", nil
}

func (l *leftovers) Signal(_ *task.Task, _ task.Attempt, sig os.Signal) {
	if l.got == nil {
		l.got = map[os.Signal]int{}
	}
	l.got[sig]++
	l.signals = append(l.signals, fmt.Sprint(sig, " at ", time.Since(l.begun)))
}

func (l *leftovers) FindUnrecorded(*task.Task) (string, error) {
	if l.hook == 0 {
		return "", nil
	}
	if l.begun.IsZero() {
		l.begun = time.Now()
	}
	if time.Since(l.begun) >= l.hook {
		return "", nil
	}
	return "process 43", nil
}

func (l *leftovers) Unwanted() bool { return l.unwanted }

// resumed returns a rig whose task was interrupted in its second attempt.
func resumed(t *testing.T, l *leftovers, change func(*task.Policy)) *rig {
	b := newRig(t, change, exit(0))
	b.task.Status, b.task.AttemptCount, b.task.Number = task.InFlight, 2, 1
	b.task.Last = task.Attempt{Number: 2, Process: "token", Outcome: task.Outcome{Exit: task.NoExit}}
	b.Survivors, l.events = l, b.events
	return b
}

// Two attempts never run at the same time: the next one begins when no process of the former runs.
func TestAResumeWaitsForSurvivors(t *testing.T) {
	for _, lasts := range []time.Duration{time.Nanosecond, time.Second, time.Hour} {
		t.Run(lasts.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leftovers{lasts: lasts}
				l.wrong = func(_ *task.Task, a task.Attempt) {
					check(t, "a.Number", a.Number, 2)
					check(t, "a.Process", a.Process, "token")
				}
				b := resumed(t, l, nil)
				begun := time.Now()
				result, err := b.Resume(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "exit code", result.ExitCode(), 0)
				check(t, "attempts", b.task.AttemptCount, 3)
				if waited := b.executor.begun.Sub(begun); waited < lasts || waited > lasts+slowestLook {
					t.Errorf("waited: got %v, want %v to %v", waited, lasts, lasts+slowestLook)
				}
				want := []string{"record interrupted PENDING", "warning", "claim", "started",
					"record succeeded SUCCEEDED", "flush SUCCEEDED", "ended succeeded", "finished succeeded"}
				if !slices.Equal(b.lines, want) {
					t.Errorf("got  %q\nwant %q", b.lines, want)
				}
				w := strings.Join(b.observer.warnings, "|")
				if !strings.HasPrefix(w, "attempt 2 left process 42 running") ||
					!strings.Contains(w, "\nhint: --kill-orphans ") {
					t.Errorf("got warnings %q, want process 42 and a hint", w)
				}
				check(t, "number of warnings", len(b.observer.warnings), 1)
				check(t, "number of signals", len(l.signals), 0)
			})
		})
	}
}

// Nor does an attempt begin beside what a hook has left that was killed with its retry, or an attempt that the journal
// does not know, whatever became of the one before.
func TestAResumeWaitsForWhatAHookLeft(t *testing.T) {
	for _, verdict := range []task.Verdict{task.VerdictRetry, task.VerdictInterrupted} {
		synctest.Test(t, func(t *testing.T) { resumeAfterAHook(t, verdict) })
	}
}

func resumeAfterAHook(t *testing.T, verdict task.Verdict) {
	b := resumed(t, &leftovers{none: true, hook: time.Minute}, nil)
	b.task.Status, b.task.Last.Decision = task.Pending, task.Decision{Verdict: verdict}
	b.task.Last.Outcome.Exit = 1
	begun := time.Now()
	_, err := b.Resume(t.Context(), b.task)
	check(t, "error", err, nil)
	if waited := b.executor.begun.Sub(begun); waited < time.Minute {
		t.Errorf("waited: got %v, want a minute at least", waited)
	}
	const want = "a hook, a nested retry, or an attempt that is not in the journal, left process 43 running"
	if w := b.observer.warnings; len(w) != 1 || !strings.HasPrefix(w[0], want) {
		t.Errorf("got warnings %q, want that of process 43", w)
	}
}

// Where nobody can see whether something survives, no attempt begins, now or later.
func TestAResumeRefusesWhereItCannotSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unseen := errors.New("another namespace")
		b := resumed(t, &leftovers{none: true, unseen: unseen}, nil)
		_, err := b.Resume(t.Context(), b.task)
		if !errors.Is(err, unseen) || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("got error %v, want %v and a hint", err, unseen)
		}
		check(t, "status", b.task.Status, task.Pending)
		check(t, "claims", b.journal.claims, 0)
	})
}

// The first looks follow soon, the later ones more rarely, at least once a second.
func TestSurvivorsAreLookedForLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{lasts: time.Minute}
		b := resumed(t, l, nil)
		_, _ = b.Resume(t.Context(), b.task)
		looks := slices.Compact(l.looks)
		for i := 2; i < len(looks); i++ {
			before, gap := looks[i-1]-looks[i-2], looks[i]-looks[i-1]
			if gap < before || gap > time.Second {
				t.Errorf("look %d: got a pause of %v, want %v to 1s", i, gap, before)
			}
		}
		if looks[1] > 100*time.Millisecond || len(looks) < 60 || len(looks) > 80 {
			t.Errorf("got %d looks, the second after %v, want 60 to 80, the second soon", len(looks), looks[1])
		}
	})
}

// Without survivors there is no warning and no wait.
func TestNoSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{none: true, unwanted: true}
		b := resumed(t, l, nil)
		begun := time.Now()
		_, _ = b.Resume(t.Context(), b.task)
		check(t, "begin", b.executor.begun, begun)
		check(t, "number of warnings", len(b.observer.warnings), 0)
		check(t, "number of signals", len(l.signals), 0)
		check(t, "number of looks", len(l.looks), 1)
	})
}

// Survivors are looked for only after an interrupted attempt: any other attempt has ended by itself.
func TestSurvivorsAreAskedForAfterAnInterruption(t *testing.T) {
	last := func(v task.Verdict) func(*task.Task) {
		return func(tk *task.Task) {
			tk.Status = task.Pending
			tk.Last = task.Attempt{Number: 2, Outcome: exit(1), Decision: task.Decision{Verdict: v}}
		}
	}
	died := func(signal string, e task.ErrorClass) func(*task.Task) {
		return func(tk *task.Task) {
			last(task.VerdictRetry)(tk)
			tk.Last.Outcome = task.Outcome{Exit: 143, Signal: signal, Error: e}
		}
	}
	tests := []struct {
		name   string
		change func(*task.Policy)
		before func(*task.Task)
		asked  bool
	}{
		{"in flight", nil, func(*task.Task) {}, true},
		{"in flight, the second crash", nil, func(t *task.Task) { t.History.Crashes = 1 }, true},
		{"stopped in an attempt", nil, last(task.VerdictInterrupted), true},
		{"cancelled in an attempt, then requeued", nil, last(task.VerdictCancelled), true},
		{"waiting", nil, last(task.VerdictRetry), false},
		{"waiting after a TERM, which may have been sent to all", nil, died("SIGTERM", task.ErrorNone), true},
		{"waiting after a crash of the command", nil, died("SIGSEGV", task.ErrorNone), false},
		{"waiting after a timeout, which has stopped all", nil, died("SIGTERM", task.ErrorTimeout), false},
		{"before the first attempt", nil,
			func(t *task.Task) { t.Status, t.AttemptCount, t.Last = task.Pending, 0, task.Attempt{} }, false},
		{"exhausted by crashes", nil, func(t *task.Task) { t.History.Crashes = 2 }, false},
		{"exhausted by its budget", func(p *task.Policy) { p.Budget = time.Minute },
			func(*task.Task) { time.Sleep(time.Hour) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leftovers{lasts: time.Second}
				b := resumed(t, l, tt.change)
				tt.before(b.task)
				_, err := b.Resume(t.Context(), b.task)
				if asked := len(l.looks) > 0; err != nil || asked != tt.asked || !b.task.Status.Finished() {
					t.Errorf("got error %v, asked %v, status %s, want asked %v", err, asked, b.task.Status, tt.asked)
				}
			})
		})
	}
}

// Run does not look for survivors of its own attempts.
func TestARunAsksForNoSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{}
		b := newRig(t, nil, exit(1), exit(0))
		b.Survivors = l
		_, _ = b.Run(t.Context(), b.task)
		if len(l.looks) > 0 {
			t.Errorf("got looks at %v, want none", l.looks)
		}
	})
}

func TestUnwantedSurvivors(t *testing.T) {
	tests := []struct {
		name      string
		killAfter time.Duration
		dieOf     map[os.Signal]int
		want      []string
		begins    time.Duration // the next attempt, at the latest
	}{
		{"die of TERM", 5 * time.Second, map[os.Signal]int{syscall.SIGTERM: 1}, []string{"terminated at 0s"}, 0},
		{"die of KILL", 5 * time.Second, map[os.Signal]int{syscall.SIGKILL: 1},
			[]string{"terminated at 0s", "killed at 5s"}, 6 * time.Second},
		{"at once", 0, map[os.Signal]int{syscall.SIGKILL: 1}, []string{"terminated at 0s", "killed at 0s"},
			time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leftovers{unwanted: true, dieOf: tt.dieOf}
				b := resumed(t, l, func(p *task.Policy) { p.KillAfter = tt.killAfter })
				begun := time.Now()
				result, err := b.Resume(t.Context(), b.task)
				if waited := b.executor.begun.Sub(begun); err != nil || result.ExitCode() != 0 || waited > tt.begins {
					t.Errorf("got %+v, error %v after %v, want a success after at most %v", result, err, waited,
						tt.begins)
				}
				check(t, "signals", l.signals, tt.want)
				w := strings.Join(b.observer.warnings, "|")
				if !strings.HasPrefix(w, "attempt 2 left process 42 running") || strings.Contains(w, "hint") {
					t.Errorf("got warnings %q, want process 42 and no hint", w)
				}
				check(t, "number of warnings", len(b.observer.warnings), 1)
			})
		})
	}
}

// A process that was started while the others were killed gets a signal too.
func TestSurvivorsAreKilledUntilNoneIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{unwanted: true, dieOf: map[os.Signal]int{syscall.SIGKILL: 4}}
		b := resumed(t, l, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result, err := b.Resume(ctx, b.task)
		check(t, "error", err, nil)
		check(t, "exit code", result.ExitCode(), 0)
		check(t, "l.got[syscall.SIGKILL]", l.got[syscall.SIGKILL], 4)
		check(t, "l.got[syscall.SIGTERM]", l.got[syscall.SIGTERM], 1)
	})
}

// A signal ends the wait for survivors like any other wait. The task can be resumed, or is cancelled.
func TestASignalEndsTheWaitForSurvivors(t *testing.T) {
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
		for _, unwanted := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.sig, " unwanted ", unwanted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := resumed(t, &leftovers{unwanted: unwanted}, nil)
					b.after(90*time.Second, tt.sig)
					begun := time.Now()
					result, err := b.Resume(t.Context(), b.task)
					check(t, "error", err, nil)
					check(t, "signal", result.Signal, tt.sig)
					check(t, "death signal", result.DeathSignal(), tt.sig)
					check(t, "status", b.task.Status, tt.status)
					check(t, "claims", b.journal.claims, 0)
					check(t, "time", time.Since(begun), 90*time.Second)
					check(t, "journal", b.journal.log, []string{"record interrupted PENDING", tt.log})
				})
			})
		}
	}
}

// HUP on a terminal says that somebody has closed it: the task keeps that, until another attempt begins.
func TestTheReasonOfAHangUp(t *testing.T) {
	tests := []struct {
		sig      os.Signal
		terminal bool
		want     task.Reason
	}{
		{syscall.SIGHUP, true, task.ReasonHangup},
		{syscall.SIGHUP, false, ""},
		{syscall.SIGTERM, true, ""},
		{syscall.SIGINT, true, task.ReasonCancelled},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.sig, " on a terminal ", tt.terminal), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := resumed(t, &leftovers{}, nil)
				b.Terminal = tt.terminal
				b.after(time.Second, tt.sig)
				_, err := b.Resume(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "reason", b.task.Reason, tt.want)
			})
			synctest.Test(t, func(t *testing.T) {
				stopped := exit(129)
				stopped.Stop = tt.sig
				b := newRig(t, nil, stopped)
				b.Terminal = tt.terminal
				_, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "reason of an attempt", b.task.Reason, tt.want)
			})
		})
	}
}

// With TERM it is the end of a session.
func TestAHangUpWithTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{}, nil)
		b.Terminal = true
		b.after(time.Second, syscall.SIGHUP)
		b.after(time.Second+TogetherDelay/2, syscall.SIGTERM)
		_, err := b.Resume(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "reason", b.task.Reason, task.Reason(""))
	})
}

func TestTheContextEndsTheWaitForSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result, err := b.Resume(ctx, b.task)
		check(t, "error", err, nil)
		check(t, "verdict", result.Decision.Verdict, task.VerdictInterrupted)
		check(t, "status", b.task.Status, task.Pending)
		check(t, "claims", b.journal.claims, 0)
	})
}

// After a resume that was stopped during the wait for survivors, the next resume looks for them again.
func TestTheNextResumeAsksForSurvivorsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &leftovers{}, &leftovers{lasts: time.Second}
		b := resumed(t, first, nil)
		b.after(time.Minute, syscall.SIGTERM)
		_, err := b.Resume(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "status", b.task.Status, task.Pending)
		b.Survivors = second
		result, err := b.Resume(t.Context(), b.task)
		if err != nil || result.ExitCode() != 0 || len(second.looks) < 2 || !second.asked[2] || len(second.asked) != 1 {
			t.Errorf("got %+v, error %v, looks %v at %v, want only at attempt 2", result, err, second.looks,
				second.asked)
		}
	})
}

// The delay before the next attempt runs during the wait for survivors.
func TestSurvivorsAreInsideTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{lasts: 20 * time.Second}, nil)
		b.task.Status, b.task.Last.Decision = task.Pending, task.Decision{Verdict: task.VerdictInterrupted}
		b.task.NextAttemptAt, b.task.History.Delay = time.Now().Add(time.Minute), time.Minute
		begun := time.Now()
		_, _ = b.Resume(t.Context(), b.task)
		check(t, "wait", b.executor.begun.Sub(begun), time.Minute)
	})
}

// If the survivors run until the budget has ended, no further attempt begins, and nobody waits any more.
func TestABudgetThatEndsWithSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{lasts: time.Hour}, func(p *task.Policy) { p.Budget = time.Minute })
		begun := time.Now()
		result, err := b.Resume(t.Context(), b.task)
		if waited := time.Since(begun); waited > time.Minute {
			t.Errorf("waited %v, want the minute of the budget at most", waited)
		}
		check(t, "error", err, nil)
		check(t, "status", b.task.Status, task.Exhausted)
		check(t, "reason", b.task.Reason, task.ReasonBudget)
		check(t, "claims", b.journal.claims, 0)
		if result.ExitCode() == 0 {
			t.Error("got exit code 0, want another")
		}
	})
}

// A resume ends if another process cancelled the task before the crash was recorded. What the attempt has left is
// stopped: that process knew of this one alone.
func TestAResumeLeavesATakenTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{}
		b := resumed(t, l, nil)
		b.journal.refuse = map[string]error{"record": task.ErrNotOwner}
		result, err := b.Resume(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "verdict", result.Decision.Verdict, task.VerdictCancelled)
		check(t, "status", b.task.Status, task.Cancelled)
		check(t, "number of looks", len(l.looks), 0)
		check(t, "TERM", l.got[syscall.SIGTERM], 1)
		check(t, "claims", b.journal.claims, 0)
	})
	synctest.Test(t, func(t *testing.T) { // after the crash was recorded: the signal comes while it waits
		l := &leftovers{}
		b := resumed(t, l, nil)
		b.journal.refuse = map[string]error{"settle": task.ErrNotOwner}
		b.after(time.Second, syscall.SIGTERM)
		_, err := b.Resume(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "status", b.task.Status, task.Cancelled)
		check(t, "TERM", l.got[syscall.SIGTERM], 1)
	})
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{}, nil)
		b.journal.refuse = map[string]error{"record": errors.New("disk full")}
		if _, err := b.Resume(t.Context(), b.task); err == nil || b.journal.claims != 0 {
			t.Errorf("got error %v, %d claims, want an error and none", err, b.journal.claims)
		}
	})
}
