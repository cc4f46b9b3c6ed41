package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// A transaction holds the write lock from its beginning. One that took it later would fail where it has to wait.
func TestTransactionsBeginImmediate(t *testing.T) {
	dir := t.TempDir()
	j, other := openIn(t, dir), openIn(t, dir)
	must(t, j.write(t.Context(), func(*conn) error {
		if _, err := rawExec(other, "BEGIN IMMEDIATE"); !isBusy(err) {
			t.Errorf("a second one began: got %v", err)
		}
		return nil
	}))
	must(t, other.write(t.Context(), func(*conn) error { return nil }))
}

// waitsForSync are tasks that have to survive a power loss before their first attempt starts.
func waitsForSync() map[string]*task.Task {
	tasks := map[string]*task.Task{"named": newTask(), "remembered": newTask(), "a POST": newTask()}
	tasks["named"].Name = "nightly"
	tasks["remembered"].Once = true
	tasks["a POST"].Kind, tasks["a POST"].Command = request.Kind, nil
	tasks["a POST"].Target = &request.Request{Method: "POST", URL: "http://example.org/"}
	return tasks
}

// The disk must have the task before its first attempt starts where others rely on it. A task that could not be synced was never
// acknowledged: no resume may run it.
func TestATaskThatCannotBeSyncedIsForgotten(t *testing.T) {
	required := open(t)
	required.SyncFirst = true
	cases := map[string]*Journal{"--require-state": required}
	tasks := waitsForSync()
	tasks["--require-state"] = newTask()
	for name, tk := range tasks {
		t.Run(name, func(t *testing.T) {
			j := cases[name]
			if j == nil {
				j = open(t)
			}
			j.sync = func() error { return syscall.EIO }
			if err := claimed(j, tk, epoch); !errors.Is(err, syscall.EIO) {
				t.Errorf("got %v, want %v", err, syscall.EIO)
			}
			if left := dump(t, j); left != "" {
				t.Errorf("got\n%s\nwant nothing", left)
			}
			if pid, err := j.owners.Owner(1); pid != 0 || err != nil {
				t.Errorf("got the owner %d, %v, want none", pid, err)
			}
			j.sync = j.syncLog
			must(t, claimed(j, tk, epoch))
		})
	}
}

// A plain command starts while the disk still writes its task. Its outcome is recorded only when the disk has it.
func TestACommandRunsWhileItsTaskIsSynced(t *testing.T) {
	for name, end := range map[string]write{"record": recording(succeeded), "chain": chaining()} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			synced := make(chan struct{})
			j.sync = func() error { <-synced; return nil }
			tk := inFlight(t, j) // though the disk is not ready
			must(t, j.NoteProcess(t.Context(), tk, "x"))
			ended := make(chan error, 1)
			go func() { ended <- end.Do(j, tk) }()
			select {
			case err := <-ended:
				t.Fatalf("got %v before the task was synced, want a wait", err)
			case <-time.After(10 * time.Millisecond):
			}
			close(synced)
			must(t, <-ended)
		})
	}
}

// An outcome is not told where its task may be lost. What follows can still be written.
func TestAFailedSyncIsAnErrorOfTheEnd(t *testing.T) {
	j := open(t)
	j.sync = func() error { return syscall.EIO }
	tk := inFlight(t, j)
	for _, end := range []write{chaining(), recording(succeeded)} {
		if err := end.Do(j, tk); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: got %v, want %v", end.Name, err, syscall.EIO)
		}
	}
	apply(t, j, tk, recording(succeeded))
}

// Only the task has to survive a power loss: what follows waits for no disk.
func TestOnlyTheFirstClaimWaitsForTheDisk(t *testing.T) {
	j := open(t)
	syncs := 0
	j.sync = func() error { syncs++; return nil }
	tk := newTask()
	tk.Name = "nightly"
	must(t, claimed(j, tk, epoch))
	must(t, j.NoteProcess(t.Context(), tk, "x"))
	apply(t, j, tk, recording(retryIn(0)), claiming(), chaining(), recording(succeeded))
	if syncs != 1 {
		t.Errorf("got %d syncs, want 1", syncs)
	}
}

// The real sync asks the disk for the log.
func TestSyncNeedsTheLog(t *testing.T) {
	j := open(t)
	inFlight(t, j)
	j.background.Wait()
	must(t, j.syncLog())
	must(t, os.Remove(filepath.Join(j.dir, DatabaseName)+walSuffix))
	if err := j.syncLog(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}
