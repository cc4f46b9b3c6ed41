package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// What a full disk refuses was not made. The end of a task has a reserve, so that it is not run again.
func TestAQueueOnAFullDisk(t *testing.T) {
	root := t.TempDir()
	mountSmall(t, root, "3m")
	q := queueIn(t, filepath.Join(root, "state"))
	worker, err := q.Register(t.Context(), state.Worker{Name: "test"})
	must(t, err)
	added, err := q.Add(t.Context(), []*task.Task{queuedRequest(0), queuedRequest(1)})
	must(t, err)
	flying, err := q.Claim(t.Context(), worker, []int64{added[0].Task.Number, added[1].Task.Number}, time.Now(), nil)
	must(t, err)
	fillDisk(t, root)
	made := 0
	for err == nil {
		if _, err = q.Add(t.Context(), []*task.Task{queuedRequest(0), queuedRequest(1)}); err == nil {
			made += 2
		}
	}
	if !errors.Is(err, state.ErrFull) {
		t.Errorf("got %v, want %v", err, state.ErrFull)
	}
	if got := count(t, q.Journal, "tasks"); got != 2+made {
		t.Errorf("got %d tasks, want %d", got, 2+made)
	}
	flying[0].BeginAttempt()
	must(t, settleSucceeded(q, flying[0]))
	must(t, os.Remove(filepath.Join(root, "fill")))
	flying[1].BeginAttempt()
	must(t, settleSucceeded(q, flying[1]))
	_, err = q.Add(t.Context(), []*task.Task{queuedRequest(0)})
	must(t, err)
	integrity(t, q.Journal)
}

// A task that cannot be added does not cancel the one that it would replace.
func TestReplaceOnAFullDisk(t *testing.T) {
	root := t.TempDir()
	mountSmall(t, root, "3m")
	q := queueIn(t, filepath.Join(root, "state"))
	earlier, later := queuedRequest(0), queuedRequest(1)
	earlier.Name, later.Name = "nightly", "nightly"
	later.Environment = []string{"BIG=" + strings.Repeat("x", 1<<20)}
	_, err := q.Add(t.Context(), []*task.Task{earlier})
	must(t, err)
	fillDisk(t, root)
	info, err := os.Stat(filepath.Join(root, "fill"))
	must(t, err)
	must(t, os.Truncate(filepath.Join(root, "fill"), info.Size()-1<<17)) // room for the cancel alone
	if cancelled, err := q.Replace(t.Context(), later, earlier); !errors.Is(err, state.ErrFull) || cancelled {
		t.Errorf("got %v, %v, want %v", cancelled, err, state.ErrFull)
	}
	stored, err := q.Named(t.Context(), "nightly")
	must(t, err)
	if stored == nil || stored.ID != earlier.ID {
		t.Fatalf("got %+v of the name, want the earlier task", stored)
	}
	must(t, os.Remove(filepath.Join(root, "fill")))
	changes := q.Changes(t.Context())
	cancelled, err := q.Replace(t.Context(), later, earlier)
	must(t, err)
	first, second := heard(t, changes), heard(t, changes) // by which a worker is woken
	if first.ID != earlier.ID || first.Status != task.Cancelled || second.ID != later.ID || second.Number != later.Number {
		t.Errorf("got the changes %+v and %+v, want the cancel and the new task", first, second)
	}
	stored, err = q.Named(t.Context(), "nightly")
	must(t, err)
	if stored.ID != later.ID || !cancelled {
		t.Errorf("got %+v of the name, cancelled %v, want the later task, true", stored, cancelled)
	}
	cancelled, err = q.Replace(t.Context(), queuedRequest(2), earlier) // which has ended
	if err != nil || cancelled {
		t.Errorf("got %v, %v of what has ended, want false", cancelled, err)
	}
	integrity(t, q.Journal)
}

func fillDisk(t *testing.T, root string) {
	t.Helper()
	f, err := os.Create(filepath.Join(root, "fill"))
	must(t, err)
	defer func() { _ = f.Close() }()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

// mountSmall puts a small file system in memory on a directory, or skips the test.
func mountSmall(t *testing.T, root, size string) {
	t.Helper()
	if err := syscall.Mount("none", root, "tmpfs", 0, "mode=700,size="+size); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(root, syscall.MNT_DETACH)) })
}
