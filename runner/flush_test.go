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

// Flush of a command is called once for each attempt, after Record and before the observer is told of the end.
func TestFlushFollowsEachAttempt(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*task.Policy)
		refuse   map[string]error
		outcomes []task.Outcome
		want     []string
	}{
		{"a rescue", nil, nil, []task.Outcome{exit(1), exit(0)}, []string{
			"claim", "started", "record retry PENDING", "flush PENDING", "ended retry",
			"claim", "started", "record succeeded SUCCEEDED", "flush SUCCEEDED", "ended succeeded",
			"finished succeeded"}},
		{"a failure", func(p *task.Policy) { p.Attempts = 1 }, nil, []task.Outcome{exit(1)}, []string{
			"claim", "started", "record exhausted EXHAUSTED", "flush EXHAUSTED", "ended exhausted",
			"finished exhausted"}},
		{"interrupted", nil, nil, []task.Outcome{stopping(143, syscall.SIGTERM)}, []string{
			"claim", "started", "record interrupted PENDING", "flush PENDING", "ended interrupted",
			"finished interrupted"}},
		{"cancelled meanwhile", nil, map[string]error{"record": task.ErrNotOwner}, []task.Outcome{exit(1)}, []string{
			"claim", "started", "record retry PENDING", "flush CANCELLED", "ended cancelled", "finished cancelled"}},
		{"never begun", nil, map[string]error{"claim": task.ErrNotOwner}, []task.Outcome{exit(1)},
			[]string{"claim", "finished cancelled"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, tt.change, tt.outcomes...)
				b.executor.plain, b.journal.refuse = true, tt.refuse
				if _, err := b.Run(t.Context(), b.task); err != nil || !slices.Equal(b.lines, tt.want) {
					t.Errorf("got error %v, events %q\nwant %q", err, b.lines, tt.want)
				}
			})
		})
	}
}

// A success whose output is lost is a failure for the caller of retry. For a failure lost output changes nothing.
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
		{"success, INT while it is passed on", exit(0), stopped, syscall.SIGINT, 125, syscall.SIGINT, 1, 0},
		{"success, TERM while it is passed on", exit(0), stopped, syscall.SIGTERM, 125, syscall.SIGTERM, 1, 0},
		{"failure", exit(7), nil, nil, 7, nil, 0, 0},
		{"failure, the reader has gone", exit(7), pipe, nil, 7, nil, 0, 0},
		{"failure, the disk is full", exit(7), full, nil, 7, nil, 1, 0},
		{"failure, TERM while it is passed on", exit(7), stopped, syscall.SIGTERM, 7, syscall.SIGTERM, 1, 0},
		{"timeout, the disk is full", task.Outcome{Exit: 143, Signal: "SIGTERM", Error: task.ErrorTimeout}, full, nil,
			124, nil, 1, 0},
		{"too few successes, the reader has gone", exit(0), pipe, nil, 1, nil, 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newRig(t, func(p *task.Policy) { p.Attempts, p.Consecutive = 1, max(1, tt.consecutive) },
					tt.outcome)
				b.executor.plain, b.executor.lost, b.executor.sig = true, tt.lost, tt.sig
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "exit code", result.ExitCode(), tt.code)
				check(t, "death signal", result.DeathSignal(), tt.death)
				if !errors.Is(result.OutputErr, tt.lost) {
					t.Errorf("output error: got %v, want %v", result.OutputErr, tt.lost)
				}
				w := b.observer.warnings
				check(t, "number of warnings", len(w), tt.warnings)
				if len(w) > 0 && !strings.HasPrefix(w[0], "pass on the command's output: ") {
					t.Errorf("got warnings %q, want the command's output", w)
				}
				check(t, "last outcome", b.task.Last.Outcome, tt.outcome)
				check(t, "finished", b.task.Status.Finished(), true)
			})
		})
	}
}

// The signal that stopped the attempt counts, not a later one that arrived during Flush.
func TestTheFirstSignalCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, task.Outcome{Exit: 143, Signal: "SIGTERM", Stop: syscall.SIGTERM})
		b.executor.plain, b.executor.sig, b.executor.lost = true, syscall.SIGINT, task.ErrStopped
		result, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "signal", result.Signal, syscall.SIGTERM)
		check(t, "death signal", result.DeathSignal(), syscall.SIGTERM)
		check(t, "status", b.task.Status, task.Pending)
		check(t, "claims", b.journal.claims, 1)
		check(t, "number of journal", len(b.journal.log), 2)
	})
}

// A signal between an attempt and the wait ends the run as during the wait, and the journal records it.
func TestASignalInFlushEndsTheRun(t *testing.T) {
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
				b := newRig(t, nil, exit(1))
				b.executor.sig, b.executor.lost = tt.sig, task.ErrStopped
				begun := time.Now()
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "signal", result.Signal, tt.sig)
				check(t, "death signal", result.DeathSignal(), tt.sig)
				check(t, "exit code", result.ExitCode(), 1)
				check(t, "status", b.task.Status, tt.status)
				check(t, "last entry", b.journal.log[len(b.journal.log)-1], tt.log)
				if due := begun.Add(11 * time.Second); tt.status == task.Pending && !b.task.NextAttemptAt.Equal(due) {
					t.Errorf("next attempt: got %v, want %v", b.task.NextAttemptAt, due)
				}
			})
		})
	}
}

// A task that succeeded stays so, even if a signal kept its output from being written: it must not run again.
func TestASignalInFlushLeavesASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(0))
		b.executor.sig, b.executor.lost = syscall.SIGINT, task.ErrStopped
		_, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "status", b.task.Status, task.Succeeded)
		check(t, "journal", b.journal.log, []string{"claim", "record succeeded SUCCEEDED"})
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
		{"not the last of the attempts", func(p *task.Policy) { p.Attempts = 1 }, task.Outcome{Exit: 1}, task.Failed,
			1},
		{"success", nil, task.Outcome{}, task.Succeeded, 0},
		{"success-on", func(p *task.Policy) { p.SuccessOn, _ = task.ParseConditions([]string{"3"}) },
			task.Outcome{Exit: 3}, task.Succeeded, 0},
		{"the first of two successes", func(p *task.Policy) { p.Consecutive = 2 }, task.Outcome{}, task.Failed, 1},
		{"INT", nil, stopping(1, syscall.SIGINT), task.Cancelled, 1},
		{"TERM", nil, stopping(1, syscall.SIGTERM), task.Pending, 1},
		{"success in spite of TERM", nil, stopping(0, syscall.SIGTERM), task.Succeeded, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.outcome.Final = true
				b := newRig(t, tt.change, tt.outcome)
				b.executor.plain = true
				begun := time.Now()
				result, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "status", b.task.Status, tt.status)
				check(t, "exit code", result.ExitCode(), tt.code)
				check(t, "claims", b.journal.claims, 1)
				check(t, "time", time.Since(begun), time.Duration(0))
				if tt.status == task.Failed && b.task.Reason != task.ReasonNotEligible {
					t.Errorf("got reason %q, want %q", b.task.Reason, task.ReasonNotEligible)
				}
			})
		})
	}
}

// The process of an attempt is recorded while the attempt runs.
func TestStartedIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1), exit(0))
		b.executor.process = "token"
		_, _ = b.Run(t.Context(), b.task)
		want := []string{
			"claim", "note 1 token", "record retry PENDING",
			"claim", "note 2 token", "record succeeded SUCCEEDED",
		}
		check(t, "journal", b.journal.log, want)
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
	}{
		{"passed on", nil, nil}, {"stopped", task.ErrStopped, syscall.SIGTERM},
		{"wrapped", fmt.Errorf("x: %w", task.ErrStopped), syscall.SIGTERM}, {"EPIPE", syscall.EPIPE, nil},
	} {
		for _, verdict := range []task.Verdict{task.VerdictSucceeded, task.VerdictFailed, task.VerdictExhausted} {
			r := Result{Decision: task.Decision{Verdict: verdict}, Outcome: task.Outcome{Stop: syscall.SIGTERM},
				Signal: syscall.SIGTERM, OutputErr: tt.lost}
			if got := r.DeathSignal(); got != tt.want {
				t.Errorf("%s, %s: got %v, want %v", tt.name, verdict, got, tt.want)
			}
		}
	}
}
