//go:build cgo

package conn

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/10f93571/retry/task"
)

func TestConnReadsAndWritesValues(t *testing.T) {
	c, err := Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var text string
	var none sql.NullString
	var number int
	var yes bool
	args := []any{task.Succeeded, 7, true, nil, []byte("bytes"), struct{}{}}
	if err := c.Row("SELECT ?, ?, ?, ?", args[:4], &text, &number, &yes, &none); err != nil {
		t.Fatal(err)
	}
	if text != "SUCCEEDED" || number != 7 || !yes || none.Valid {
		t.Errorf("got %v, %v, %v, %v; want SUCCEEDED, 7, true and NULL", text, number, yes, none)
	}
	if err := c.Row("SELECT 1 WHERE ? = 0", args[1:2], &number); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("got %v where nothing is found, want %v", err, sql.ErrNoRows)
	}
	if _, err := c.Exec("SELECT ?", args[5:]...); err == nil {
		t.Error("got no error for an argument of no type that a driver knows, want one")
	}
}

// What follows the end of a connection is refused, also where others wait for it.
func TestAClosedConn(t *testing.T) {
	c, err := Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Use(func() error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	if err := c.Transaction(t.Context(), func(*Conn) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
}
