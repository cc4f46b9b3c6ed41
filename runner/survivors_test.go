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

// tooManyLooks makes a test fail that would never end.
const tooManyLooks = 10_000

// leftovers is what an attempt left running: it ends by itself at a time, or of a signal.
type leftovers struct {
	*diary
	none     bool
	unwanted bool
	lasts    time.Duration                  // from the first look on; 0 = for ever
	dieOf    map[os.Signal]int              // how many of that signal it takes
	begun    time.Time                      // the first look
	looks    []time.Duration                // since then
	signals  []string                       // with their times since then
	asked    map[int]bool                   // the attempts that were asked for
	got      map[os.Signal]int              // signals
	wrong    func(*task.Task, task.Attempt) // called where a question is asked
}

func (l *leftovers) Find(t *task.Task, a task.Attempt) string {
	if l.begun.IsZero() {
		l.begun, l.asked, l.got = time.Now(), map[int]bool{}, map[os.Signal]int{}
	}
	l.asked[a.Number] = true
	l.looks = append(l.looks, time.Since(l.begun))
	if l.wrong != nil {
		l.wrong(t, a)
	}
	if l.none || len(l.looks) > tooManyLooks {
		return ""
	}
	for sig, n := range l.dieOf {
		if l.got[sig] >= n {
			return ""
		}
	}
	if l.lasts != 0 && time.Since(l.begun) >= l.lasts {
		return ""
	}
	return "process 42"
}

func (l *leftovers) Signal(_ *task.Task, _ task.Attempt, sig os.Signal) {
	l.got[sig]++
	l.signals = append(l.signals, fmt.Sprint(sig, " at ", time.Since(l.begun)))
}

func (l *leftovers) Unwanted() bool { return l.unwanted }

// resumed returns a bench whose task was interrupted in its second attempt.
func resumed(t *testing.T, l *leftovers, change func(*task.Policy)) *bench {
	b := newBench(t, change, exit(0))
	b.task.Status, b.task.AttemptCount, b.task.Number = task.InFlight, 2, 1
	b.task.Last = task.Attempt{Number: 2, Process: "token", Outcome: task.Outcome{Exit: task.NoExit}}
	b.Survivors, l.diary = l, b.diary
	return b
}

// Two attempts never run at once: the next one begins when the last of the former is gone.
func TestAResumeWaitsForSurvivors(t *testing.T) {
	for _, lasts := range []time.Duration{time.Nanosecond, time.Second, time.Hour} {
		t.Run(lasts.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leftovers{lasts: lasts}
				l.wrong = func(_ *task.Task, a task.Attempt) {
					if a.Number != 2 || a.Process != "token" {
						t.Errorf("looked for %+v", a)
					}
				}
				b := resumed(t, l, nil)
				begun := time.Now()
				result, err := b.Resume(t.Context(), b.task)
				if err != nil || result.ExitCode() != 0 || b.task.AttemptCount != 3 {
					t.Errorf("%+v, %v, after %d attempts", result, err, b.task.AttemptCount)
				}
				if waited := b.executor.begun.Sub(begun); waited < lasts || waited > lasts+slowestLook {
					t.Errorf("waited %v", waited)
				}
				want := []string{"record interrupted PENDING", "warning", "claim", "started", "record succeeded SUCCEEDED", "release SUCCEEDED", "ended succeeded", "finished succeeded"}
				if !slices.Equal(b.lines, want) {
					t.Errorf("got  %q\nwant %q", b.lines, want)
				}
				if w := b.witness.warnings; len(w) != 1 || !strings.Contains(w[0], "attempt 2 left process 42 running") || !strings.Contains(w[0], "\nhint: --kill-orphans ") {
					t.Errorf("warnings %q", w)
				}
				if l.signals != nil {
					t.Errorf("sent %q", l.signals)
				}
			})
		})
	}
}

// Soon after the start, then ever more rarely, at least once a second.
func TestSurvivorsAreLookedForLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{lasts: time.Minute}
		b := resumed(t, l, nil)
		_, _ = b.Resume(t.Context(), b.task)
		looks := slices.Compact(l.looks)
		for i := 2; i < len(looks); i++ {
			before, gap := looks[i-1]-looks[i-2], looks[i]-looks[i-1]
			if gap < before || gap > time.Second {
				t.Errorf("look %d came %v after a gap of %v", i, gap, before)
			}
		}
		if looks[1] > 100*time.Millisecond || len(looks) < 60 || len(looks) > 80 {
			t.Errorf("%d looks, the second after %v", len(looks), looks[1])
		}
	})
}

// Nothing is left: nothing is said, and nothing is waited for.
func TestNoSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{none: true, unwanted: true}
		b := resumed(t, l, nil)
		begun := time.Now()
		_, _ = b.Resume(t.Context(), b.task)
		if b.executor.begun != begun || len(b.witness.warnings) > 0 || l.signals != nil || len(l.looks) != 1 {
			t.Errorf("waited %v, warned %q, sent %q, looked at %v", b.executor.begun.Sub(begun), b.witness.warnings, l.signals, l.looks)
		}
	})
}

// Only an attempt that was interrupted left something that matters: another's own end said that it is over.
func TestSurvivorsAreAskedForAfterAnInterruption(t *testing.T) {
	last := func(v task.Verdict) func(*task.Task) {
		return func(tk *task.Task) {
			tk.Status = task.Pending
			tk.Last = task.Attempt{Number: 2, Outcome: exit(1), Decision: task.Decision{Verdict: v}}
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
		{"waiting", nil, last(task.VerdictRetry), false},
		{"before the first attempt", nil, func(t *task.Task) { t.Status, t.AttemptCount, t.Last = task.Pending, 0, task.Attempt{} }, false},
		{"exhausted by crashes", nil, func(t *task.Task) { t.History.Crashes = 2 }, false},
		{"exhausted by its budget", func(p *task.Policy) { p.Budget = time.Minute }, func(*task.Task) { time.Sleep(time.Hour) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leftovers{lasts: time.Second}
				b := resumed(t, l, tt.change)
				tt.before(b.task)
				_, err := b.Resume(t.Context(), b.task)
				if asked := len(l.looks) > 0; err != nil || asked != tt.asked || !b.task.Status.Finished() {
					t.Errorf("%v, asked %v, %s", err, asked, b.task.Status)
				}
			})
		})
	}
}

// A run that makes its attempts itself knows when they are over.
func TestARunAsksForNoSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{}
		b := newBench(t, nil, exit(1), exit(0))
		b.Survivors = l
		_, _ = b.Run(t.Context(), b.task)
		if len(l.looks) > 0 {
			t.Errorf("looked at %v", l.looks)
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
		{"die of KILL", 5 * time.Second, map[os.Signal]int{syscall.SIGKILL: 1}, []string{"terminated at 0s", "killed at 5s"}, 6 * time.Second},
		{"at once", 0, map[os.Signal]int{syscall.SIGKILL: 1}, []string{"terminated at 0s", "killed at 0s"}, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leftovers{unwanted: true, dieOf: tt.dieOf}
				b := resumed(t, l, func(p *task.Policy) { p.KillAfter = tt.killAfter })
				begun := time.Now()
				result, err := b.Resume(t.Context(), b.task)
				if waited := b.executor.begun.Sub(begun); err != nil || result.ExitCode() != 0 || waited > tt.begins {
					t.Errorf("%+v, %v, waited %v", result, err, waited)
				}
				if !slices.Equal(l.signals, tt.want) {
					t.Errorf("sent %q, want %q", l.signals, tt.want)
				}
				if w := b.witness.warnings; len(w) != 1 || !strings.Contains(w[0], "attempt 2 left process 42 running") || strings.Contains(w[0], "hint") {
					t.Errorf("warnings %q", w)
				}
			})
		})
	}
}

// A process that was started while the others were killed has had no signal yet. It gets one as well.
func TestSurvivorsAreKilledUntilNoneIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{unwanted: true, dieOf: map[os.Signal]int{syscall.SIGKILL: 4}}
		b := resumed(t, l, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result, err := b.Resume(ctx, b.task)
		if err != nil || result.ExitCode() != 0 || l.got[syscall.SIGKILL] != 4 || l.got[syscall.SIGTERM] != 1 {
			t.Errorf("%+v, %v, sent %q", result, err, l.signals)
		}
	})
}

// A signal ends the wait for survivors as it ends any other, wanted or not, and leaves the task to be resumed, or
// cancelled.
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
					if err != nil || result.Signal != tt.sig || result.DeathSignal() != tt.sig || b.task.Status != tt.status || b.journal.claims != 0 {
						t.Errorf("%+v, %v, %s, %d claims", result, err, b.task.Status, b.journal.claims)
					}
					if took := time.Since(begun); took != 90*time.Second {
						t.Errorf("ended after %v", took)
					}
					if want := []string{"record interrupted PENDING", tt.log}; !slices.Equal(b.journal.log, want) {
						t.Errorf("journal %q", b.journal.log)
					}
				})
			})
		}
	}
}

func TestTheContextEndsTheWaitForSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result, err := b.Resume(ctx, b.task)
		if err != nil || result.Decision.Verdict != task.VerdictInterrupted || b.task.Status != task.Pending || b.journal.claims != 0 {
			t.Errorf("%+v, %v, %s", result, err, b.task.Status)
		}
	})
}

// A resume that was stopped while it waited leaves the question to the next one.
func TestTheNextResumeAsksForSurvivorsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &leftovers{}, &leftovers{lasts: time.Second}
		b := resumed(t, first, nil)
		b.after(time.Minute, syscall.SIGTERM)
		if _, err := b.Resume(t.Context(), b.task); err != nil || b.task.Status != task.Pending {
			t.Fatalf("%v, %s", err, b.task.Status)
		}
		b.Survivors = second
		result, err := b.Resume(t.Context(), b.task)
		if err != nil || result.ExitCode() != 0 || len(second.looks) < 2 || !second.asked[2] || len(second.asked) != 1 {
			t.Errorf("%+v, %v, looked at %v for %v", result, err, second.looks, second.asked)
		}
	})
}

// The wait for the next attempt goes on meanwhile.
func TestSurvivorsAreInsideTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{lasts: 20 * time.Second}, nil)
		b.task.Status, b.task.Last.Decision = task.Pending, task.Decision{Verdict: task.VerdictInterrupted}
		b.task.NextAttemptAt, b.task.History.Delay = time.Now().Add(time.Minute), time.Minute
		begun := time.Now()
		_, _ = b.Resume(t.Context(), b.task)
		if waited := b.executor.begun.Sub(begun); waited != time.Minute {
			t.Errorf("the next attempt began after %v", waited)
		}
	})
}

// A budget that the survivors outlast leaves nothing for another attempt.
func TestABudgetThatEndsWithSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{lasts: time.Hour}, func(p *task.Policy) { p.Budget = time.Minute })
		result, err := b.Resume(t.Context(), b.task)
		if err != nil || b.task.Status != task.Exhausted || b.task.Reason != task.ReasonBudget || b.journal.claims != 0 || result.ExitCode() == 0 {
			t.Errorf("%+v, %v, %s (%s), %d claims", result, err, b.task.Status, b.task.Reason, b.journal.claims)
		}
	})
}

// Who cancelled the task, or took it, before the crash was written down ends the resume there.
func TestAResumeLeavesATakenTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leftovers{}
		b := resumed(t, l, nil)
		b.journal.refuse = map[string]error{"record": task.ErrNotOwner}
		result, err := b.Resume(t.Context(), b.task)
		if err != nil || result.Decision.Verdict != task.VerdictCancelled || b.task.Status != task.Cancelled || len(l.looks) > 0 || b.journal.claims != 0 {
			t.Errorf("%+v, %v, %s, looked at %v", result, err, b.task.Status, l.looks)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{}, nil)
		b.journal.refuse = map[string]error{"record": errors.New("disk full")}
		if _, err := b.Resume(t.Context(), b.task); err == nil || b.journal.claims != 0 {
			t.Errorf("%v, %d claims", err, b.journal.claims)
		}
	})
}
