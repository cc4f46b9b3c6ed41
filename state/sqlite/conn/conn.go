// Package conn is a connection to SQLite: statements that stay compiled, transactions that wait for other processes, and
// what the errors of the driver mean. It knows no table.
package conn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mattn/go-sqlite3"
)

// Conn is one connection to SQLite. It calls the driver directly: the pool and the contexts of database/sql would take
// longer than the statements of a start.
type Conn struct {
	driver   driver.Conn
	compiled map[string]driver.Stmt
	values   []driver.NamedValue // arguments of the latest statement; the memory is used again
	busy     chan struct{}       // full while the connection is in use; synctest cannot wait for a mutex
}

// ErrClosed says that a connection is used after Close.
var ErrClosed = errors.New("the journal is closed")

// Open opens a database as its URI says; see the documentation of go-sqlite3.
func Open(dataSource string) (*Conn, error) {
	watchBus()
	d, err := (&sqlite3.SQLiteDriver{}).Open(dataSource)
	if err != nil {
		return nil, err
	}
	return &Conn{driver: d, compiled: map[string]driver.Stmt{}, busy: make(chan struct{}, 1)}, nil
}

// acquire waits until no other goroutine uses the connection. release follows, unless it returns an error.
func (c *Conn) acquire() error {
	c.busy <- struct{}{}
	if c.driver == nil {
		c.release()
		return ErrClosed
	}
	return nil
}

func (c *Conn) release() { <-c.busy }

// Use calls do when no other goroutine uses the connection.
func (c *Conn) Use(do func() error) error {
	if err := c.acquire(); err != nil {
		return err
	}
	defer c.release()
	return do()
}

// Close closes the statements first: an open one would keep SQLite's connection alive.
func (c *Conn) Close() error {
	return c.Use(func() error {
		for _, statement := range c.compiled {
			_ = statement.Close()
		}
		err := c.driver.Close()
		c.driver = nil
		return err
	})
}

// Exec runs a statement and returns how many rows it changed. A text without arguments may have several statements, and
// is not kept compiled.
func (c *Conn) Exec(query string, args ...any) (changed int64, err error) {
	var result driver.Result
	if len(args) == 0 {
		result, err = c.driver.(driver.ExecerContext).ExecContext(context.Background(), query, nil)
	} else {
		statement, values, failed := c.prepare(query, args)
		if failed != nil {
			return 0, failed
		}
		// Each is a call of C, and what is not bound is NULL.
		values = slices.DeleteFunc(values, func(v driver.NamedValue) bool { return v.Value == nil })
		result, err = statement.(driver.StmtExecContext).ExecContext(context.Background(), values)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// prepare compiles a query once, because compiling takes longer than running it, and converts its arguments to the few
// types that a driver knows.
func (c *Conn) prepare(query string, args []any) (statement driver.Stmt, values []driver.NamedValue, err error) {
	if statement = c.compiled[query]; statement == nil {
		if statement, err = c.driver.Prepare(query); err != nil {
			return nil, nil, err
		}
		c.compiled[query] = statement
	}
	values = slices.Grow(c.values[:0], len(args))[:len(args)] // the driver keeps none of them
	c.values = values
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, nil, err
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: value}
	}
	return statement, values, nil
}

// Query runs a statement and returns its rows, for who wants the columns as they are.
func (c *Conn) Query(ctx context.Context, query string, args []any) (driver.Rows, error) {
	statement, values, err := c.prepare(query, args)
	if err != nil {
		return nil, err
	}
	return statement.(driver.StmtQueryContext).QueryContext(ctx, values)
}

// Row reads the first row that a query finds into to, or returns sql.ErrNoRows.
func (c *Conn) Row(query string, args []any, to ...any) error {
	found := false
	err := c.Each(context.Background(), query, args, func(scan Scanner) (bool, error) {
		found = true
		return false, scan(to...)
	})
	if err == nil && !found {
		return sql.ErrNoRows
	}
	return err
}

// Scanner copies the columns of a row to pointers.
type Scanner func(to ...any) error

// Each calls do for each row that a query finds, until do returns false or an error, or the context ends.
func (c *Conn) Each(ctx context.Context, query string, args []any, do func(Scanner) (more bool, err error)) (err error) {
	rows, err := c.Query(ctx, query, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	scan := func(to ...any) error { return scanRow(row, to) }
	for more := true; more && err == nil; {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		more, err = do(scan)
	}
	return err
}

// Times that are read are limited to this range, so that no computation overflows on a damaged journal.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	latest   = time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro() // RFC 3339, and the wait of a task made at its end
)

// Longest is the Longest duration that is read: a hundred years, so that the sum of two does not overflow.
const Longest = 36_525 * 24 * time.Hour

// timeOf reads microseconds since 1970; NULL is the zero time.
func timeOf(value driver.Value) time.Time {
	us, ok := value.(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(min(max(us, earliest), latest))
}

// DurationOf reads microseconds. SQLite makes a float of a difference or a total beyond 64 bits.
func DurationOf(value driver.Value) time.Duration {
	us, ok := value.(float64)
	if !ok {
		whole, _ := value.(int64)
		us = float64(whole)
	}
	return time.Duration(min(max(us, 0), float64(Longest.Microseconds()))) * time.Microsecond
}

// scanRow copies a row. NULL becomes the zero value. Any flag but 0 is true; times and durations are in microseconds.
func scanRow(row []driver.Value, to []any) error {
	for i, value := range row {
		var err error
		switch to := to[i].(type) {
		case *int64:
			err = scanInto(to, value)
		case *int:
			err = scanInto(to, value)
		case *string:
			err = scanInto(to, value)
		case *[]byte:
			err = scanInto(to, value)
		case *bool:
			n, _ := value.(int64)
			*to = n != 0
		case *time.Time:
			*to = timeOf(value)
		case *time.Duration:
			*to = DurationOf(value)
		case sql.Scanner:
			err = to.Scan(value)
		default:
			err = fmt.Errorf("scan a column into a %T", to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func scanInto[T any](to *T, value driver.Value) error {
	v, ok := value.(T)
	if ok || value == nil {
		*to = v
		return nil
	}
	var converted sql.Null[T]
	err := converted.Scan(value)
	*to = converted.V
	return err
}

// Transaction runs do between BEGIN IMMEDIATE and COMMIT. It also rolls back after a failed COMMIT, which may leave the
// Transaction open.
func (c *Conn) Transaction(ctx context.Context, do func(*Conn) error) error {
	if err := c.acquire(); err != nil {
		return err
	}
	defer c.release()
	err := RetryBusy(ctx, func() error {
		_, err := c.Exec("BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return err
	}
	Step("transaction begun")
	if err = do(c); err == nil {
		Step("transaction written")
		_, err = c.Exec("COMMIT")
		Step("transaction committed")
	}
	if err != nil {
		_, _ = c.Exec("ROLLBACK")
	}
	return err
}

// BusyTimeout is how long a process waits for other processes' writes.
const BusyTimeout = 5 * time.Second

const (
	firstPause = 200 * time.Microsecond
	lastPause  = 4 * time.Millisecond
)

// RetryBusy repeats what fails because of another process's lock, for BusyTimeout or until the context ends. The pauses
// are random, so that no process is always the last. SQLite's own busy handler sleeps for up to 100 ms at a time and
// cannot be interrupted.
func RetryBusy(ctx context.Context, do func() error) error {
	begun := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return context.Cause(ctx)
		}
		err := do()
		if err == nil || !IsBusy(err) || ctx.Err() != nil || time.Since(begun) >= BusyTimeout { // the last try says why
			return err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
		}
	}
}

// Checkpoint returns how many pages the WAL has, and how many of them are in the database.
func (c *Conn) Checkpoint(mode string) (pages, copied int, err error) {
	var busy int
	err = c.Row("PRAGMA wal_checkpoint("+mode+")", nil, &busy, &pages, &copied)
	return pages, copied, err
}
