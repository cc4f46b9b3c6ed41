package cli

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
)

// A write of the journal fails in the middle of a run. The command goes on, one warning says so, and the end is written all
// the same, so that no resume runs a task again that has succeeded.
func TestGuardedJournalWritesTheEnd(t *testing.T) {
	journal, err := state.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	g := &guardedJournal{journal: journal, warn: func(err error) { warnings = append(warnings, err.Error()) }}
	defer g.close()
	task := &runner.Task{ID: "id", Kind: runner.KindCommand, Command: []string{"x"}, Policy: runner.DefaultPolicy(), Status: runner.Pending, CreatedAt: time.Now()}
	if err := g.Claim(t.Context(), task, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := g.failed(errors.New("database is locked"), nil, false); err != nil || len(warnings) != 1 {
		t.Fatalf("%v, warnings %q", err, warnings)
	}
	task.AttemptCount, task.Status = 1, runner.InFlight
	a := runner.Attempt{Number: 1, StartedAt: time.Now(), Decision: runner.Decision{Verdict: runner.VerdictSucceeded}}
	task.Decided(a, time.Now())
	if err := g.Record(t.Context(), task, a); err != nil {
		t.Fatal(err)
	}
	found, err := journal.Find(t.Context(), "id")
	if err != nil || found.Status != runner.Succeeded {
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
		journal, err := state.Open(t.Context(), dir)
		must(t, err)
		g := &guardedJournal{journal: journal, warn: func(err error) { t.Error(err) }}
		defer g.close()
		task := newTask("false")
		must(t, g.Claim(t.Context(), task, time.Now()))
		task.AttemptCount, task.Status = 1, runner.InFlight
		a := runner.Attempt{Number: 1, StartedAt: time.Now(), Decision: runner.Decision{Verdict: runner.VerdictRetry}}
		task.Decided(a, time.Now())
		unlock := locked(t, dir)
		if err := g.RecordAndClaim(t.Context(), task, a, time.Now()); !errors.Is(err, state.ErrLocked) || time.Since(a.StartedAt) > 2*shortly {
			t.Errorf("under a lock: %v after %v", err, time.Since(a.StartedAt))
		}
		unlock()
		stopping, stop := context.WithCancelCause(t.Context())
		g.stopping = stopping
		stop(runner.ErrStopped)
		if err := g.RecordAndClaim(t.Context(), task, a, time.Now()); !errors.Is(err, runner.ErrStopped) {
			t.Errorf("after a signal: %v", err)
		}
		g.stopping = nil
		must(t, g.RecordAndClaim(t.Context(), task, a, time.Now()))
		if found, err := journal.Find(t.Context(), task.ID); err != nil || found.Status != runner.InFlight || found.AttemptCount != 2 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// A run without a journal chains nothing.
func TestGuardedJournalWithoutOne(t *testing.T) {
	g := &guardedJournal{}
	if err := g.RecordAndClaim(t.Context(), newTask("false"), runner.Attempt{}, time.Now()); err == nil {
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
