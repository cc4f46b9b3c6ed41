package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A transaction holds the write lock from its beginning. One that took it later would fail where it has to wait.
func TestTransactionsBeginImmediate(t *testing.T) {
	dir := t.TempDir()
	j, other := openIn(t, dir), openIn(t, dir)
	_, err := other.db.Exec("PRAGMA busy_timeout = 0")
	must(t, err)
	must(t, j.write(t.Context(), func(context.Context, *sql.Tx) error {
		second, err := other.db.Begin()
		if err == nil {
			must(t, second.Rollback())
		}
		if !isBusy(err) {
			t.Errorf("a second one began: %v", err)
		}
		return nil
	}))
	must(t, other.write(t.Context(), func(context.Context, *sql.Tx) error { return nil }))
}

// A task that was never acknowledged must not be run by a resume.
func TestATaskThatCannotBeSyncedIsForgotten(t *testing.T) {
	j := open(t)
	log := filepath.Join(j.dir, databaseName) + "-wal"
	must(t, os.Rename(log, log+".away"))
	if err := claimed(j, newTask(), epoch); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	must(t, os.Rename(log+".away", log))
	if left := dump(t, j); left != "" {
		t.Errorf("left:\n%s", left)
	}
	if pid, err := j.owners.Owner(1); pid != 0 || err != nil {
		t.Errorf("its number has the owner %d, %v", pid, err)
	}
	inFlight(t, j)
}

// Only the task has to survive a power loss: what follows waits for no disk.
func TestOnlyTheFirstClaimWaitsForTheDisk(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	must(t, os.Remove(filepath.Join(j.dir, databaseName)+"-wal")) // whoever would sync it could not
	must(t, j.Note(t.Context(), tk, "x"))
	apply(t, j, tk, recording(retryIn(0)), claiming(), recording(succeeded))
	if err := claimed(j, newTask(), epoch); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the next task: %v", err)
	}
}
