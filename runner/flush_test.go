package runner

import (
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

// Output is passed on when the outcome is in the journal, once an attempt, and before anybody is told that the attempt
// ended.
func TestReleaseFollowsEachAttempt(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*task.Policy)
		refuse   map[string]error
		outcomes []task.Outcome
		want     []string
	}{
		{"a rescue", nil, nil, []task.Outcome{exit(1), exit(0)}, []string{
			"claim", "started", "record retry PENDING", "release PENDING", "ended retry",
			"claim", "started", "record succeeded SUCCEEDED", "release SUCCEEDED", "ended succeeded", "finished succeeded"}},
		{"a failure", func(p *task.Policy) { p.Attempts = 1 }, nil, []task.Outcome{exit(1)}, []string{
			"claim", "started", "record exhausted EXHAUSTED", "release EXHAUSTED", "ended exhausted", "finished exhausted"}},
		{"interrupted", nil, nil, []task.Outcome{stopping(143, syscall.SIGTERM)}, []string{
			"claim", "started", "record interrupted PENDING", "release PENDING", "ended interrupted", "finished interrupted"}},
		{"cancelled meanwhile", nil, map[string]error{"record": task.ErrNotOwner}, []task.Outcome{exit(1)}, []string{
			"claim", "started", "record retry PENDING", "release CANCELLED", "ended cancelled", "finished cancelled"}},
		{"never begun", nil, map[string]error{"claim": task.ErrNotOwner}, []task.Outcome{exit(1)}, []string{"claim", "finished cancelled"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.change, tt.outcomes...)
				b.executor.plain, b.journal.refuse = true, tt.refuse
				if _, err := b.Run(t.Context(), b.task); err != nil || !slices.Equal(b.lines, tt.want) {
					t.Errorf("%v\ngot  %q\nwant %q", err, b.lines, tt.want)
				}
			})
		})
	}
}

// A success whose output is lost is none for who called retry; a failure is the same with its output and without.
func TestLostOutput(t *testing.T) {
	pipe := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	full := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	stopped := fmt.Errorf("write: %w", task.ErrStopped)
	tests := []struct {
		name        string
		outcome     task.Outcome
		lost        error
		sig         os.Signal
		code        int
		death       os.Signal
		warnings    int
		consecutive int
	}{
		{"success", exit(0), nil, nil, 0, nil, 0, 0},
		{"success, the reader has gone", exit(0), pipe, nil, 141, nil, 0, 0},
		{"success, the disk is full", exit(0), full, nil, 125, nil, 1, 0},
		{"success, INT while it is passed on", exit(0), stopped, syscall.SIGINT, 125, syscall.SIGINT, 0, 0},
		{"success, TERM while it is passed on", exit(0), stopped, syscall.SIGTERM, 125, syscall.SIGTERM, 0, 0},
		{"failure", exit(7), nil, nil, 7, nil, 0, 0},
		{"failure, the reader has gone", exit(7), pipe, nil, 7, nil, 0, 0},
		{"failure, the disk is full", exit(7), full, nil, 7, nil, 1, 0},
		{"failure, TERM while it is passed on", exit(7), stopped, syscall.SIGTERM, 7, syscall.SIGTERM, 0, 0},
		{"timeout, the disk is full", task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout}, full, nil, 124, nil, 1, 0},
		{"too few successes, the reader has gone", exit(0), pipe, nil, 1, nil, 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(p *task.Policy) { p.Attempts, p.Consecutive = 1, max(1, tt.consecutive) }, tt.outcome)
				b.executor.plain, b.executor.lost, b.executor.sig = true, tt.lost, tt.sig
				result, err := b.Run(t.Context(), b.task)
				if err != nil || result.ExitCode() != tt.code || result.DeathSignal() != tt.death || !errors.Is(result.OutputErr, tt.lost) {
					t.Errorf("exit %d, death %v, %+v, %v", result.ExitCode(), result.DeathSignal(), result, err)
				}
				if w := b.witness.warnings; len(w) != tt.warnings || (len(w) > 0 && !strings.HasPrefix(w[0], "pass on the command's output: ")) {
					t.Errorf("warnings %q", w)
				}
				if b.task.Last.Outcome != tt.outcome || !b.task.Status.Finished() {
					t.Errorf("the task is %s, its last attempt %+v", b.task.Status, b.task.Last)
				}
			})
		})
	}
}

// The signal that stopped the attempt goes before one that came later, while its output was passed on.
func TestTheFirstSignalCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, task.Outcome{Exit: 143, Signal: "SIGTERM", Stop: syscall.SIGTERM})
		b.executor.plain, b.executor.sig, b.executor.lost = true, syscall.SIGINT, task.ErrStopped
		result, err := b.Run(t.Context(), b.task)
		if err != nil || result.Signal != syscall.SIGTERM || result.DeathSignal() != syscall.SIGTERM || b.task.Status != task.Pending {
			t.Errorf("%+v, %v, %s", result, err, b.task.Status)
		}
		if b.journal.claims != 1 || len(b.journal.log) != 2 {
			t.Errorf("journal %q", b.journal.log)
		}
	})
}

// A signal that comes between an attempt and the wait ends the run as during the wait, and says so in the journal.
func TestASignalInReleaseEndsTheRun(t *testing.T) {
	tests := []struct {
		sig    os.Signal
		status task.Status
		log    string
	}{
		{syscall.SIGINT, task.Cancelled, "settle cancelled CANCELLED"},
		{syscall.SIGTERM, task.Pending, "settle interrupted PENDING"},
	}
	for _, tt := range tests {
		t.Run(tt.sig.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil, exit(1))
				b.executor.sig, b.executor.lost = tt.sig, task.ErrStopped
				begun := time.Now()
				result, err := b.Run(t.Context(), b.task)
				if err != nil || result.Signal != tt.sig || result.DeathSignal() != tt.sig || result.ExitCode() != 1 || b.task.Status != tt.status {
					t.Errorf("%+v, %v, %s", result, err, b.task.Status)
				}
				if last := b.journal.log[len(b.journal.log)-1]; last != tt.log {
					t.Errorf("journal: %q", b.journal.log)
				}
				if due := begun.Add(11 * time.Second); tt.status == task.Pending && !b.task.NextAttemptAt.Equal(due) {
					t.Errorf("next attempt at %v, was due at %v", b.task.NextAttemptAt, due)
				}
			})
		})
	}
}

// A task that succeeded has succeeded, even where the signal kept its output back: what it did is not to be done again.
func TestASignalInReleaseLeavesASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, exit(0))
		b.executor.sig, b.executor.lost = syscall.SIGINT, task.ErrStopped
		_, err := b.Run(t.Context(), b.task)
		if want := []string{"claim", "record succeeded SUCCEEDED"}; err != nil || b.task.Status != task.Succeeded || !slices.Equal(b.journal.log, want) {
			t.Errorf("%v, %s, journal %q", err, b.task.Status, b.journal.log)
		}
	})
}

// No attempt follows a final one, whatever the policy would retry. A success stays one.
func TestFinal(t *testing.T) {
	retryAll := func(p *task.Policy) { p.RetryOn, _ = task.ParseConditions([]string{"any", "0-255", "timeout"}) }
	tests := []struct {
		name    string
		change  func(*task.Policy)
		outcome task.Outcome
		status  task.Status
		code    int
	}{
		{"failure", nil, task.Outcome{Exit: 1}, task.Failed, 1},
		{"retry-on", retryAll, task.Outcome{Exit: 1}, task.Failed, 1},
		{"no limit of attempts", func(p *task.Policy) { p.Attempts = 0 }, task.Outcome{Exit: 1}, task.Failed, 1},
		{"timeout", nil, task.Outcome{Exit: 143, Error: task.ErrorTimeout}, task.Failed, 124},
		{"SIGPIPE", nil, task.Outcome{Exit: 141, Signal: "SIGPIPE"}, task.Failed, 141},
		{"not the last of the attempts", func(p *task.Policy) { p.Attempts = 1 }, task.Outcome{Exit: 1}, task.Failed, 1},
		{"success", nil, task.Outcome{}, task.Succeeded, 0},
		{"success-on", func(p *task.Policy) { p.SuccessOn, _ = task.ParseConditions([]string{"3"}) }, task.Outcome{Exit: 3}, task.Succeeded, 0},
		{"the first of two successes", func(p *task.Policy) { p.Consecutive = 2 }, task.Outcome{}, task.Failed, 1},
		{"INT", nil, stopping(1, syscall.SIGINT), task.Cancelled, 1},
		{"TERM", nil, stopping(1, syscall.SIGTERM), task.Pending, 1},
		{"success in spite of TERM", nil, stopping(0, syscall.SIGTERM), task.Succeeded, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.outcome.Final = true
				b := newBench(t, tt.change, tt.outcome)
				b.executor.plain = true
				begun := time.Now()
				result, err := b.Run(t.Context(), b.task)
				if err != nil || b.task.Status != tt.status || result.ExitCode() != tt.code || b.journal.claims != 1 || time.Since(begun) != 0 {
					t.Errorf("%+v, %v, %s after %d attempts and %v", result, err, b.task.Status, b.journal.claims, time.Since(begun))
				}
				if tt.status == task.Failed && b.task.Reason != task.ReasonNotEligible {
					t.Errorf("reason %q", b.task.Reason)
				}
			})
		})
	}
}

// Where an attempt's processes are is noted while it is in flight.
func TestStartedIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, exit(1), exit(0))
		b.executor.process = "token"
		_, _ = b.Run(t.Context(), b.task)
		want := []string{
			"claim", "note 1 token", "record retry PENDING",
			"claim", "note 2 token", "record succeeded SUCCEEDED",
		}
		if !slices.Equal(b.journal.log, want) {
			t.Errorf("journal: %q", b.journal.log)
		}
	})
}

func TestExitCodeOfLostOutput(t *testing.T) {
	tests := []struct {
		name    string
		verdict task.Verdict
		outcome task.Outcome
		lost    error
		want    int
	}{
		{"EPIPE", task.VerdictSucceeded, exit(0), syscall.EPIPE, 141},
		{"EPIPE, wrapped", task.VerdictSucceeded, exit(0), fmt.Errorf("write: %w", syscall.EPIPE), 141},
		{"EPIPE, by success-on", task.VerdictSucceeded, exit(3), syscall.EPIPE, 141},
		{"EIO", task.VerdictSucceeded, exit(0), syscall.EIO, 125},
		{"stopped", task.VerdictSucceeded, exit(0), task.ErrStopped, 125},
		{"a reply", task.VerdictSucceeded, reply(200), syscall.EPIPE, 23},
		{"an error's reply", task.VerdictFailed, reply(404), syscall.EPIPE, 22},
		{"a failure", task.VerdictExhausted, exit(9), syscall.EPIPE, 9},
		{"a failure that exited 0", task.VerdictFailed, exit(0), syscall.EIO, 1},
		{"a cancelled one", task.VerdictCancelled, exit(130), syscall.EPIPE, 130},
	}
	for _, tt := range tests {
		r := Result{Decision: task.Decision{Verdict: tt.verdict}, Outcome: tt.outcome, OutputErr: tt.lost}
		if got := r.ExitCode(); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestDeathSignalOfLostOutput(t *testing.T) {
	for _, tt := range []struct {
		name string
		lost error
		want os.Signal
	}{{"passed on", nil, nil}, {"stopped", task.ErrStopped, syscall.SIGTERM}, {"wrapped", fmt.Errorf("x: %w", task.ErrStopped), syscall.SIGTERM}, {"EPIPE", syscall.EPIPE, nil}} {
		for _, verdict := range []task.Verdict{task.VerdictSucceeded, task.VerdictFailed, task.VerdictExhausted} {
			r := Result{Decision: task.Decision{Verdict: verdict}, Outcome: task.Outcome{Stop: syscall.SIGTERM}, Signal: syscall.SIGTERM, OutputErr: tt.lost}
			if got := r.DeathSignal(); got != tt.want {
				t.Errorf("%s, %s: got %v, want %v", tt.name, verdict, got, tt.want)
			}
		}
	}
}
