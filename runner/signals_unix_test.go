//go:build unix

package runner

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
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
