//go:build unix

package runner

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Signals that a command may take do not end a wait.
func TestRunWaitsOnThroughOtherSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, exit(1), exit(0))
		go func() {
			time.Sleep(4 * time.Second)
			b.signals <- syscall.SIGUSR1
			b.signals <- syscall.SIGWINCH
		}()
		result, _ := b.Run(t.Context(), b.task)
		if result.ExitCode() != 0 || b.executor.starts[1] != 11*time.Second {
			t.Errorf("%+v, second attempt at %v", result, b.executor.starts)
		}
	})
}

// A signal that arrives between two attempts that no wait separates starts no further attempt.
func TestRunSeesASignalWithoutAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, exit(0))
		b.signals <- syscall.SIGUSR1
		b.signals <- syscall.SIGTERM
		result, _ := b.Run(t.Context(), b.task)
		if b.journal.claims != 0 || result.Signal != syscall.SIGTERM {
			t.Errorf("%d claims, %+v", b.journal.claims, result)
		}
	})
}

// Nor do they end the wait for survivors, nor an on-retry hook.
func TestOtherSignalsEndNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := resumed(t, &leftovers{lasts: time.Minute}, nil)
		b.after(4*time.Second, syscall.SIGUSR1)
		begun := time.Now()
		result, _ := b.Resume(t.Context(), b.task)
		if waited := b.executor.begun.Sub(begun); result.ExitCode() != 0 || waited < time.Minute {
			t.Errorf("%+v, waited %v", result, waited)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, exit(1), exit(0))
		b.withHooks(8*time.Second, nil)
		b.after(4*time.Second, syscall.SIGWINCH)
		result, _ := b.Run(t.Context(), b.task)
		if result.ExitCode() != 0 || b.executor.starts[1] != 11*time.Second {
			t.Errorf("%+v, second attempt at %v", result, b.executor.starts)
		}
	})
}
