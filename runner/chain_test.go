package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

// chainer is a Journal that writes an outcome and the next claim in one transaction.
type chainer struct {
	*memory
	err    error
	before func() // the write
}

func (c *chainer) Unclaim(_ context.Context, t *task.Task) {
	c.memory.note("unclaim " + string(t.Status))
}

func (c *chainer) RecordAndClaim(_ context.Context, t *task.Task, a task.Attempt, _ time.Time) error {
	if c.before != nil {
		c.before()
	}
	c.memory.note("chain " + string(a.Decision.Verdict) + " " + string(t.Status))
	return c.err
}

// holder is an Executor that says whether it holds something.
type holder struct {
	*script
	holds bool
}

func (h *holder) HoldsOutput(*task.Task) bool { return h.holds }

// newChain makes a rig whose attempts follow one another at once.
func newChain(t *testing.T, outcomes ...task.Outcome) (*rig, *chainer, *holder) {
	b := newRig(t, func(p *task.Policy) { p.Backoff = spec(t, "constant:0") }, outcomes...)
	b.executor.plain = true
	c, h := &chainer{memory: b.journal}, &holder{script: b.executor}
	b.Journal, b.Executor = c, h
	return b, c, h
}

func spec(t *testing.T, text string) backoff.Spec {
	t.Helper()
	s, err := backoff.Parse(text, "none")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An attempt that follows at once is claimed together with the outcome before it. Observers see no difference.
func TestAChainOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := newChain(t, exit(1), exit(1), exit(0))
		result, err := b.Run(t.Context(), b.task)
		want := []string{
			"claim", "started", "chain retry PENDING", "flush PENDING", "ended retry", "started", "chain retry PENDING",
			"flush PENDING", "ended retry",
			"started", "record succeeded SUCCEEDED", "flush SUCCEEDED", "ended succeeded", "finished succeeded",
		}
		if err != nil || result.ExitCode() != 0 || b.task.AttemptCount != 3 || !slices.Equal(b.lines, want) {
			t.Errorf("%v, exit %d after %d\ngot  %q\nwant %q", err, result.ExitCode(), b.task.AttemptCount, b.lines,
				want)
		}
	})
}

// If anything may come between two attempts, the outcome is written alone.
func TestNoChain(t *testing.T) {
	tests := map[string]func(*rig, *chainer, *holder){
		"a delay": func(b *rig, _ *chainer, _ *holder) {
			b.task.Policy.Backoff = spec(t, "constant:1ms")
		},
		"a hook":      func(b *rig, _ *chainer, _ *holder) { b.Hooks, b.task.Options.OnRetry = &hooks{}, "x" },
		"slots":       func(b *rig, _ *chainer, _ *holder) { b.Slots = make(chan struct{}, 1) },
		"held output": func(_ *rig, _ *chainer, h *holder) { h.holds = true },
		"a timeout":   func(b *rig, _ *chainer, _ *holder) { b.executor.outcomes[0].Error = task.ErrorTimeout },
		"a signal": func(b *rig, _ *chainer,
			_ *holder) {
			b.journal.busy = func() { b.signals <- syscall.SIGALRM }
		},
		"a last attempt": func(b *rig, _ *chainer, _ *holder) { b.task.Policy.Attempts = 1 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, c, h := newChain(t, exit(1), exit(0))
				change(b, c, h)
				_, err := b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "journal.log[1][:6]", b.journal.log[1][:6], "record")
			})
		})
	}
}

// No attempt is claimed after the end of the context.
func TestNoChainOnceTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := newChain(t, exit(1), exit(0))
		ctx, cancel := context.WithCancel(t.Context())
		b.journal.busy = cancel
		want := []string{"claim", "record retry PENDING", "settle interrupted PENDING"}
		_, err := b.Run(ctx, b.task)
		check(t, "error", err, nil)
		check(t, "journal", b.journal.log, want)
	})
}

// If the journal cannot write both together, the runner calls Record and Claim instead.
func TestABrokenChain(t *testing.T) {
	for _, err := range []error{task.ErrNotOwner, task.ErrStopped, errors.New("locked")} {
		synctest.Test(t, func(t *testing.T) {
			b, c, _ := newChain(t, exit(1), exit(0))
			c.err = err
			want := []string{"claim", "chain retry PENDING", "record retry PENDING", "claim",
				"record succeeded SUCCEEDED"}
			_, err := b.Run(t.Context(), b.task)
			check(t, "error", err, nil)
			check(t, "journal", b.journal.log, want)
		})
	}
}

// A signal that arrives while both are written ends the run before the next attempt begins.
func TestASignalDuringAChain(t *testing.T) {
	for sig, status := range map[os.Signal]task.Status{syscall.SIGTERM: task.Pending, os.Interrupt: task.Cancelled} {
		synctest.Test(t, func(t *testing.T) {
			b, c, _ := newChain(t, exit(1))
			c.before = func() { b.signals <- sig }
			result, err := b.Run(t.Context(), b.task)
			want := []string{"claim", "chain retry PENDING", "unclaim PENDING",
				"settle " + string(result.Decision.Verdict) + " " + string(status)}
			check(t, "error", err, nil)
			check(t, "signal", result.Signal, sig)
			check(t, "attempts", b.task.AttemptCount, 1)
			check(t, "journal", b.journal.log, want)
		})
	}
}
