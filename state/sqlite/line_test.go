//go:build cgo

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// database/sql costs a start more than what the start writes.
func TestARunGoesWithoutDatabaseSQL(t *testing.T) {
	dir := closedJournal(t)
	j := openIn(t, dir)
	if _, err := j.Policy(t.Context(), "default"); err != nil {
		t.Error(err)
	}
	tk := inFlight(t, j)
	must(t, recorded(j, tk, exit(0), succeeded, epoch))
	if j.line.lent {
		t.Error("database/sql was asked")
	}
}

// Whoever comes first, both write on one connection, one after the other.
func TestOneConnectionForAll(t *testing.T) {
	j := open(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { inFlight(t, j) })
		group.Go(func() {
			if _, err := j.Count(t.Context()); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if _, _, err := j.Prune(t.Context(), state.Retention{Rows: 10}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n, err := j.Count(t.Context()); n != 8 || err != nil {
		t.Errorf("%d tasks, %v", n, err)
	}
}

// database/sql throws a connection away where a transaction's context ends. The next one takes its place, for all.
func TestALostConnectionIsReplaced(t *testing.T) {
	j := open(t)
	inFlight(t, j)
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := j.db.BeginTx(ctx, nil)
	must(t, err)
	cancel()
	if err := tx.Commit(); err == nil {
		t.Error("it was committed after its context had ended")
	}
	inFlight(t, j)
	if n, err := j.Count(t.Context()); n != 2 || err != nil {
		t.Errorf("%d tasks, %v", n, err)
	}
}

// What cannot be committed is rolled back, and the next write finds no transaction open.
func TestNoTransactionIsLeftOpen(t *testing.T) {
	for name, statements := range map[string][]string{
		"a statement fails": {"INSERT INTO policies VALUES ('p', '{}', 1)", "INSERT INTO policies VALUES ('p', '{}', 1)"},
		"the commit fails":  {"PRAGMA defer_foreign_keys = on", "INSERT INTO attempts (task, number, started_at) VALUES (99, 1, 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			err := j.quickly(t.Context(), func(l *line) error {
				for _, s := range statements {
					if _, err := l.exec(s); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil {
				t.Fatal("it was committed")
			}
			inFlight(t, j)
			if p, err := j.Policy(t.Context(), "p"); p != nil || err != nil {
				t.Errorf("%v was left, %v", p, err)
			}
		})
	}
}

func TestLineReadsAndWritesValues(t *testing.T) {
	j := open(t)
	must(t, j.line.use(j.db, func(l *line) error {
		var text, none sql.NullString
		var number, yes integer
		args := []any{task.Succeeded, 7, true, nil, []byte("bytes"), struct{}{}}
		if err := l.scan("SELECT ?, ?, ?, ?", args[:4], &text, &number, &yes, &none); err != nil {
			return err
		}
		if text.String != "SUCCEEDED" || number.Int64 != 7 || yes.Int64 != 1 || none.Valid {
			t.Errorf("%v, %v, %v, %v", text, number, yes, none)
		}
		if err := l.scan("SELECT 1 WHERE ? = 0", args[1:2], &number); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("nothing was found: %v", err)
		}
		if _, err := l.exec("SELECT ?", args[5:]...); err == nil {
			t.Error("an argument of no type that a driver knows was taken")
		}
		return nil
	}))
}

// A statement that is left, or one that is being compiled, would keep the files open, and the log would stay.
func TestNothingOutlivesClose(t *testing.T) {
	dir := t.TempDir()
	for range 20 {
		j, err := Open(t.Context(), dir)
		must(t, err)
		inFlight(t, j)
		must(t, j.Close())
		if _, err := os.Stat(filepath.Join(dir, databaseName+walSuffix)); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the log after the last one has closed: %v", err)
		}
		if err := j.quickly(context.Background(), func(*line) error { return nil }); err == nil {
			t.Fatal("a closed journal was written to")
		}
	}
}
