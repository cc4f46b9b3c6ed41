package cli

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// A signal that asks to stop ends the wait for another process's lock, and what was to be claimed is not.
func TestAStopEndsTheWaitForTheJournal(t *testing.T) {
	g := openJournal(t, func(err error) { t.Error(err) })
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(g.journal.Dir(), "journal.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	patience, stop := context.WithCancelCause(t.Context())
	g.patience = patience
	claimed := make(chan error)
	task := newTask("true")
	go func() { claimed <- g.Claim(t.Context(), task, time.Now()) }()
	stop(runner.ErrStopped)
	if err := <-claimed; !errors.Is(err, runner.ErrStopped) || task.Number != 0 {
		t.Errorf("got %v, number %d", err, task.Number)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	g.patience = nil
	if err := g.Claim(t.Context(), task, time.Now()); err != nil || task.Number != 1 {
		t.Errorf("afterwards: %v, number %d", err, task.Number)
	}
}
