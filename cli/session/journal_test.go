package session

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// A write of the journal fails in the middle of a run. The command goes on, one warning says so, and the end is written all
// the same, so that no resume runs a task again that has succeeded.
func TestGuardedJournalWritesTheEnd(t *testing.T) {
	journal, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	g := &Journal{Journal: journal, warn: func(err error) { warnings = append(warnings, err.Error()) }}
	defer g.close()
	tk := &task.Task{ID: "id", Kind: task.KindCommand, Command: []string{"x"}, Policy: task.DefaultPolicy(), Status: task.Pending, CreatedAt: time.Now()}
	if err := g.Claim(t.Context(), tk, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := g.failed(errors.New("database is locked"), nil, false); err != nil || len(warnings) != 1 {
		t.Fatalf("%v, warnings %q", err, warnings)
	}
	tk.AttemptCount, tk.Status = 1, task.InFlight
	a := task.Attempt{Number: 1, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictSucceeded}}
	tk.ApplyDecision(a, time.Now())
	if err := g.Record(t.Context(), tk, a); err != nil {
		t.Fatal(err)
	}
	found, err := journal.Find(t.Context(), "id")
	if err != nil || found.Status != task.Succeeded {
		t.Errorf("%+v, %v", found, err)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "going on without a journal") {
		t.Errorf("warnings %q", warnings)
	}
}

// Where others hold the journal, an outcome and the next claim are not waited for long together: one after the other they are.
func TestGuardedJournalChainsSoonOrNot(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		journal, err := sqlite.Open(t.Context(), dir)
		must(t, err)
		g := &Journal{Journal: journal, warn: func(err error) { t.Error(err) }}
		defer g.close()
		tk := newTask("false")
		must(t, g.Claim(t.Context(), tk, time.Now()))
		tk.AttemptCount, tk.Status = 1, task.InFlight
		a := task.Attempt{Number: 1, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictRetry}}
		tk.ApplyDecision(a, time.Now())
		unlock := locked(t, dir)
		if err := g.RecordAndClaim(t.Context(), tk, a, time.Now()); !errors.Is(err, state.ErrLocked) || time.Since(a.StartedAt) > 2*shortly {
			t.Errorf("under a lock: %v after %v", err, time.Since(a.StartedAt))
		}
		unlock()
		stopping, stop := context.WithCancelCause(t.Context())
		g.Stopping = stopping
		stop(task.ErrStopped)
		if err := g.RecordAndClaim(t.Context(), tk, a, time.Now()); !errors.Is(err, task.ErrStopped) {
			t.Errorf("after a signal: %v", err)
		}
		g.Stopping = nil
		must(t, g.RecordAndClaim(t.Context(), tk, a, time.Now()))
		if found, err := journal.Find(t.Context(), tk.ID); err != nil || found.Status != task.InFlight || found.AttemptCount != 2 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// A run without a journal chains nothing.
func TestGuardedJournalWithoutOne(t *testing.T) {
	g := &Journal{}
	if err := g.RecordAndClaim(t.Context(), newTask("false"), task.Attempt{}, time.Now()); err == nil {
		t.Error("it was claimed")
	}
}

// locked holds the journal's lock as another process does.
func locked(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "journal.db")+"?_txlock=immediate")
	must(t, err)
	lock, err := db.Begin()
	must(t, err)
	return func() {
		must(t, lock.Rollback())
		must(t, db.Close())
	}
}
