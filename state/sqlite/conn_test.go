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

// All goroutines of a process use one connection, one after the other.
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

// What cannot be committed is rolled back, and the next write finds no transaction open.
func TestNoTransactionIsLeftOpen(t *testing.T) {
	for name, statements := range map[string][]string{
		"a statement fails": {"INSERT INTO policies VALUES ('p', '{}', 1)", "INSERT INTO policies VALUES ('p', '{}', 1)"},
		"the commit fails":  {"PRAGMA defer_foreign_keys = on", "INSERT INTO attempts (task, number, started_at) VALUES (99, 1, 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			err := j.write(t.Context(), func(c *conn) error {
				for _, s := range statements {
					if _, err := c.exec(s); err != nil {
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

func TestConnReadsAndWritesValues(t *testing.T) {
	j := open(t)
	must(t, j.read(t.Context(), func(c *conn) error {
		var text string
		var none sql.NullString
		var number int
		var yes bool
		args := []any{task.Succeeded, 7, true, nil, []byte("bytes"), struct{}{}}
		if err := c.row("SELECT ?, ?, ?, ?", args[:4], &text, &number, &yes, &none); err != nil {
			return err
		}
		if text != "SUCCEEDED" || number != 7 || !yes || none.Valid {
			t.Errorf("%v, %v, %v, %v", text, number, yes, none)
		}
		if err := c.row("SELECT 1 WHERE ? = 0", args[1:2], &number); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("nothing was found: %v", err)
		}
		if _, err := c.exec("SELECT ?", args[5:]...); err == nil {
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
		if _, err := os.Stat(filepath.Join(dir, DatabaseName+walSuffix)); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the log after the last one has closed: %v", err)
		}
		if err := j.write(context.Background(), func(*conn) error { return nil }); err == nil {
			t.Fatal("a closed journal was written to")
		}
	}
}
