//go:build unix && cgo

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

func TestTheReserveTakesUpRoom(t *testing.T) {
	dir := t.TempDir()
	openIn(t, dir)
	info, err := os.Stat(filepath.Join(dir, reserveName))
	must(t, err)
	if info.Size() != reserveSize || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, mode %04o", info.Size(), info.Mode().Perm())
	}
}

// The end of a task on a full disk costs the reserve, once; nothing else does.
func TestTheReserveIsForAFullDisk(t *testing.T) {
	j := open(t)
	must(t, j.shortenLogAlone()) // a shorter log would leave room, too
	reserve := filepath.Join(j.dir, reserveName)
	ended := &task.Task{Status: task.Succeeded}
	calls := 0
	failing := func(err error) func(*conn) error {
		calls = 0
		return func(*conn) error {
			calls++
			return err
		}
	}
	if err := j.writeEnd(t.Context(), ended, failing(task.ErrNotOwner)); !errors.Is(err, task.ErrNotOwner) || calls != 1 {
		t.Errorf("%v after %d tries", err, calls)
	}
	if _, err := os.Stat(reserve); err != nil {
		t.Errorf("given up for nothing: %v", err)
	}
	full := state.NewFault(state.ErrFull, "make room", "full")
	if err := j.writeEnd(t.Context(), &task.Task{Status: task.Pending}, failing(full)); !errors.Is(err, state.ErrFull) || calls != 1 {
		t.Errorf("between two attempts: %v after %d tries", err, calls)
	}
	for _, want := range []int{2, 1} { // the second time nothing is left to give up
		if err := j.writeEnd(t.Context(), ended, failing(full)); !errors.Is(err, state.ErrFull) || calls != want {
			t.Errorf("%v after %d tries, not %d", err, calls, want)
		}
	}
}

// A write that finds no row, though nobody has taken the task, is damage and no cancellation.
func TestALostRowIsNoCancellation(t *testing.T) {
	lose := map[string]string{
		"the task":       "DELETE FROM attempts; DELETE FROM tasks",
		"the attempt":    "DELETE FROM attempts",
		"another's task": "UPDATE tasks SET id = 'other', status = 'FAILED'",
	}
	for name, statement := range lose {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			tk := inFlight(t, j)
			_, err := rawExec(j, statement)
			must(t, err)
			if err := recorded(j, tk, exit(0), succeeded, epoch); !errors.Is(err, state.ErrCorrupt) || errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v", err)
			}
		})
	}
}
