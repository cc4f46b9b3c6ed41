//go:build unix

package runner

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/10f93571/retry/task"
)

// A signal that comes while the journal waits for others ends the run before anything was started.
func TestASignalEndsTheWaitForTheJournal(t *testing.T) {
	for sig, status := range map[os.Signal]task.Status{syscall.SIGTERM: task.Pending, os.Interrupt: task.Cancelled} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil, exit(0))
			b.journal.busy = func() { b.signals <- syscall.SIGALRM; b.signals <- sig }
			b.journal.refuse = map[string]error{"claim": task.ErrStopped}
			result, err := b.Run(t.Context(), b.task)
			if err != nil || result.Signal != sig || b.task.Status != status || len(b.executor.starts) != 0 {
				t.Errorf("%+v, %v: %s after %d starts", result, err, b.task.Status, len(b.executor.starts))
			}
		})
	}
}
