package session

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// A write of the journal fails in the middle of a run. The command goes on, one warning says so, and the end is written
// all the same, so that no resume runs a task again that has succeeded.
func TestGuardedJournalWritesTheEnd(t *testing.T) {
	journal, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	g := &Journal{Journal: journal, warn: func(err error) { warnings = append(warnings, err.Error()) }}
	defer g.close()
	tk := &task.Task{ID: "id", Kind: task.KindCommand, Command: []string{"x"}, Policy: task.DefaultPolicy(),
		Status: task.Pending, CreatedAt: time.Now()}
	if err := g.Claim(t.Context(), tk, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := g.failed(errors.New("database is locked"), tk, false); err != nil || len(warnings) != 1 {
		t.Fatalf("got %v, warnings %q, want one warning", err, warnings)
	}
	tk.AttemptCount, tk.Status = 1, task.InFlight
	a := task.Attempt{Number: 1, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictSucceeded}}
	tk.ApplyDecision(a, time.Now())
	if err := g.Record(t.Context(), tk, a); err != nil {
		t.Fatal(err)
	}
	found, err := journal.Find(t.Context(), "id")
	if err != nil || found.Status != task.Succeeded {
		t.Errorf("got %+v, %v, want a task that has succeeded", found, err)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "the journal cannot be written for now: database is locked") {
		t.Errorf("got the warnings %q, want one that holds for a moment", warnings)
	}
}

// A journal is moved away in the middle of a run. The end is written where it is now: it may come back.
func TestTheEndReachesAJournalThatWasMovedBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	journal, err := sqlite.Open(t.Context(), dir)
	testkit.Must(t, err)
	g := &Journal{Journal: journal, warn: func(error) {}}
	defer g.close()
	tk := newTask("true")
	testkit.Must(t, g.Claim(t.Context(), tk, time.Now()))
	testkit.Must(t, os.Rename(dir, dir+".away"))
	for number, d := range []task.Decision{{Verdict: task.VerdictRetry}, {Verdict: task.VerdictSucceeded}} {
		tk.AttemptCount, tk.Status = number+1, task.InFlight
		a := task.Attempt{Number: number + 1, StartedAt: time.Now(), Decision: d}
		tk.ApplyDecision(a, time.Now())
		testkit.Must(t, g.Record(t.Context(), tk, a))
		if tk.Number != 0 {
			t.Errorf("got task %d after attempt %d, want none", tk.Number, a.Number)
		}
	}
	moved, err := sqlite.Open(t.Context(), dir+".away")
	testkit.Must(t, err)
	defer func() { _ = moved.Close() }()
	if found, err := moved.Find(t.Context(), tk.ID); err != nil || found.Status != task.Succeeded {
		t.Errorf("got %+v, %v, want a task that has succeeded", found, err)
	}
}

// guardedClaim returns a journal that must not warn, with a task whose first attempt is claimed.
func guardedClaim(t *testing.T, dir string) (*Journal, *task.Task) {
	t.Helper()
	journal, err := sqlite.Open(t.Context(), dir)
	testkit.Must(t, err)
	g := &Journal{Journal: journal, warn: func(err error) { t.Error(err) }}
	tk := newTask("false")
	testkit.Must(t, g.Claim(t.Context(), tk, time.Now()))
	return g, tk
}

// Where others hold the journal, an outcome and the next claim are not waited for long together: one after the other
// they are.
func TestGuardedJournalChainsSoonOrNot(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g, tk := guardedClaim(t, dir)
		defer g.close()
		tk.AttemptCount, tk.Status = 1, task.InFlight
		a := task.Attempt{Number: 1, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictRetry}}
		tk.ApplyDecision(a, time.Now())
		unlock := locked(t, dir)
		if err := g.RecordAndClaim(t.Context(), tk, a, time.Now()); !errors.Is(err, state.ErrLocked) ||
			time.Since(a.StartedAt) > 2*shortly {
			t.Errorf("under a lock: got %v after %v, want ErrLocked shortly", err, time.Since(a.StartedAt))
		}
		unlock()
		stopping, stop := context.WithCancelCause(t.Context())
		g.Stopping = stopping
		stop(task.ErrStopped)
		if err := g.RecordAndClaim(t.Context(), tk, a, time.Now()); !errors.Is(err, task.ErrStopped) {
			t.Errorf("after a signal: got %v, want ErrStopped", err)
		}
		g.Stopping = nil
		testkit.Must(t, g.RecordAndClaim(t.Context(), tk, a, time.Now()))
		if found, err := g.Journal.Find(t.Context(), tk.ID); err != nil || found.Status != task.InFlight ||
			found.AttemptCount != 2 {
			t.Errorf("got %+v, %v, want the second attempt in flight", found, err)
		}
	})
}

// What the journal cannot say at once of a running attempt is said later: a resume looks for its processes by it.
func TestGuardedJournalNotesAProcessLater(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g, tk := guardedClaim(t, dir)
		defer g.close()
		tk.AttemptCount = 1
		unlock := locked(t, dir)
		if g.NoteProcess(t.Context(), tk, "token") {
			t.Error("under a lock: got true, want false")
		}
		unlock()
		if !g.NoteProcess(t.Context(), tk, "token") {
			t.Error("after it: got false, want true")
		}
		attempts, err := g.Journal.Attempts(t.Context(), tk.Number)
		if err != nil || len(attempts) != 1 || attempts[0].Process != "token" {
			t.Errorf("got %+v, %v, want one attempt with the token", attempts, err)
		}
	})
}

// An attempt that began while the journal could not be written is stored as soon as it can be.
func TestGuardedJournalClaimsLater(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g, tk := guardedClaim(t, dir)
		defer g.close()
		tk.BeginAttempt()
		a := task.Attempt{Number: 1, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictRetry}}
		tk.ApplyDecision(a, time.Now())
		warned := 0
		g.warn = func(error) { warned++ }
		unlock := locked(t, dir)
		testkit.Must(t, g.Record(t.Context(), tk, a))
		testkit.Must(t, g.Claim(t.Context(), tk, time.Now()))
		tk.BeginAttempt()
		if g.NoteProcess(t.Context(), tk, "token") {
			t.Error("under a lock: got true, want false")
		}
		unlock()
		if !g.NoteProcess(t.Context(), tk, "token") || warned != 1 {
			t.Errorf("after it: got false or %d warnings, want true and 1", warned)
		}
		if found, err := g.Journal.Find(t.Context(), tk.ID); err != nil || found.Status != task.InFlight ||
			found.AttemptCount != 2 || found.Last.Process != "token" {
			t.Errorf("got %+v, %v, want the second attempt in flight, with the token", found, err)
		}
	})
}

// A run without a journal chains nothing.
func TestGuardedJournalWithoutOne(t *testing.T) {
	g := &Journal{}
	if err := g.RecordAndClaim(t.Context(), newTask("false"), task.Attempt{}, time.Now()); err == nil {
		t.Error("got no error, want one")
	}
}

// takenStore is a journal in which another process has every name.
type takenStore struct{ state.Store }

func (takenStore) OwnName(string) (bool, int, error) { return false, 42, nil }

// A claim finds the journal damaged. The name that was taken in it means nothing in the new one: a run there may have it.
func TestANameIsTakenAgainInANewJournal(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	g.reopen = func() (state.Store, error) { return takenStore{}, nil }
	other, err := os.Stat(t.TempDir())
	testkit.Must(t, err)
	damage := &state.Fault{Kind: state.ErrCorrupt, Err: errors.New("damaged"), Dir: g.Journal.Dir(), File: other}
	g.Journal = damagedStore{g.Journal, damage}
	tk := newTask("true")
	tk.Name = "nightly"
	if err := g.Claim(t.Context(), tk, time.Now()); !errors.Is(err, state.ErrNamed) {
		t.Errorf("got %v, want %v", err, state.ErrNamed)
	}
	g.Journal = nil
}

// damagedStore is a journal that cannot be written.
type damagedStore struct {
	state.Store
	damage error
}

func (s damagedStore) Claim(context.Context, *task.Task, time.Time) error { return s.damage }

// locked holds the journal's lock as another process does.
func locked(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "journal.db")+"?_txlock=immediate")
	testkit.Must(t, err)
	lock, err := db.Begin()
	testkit.Must(t, err)
	return func() {
		testkit.Must(t, lock.Rollback())
		testkit.Must(t, db.Close())
	}
}

// A signal that asks to stop ends the wait for another process's lock, and what was to be claimed is not.
func TestAStopEndsTheWaitForTheJournal(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(g.Journal.Dir(), "journal.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	stopping, stop := context.WithCancelCause(t.Context())
	g.Stopping = stopping
	claimed := make(chan error)
	tk := newTask("true")
	go func() { claimed <- g.Claim(t.Context(), tk, time.Now()) }()
	stop(task.ErrStopped)
	if err := <-claimed; !errors.Is(err, task.ErrStopped) || tk.Number != 0 {
		t.Errorf("got %v, number %d, want ErrStopped and no number", err, tk.Number)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	g.Stopping = nil
	if err := g.Claim(t.Context(), tk, time.Now()); err != nil || tk.Number != 1 {
		t.Errorf("afterwards: got %v, number %d, want number 1", err, tk.Number)
	}
}

// A task waits, another process holds the journal, and the next attempt cannot be claimed. A command runs all the same,
// but not in a resume, since each one would run it again. A request that is not safe to repeat does not: it would
// succeed, and a resume would find the task waiting and send it again.
func TestAnUnclaimedAttemptIsNotSent(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		target  task.Target
		resumes bool
		waited  bool // it was stored before its first attempt
		goesOn  bool
		want    string // of the error
	}{
		"command":         {target: nil, goesOn: true},
		"resumed command": {resumes: true, want: "it goes no further than the journal can say: "},
		"GET":             {target: &request.Request{Method: "GET", URL: "http://h"}, goesOn: true},
		"POST with a key": {target: &request.Request{Method: "POST", URL: "http://h", Keyed: true}, goesOn: true},
		"POST":            {target: &request.Request{Method: "POST", URL: "http://h"}, want: "POST is not sent: "},
		"POST that has waited": {
			target: &request.Request{Method: "POST", URL: "http://h"}, waited: true, want: "POST is not sent: ",
		},
		"command that has waited": {waited: true, goesOn: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			journal, err := sqlite.Open(t.Context(), dir)
			testkit.Must(t, err)
			warnings := 0
			g := &Journal{Journal: journal, Resumes: tt.resumes, warn: func(error) { warnings++ }}
			defer g.close()
			tk := newTask("true")
			tk.ID, tk.Target = name, tt.target
			if tt.waited {
				testkit.Must(t, g.create(t.Context(), tk, nil))
			} else {
				testkit.Must(t, g.Claim(t.Context(), tk, time.Now()))
				tk.Status, tk.AttemptCount = task.InFlight, 1
				a := task.Attempt{Number: 1, StartedAt: time.Now(), Decision: task.Decision{Verdict: task.VerdictRetry}}
				tk.ApplyDecision(a, time.Now())
				testkit.Must(t, g.Record(t.Context(), tk, a))
			}

			db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "journal.db")+"?_txlock=immediate")
			testkit.Must(t, err)
			defer func() { _ = db.Close() }()
			lock, err := db.Begin()
			testkit.Must(t, err)
			err = g.Claim(t.Context(), tk, time.Now())
			if (err == nil) != tt.goesOn || (warnings == 1) != tt.goesOn {
				t.Errorf("%s: got %v, %d warnings, want that it goes on: %v", name, err, warnings, tt.goesOn)
			}
			if !tt.goesOn && (!errors.Is(err, state.ErrLocked) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: got %v, want %q", name, err, tt.want)
			}
			testkit.Must(t, lock.Rollback())
		})
	}
}

// However often a run meets a lock, it waits for others no longer than its patience in all, and warns once.
func TestTheWaitsOfARunDoNotAddUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		journal, err := sqlite.Open(t.Context(), dir)
		testkit.Must(t, err)
		warnings := 0
		g := &Journal{Journal: journal, warn: func(error) { warnings++ }}
		defer g.close()
		tk := newTask("true")
		testkit.Must(t, g.Claim(t.Context(), tk, time.Now()))
		db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "journal.db")+"?_txlock=immediate")
		testkit.Must(t, err)
		defer func() { _ = db.Close() }()
		begun := time.Now()
		for range 3 { // it is free in between
			lock, err := db.Begin()
			testkit.Must(t, err)
			time.AfterFunc(patience*3/5, func() { testkit.Must(t, lock.Rollback()) })
			limited, done := g.limit(t.Context())
			tk.Once = false // else there would be nothing to write
			err = journal.Remember(limited, tk)
			done()
			testkit.Must(t, g.failed(err, tk, false))
			synctest.Wait()
			time.Sleep(patience)
		}
		if waited := time.Since(begun) - 3*patience; waited > patience+3*shortly || warnings == 0 {
			t.Errorf("got %v of waits, %d warnings, want at most %v and a warning", waited, warnings, patience)
		}
	})
}

// close is for tests alone: a run ends with its process, and every write was committed before.
func (g *Journal) close() {
	if g.Journal != nil {
		_ = g.Journal.Close() // every write was committed already
	}
}
