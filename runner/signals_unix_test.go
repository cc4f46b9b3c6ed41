//go:build unix

package runner

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

// Signals that only a command handles do not end a wait.
func TestRunWaitsOnThroughOtherSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1), exit(0))
		go func() {
			time.Sleep(4 * time.Second)
			b.signals <- syscall.SIGUSR1
			b.signals <- syscall.SIGWINCH
		}()
		result, _ := b.Run(t.Context(), b.task)
		check(t, "exit code", result.ExitCode(), 0)
		check(t, "second start", b.executor.starts[1], 11*time.Second)
	})
}

// No attempt starts after a signal, even without a wait between the attempts.
func TestRunSeesASignalWithoutAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(0))
		b.signals <- syscall.SIGUSR1
		b.signals <- syscall.SIGTERM
		result, _ := b.Run(t.Context(), b.task)
		check(t, "claims", b.journal.claims, 0)
		check(t, "signal", result.Signal, syscall.SIGTERM)
	})
}

// They end neither the wait for survivors nor an on-retry hook.
func TestOtherSignalsEndNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{lasts: time.Minute}, nil)
		b.after(4*time.Second, syscall.SIGUSR1)
		begun := time.Now()
		result, _ := b.Resume(t.Context(), b.task)
		if waited := b.executor.begun.Sub(begun); result.ExitCode() != 0 || waited < time.Minute {
			t.Errorf("got %+v after %v, want a success after 1m", result, waited)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1), exit(0))
		b.withHooks(8*time.Second, nil)
		b.after(4*time.Second, syscall.SIGWINCH)
		result, _ := b.Run(t.Context(), b.task)
		check(t, "exit code", result.ExitCode(), 0)
		check(t, "second start", b.executor.starts[1], 11*time.Second)
	})
}

// A task that another process makes due earlier goes on: with a signal at once, without one when the journal is looked
// at again.
func TestHastened(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal bool
		want   time.Duration
	}{{"with a signal", true, 5 * time.Second}, {"without one", false, 31 * time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hourly, err := backoff.Parse("constant:1h", "none")
				if err != nil {
					t.Fatal(err)
				}
				b := newRig(t, func(p *task.Policy) { p.Backoff = hourly }, exit(1), exit(0))
				b.journal.hastened = time.Now().Add(5 * time.Second)
				if tt.signal {
					b.after(5*time.Second, syscall.SIGWINCH)
				}
				_, err = b.Run(t.Context(), b.task)
				check(t, "error", err, nil)
				check(t, "starts", b.executor.starts, []time.Duration{0, tt.want})
			})
		})
	}
}

// A signal that asks for nothing, as of a window that changes its size, ends no wait.
func TestALookEndsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRig(t, nil, exit(1), exit(0))
		b.after(5*time.Second, syscall.SIGWINCH)
		_, err := b.Run(t.Context(), b.task)
		check(t, "error", err, nil)
		check(t, "looks", b.journal.looks, 1)
		check(t, "starts", b.executor.starts, []time.Duration{0, 11 * time.Second})
	})
}
