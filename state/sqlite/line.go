package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/mattn/go-sqlite3"
)

// line is the journal's one connection. A run writes on it as it is: database/sql costs a start more than the statements do. For all
// else database/sql is lent it, when that is first asked for something.
type line struct {
	dataSource string

	taken    chan struct{} // full while somebody has what follows: a bubble's clock goes on for who waits at a channel, not at a mutex
	conn     driver.Conn
	lent     bool
	compiled map[string]driver.Stmt
}

func openLine(dataSource string) (*line, error) {
	l := &line{dataSource: dataSource, taken: make(chan struct{}, 1)}
	return l, l.connect()
}

func (l *line) connect() (err error) {
	l.compiled = map[string]driver.Stmt{}
	l.conn, err = (&sqlite3.SQLiteDriver{}).Open(l.dataSource)
	return err
}

// database returns the database/sql that the line is lent to.
func (l *line) database() *sql.DB {
	db := sql.OpenDB(l)
	db.SetMaxOpenConns(1) // one writer; readers of this process queue behind it
	return db
}

// Connect implements driver.Connector. Who asks again has thrown the first one away, as database/sql does where a transaction's context
// ends.
func (l *line) Connect(context.Context) (driver.Conn, error) {
	defer l.take()()
	if l.lent {
		if err := l.connect(); err != nil {
			return nil, err
		}
	}
	l.lent = true
	return l.conn, nil
}

// Driver implements driver.Connector.
func (l *line) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

func (l *line) take() (release func()) {
	l.taken <- struct{}{}
	return func() { <-l.taken }
}

// use has the line for itself.
func (l *line) use(db *sql.DB, do func(*line) error) error {
	release := l.take()
	if !l.lent {
		defer release()
		return do(l)
	}
	release()
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return conn.Raw(func(any) error { return do(l) })
}

// close ends the line, and the database/sql on it. A statement that is left would keep SQLite's connection alive.
func (l *line) close(db *sql.DB) error {
	err := l.use(db, func(l *line) error {
		for _, statement := range l.compiled {
			_ = statement.Close()
		}
		clear(l.compiled)
		if l.lent {
			return nil // db closes it
		}
		l.lent = true // to nobody: it is over
		return l.conn.Close()
	})
	return errors.Join(err, db.Close())
}

// statement compiles a query when it is first asked for: to compile one takes longer than to run it.
func (l *line) statement(query string) (driver.Stmt, error) {
	if s := l.compiled[query]; s != nil {
		return s, nil
	}
	s, err := l.conn.Prepare(query)
	if err == nil {
		l.compiled[query] = s
	}
	return s, err
}

// exec runs a statement. One without arguments runs but once, and is not kept.
func (l *line) exec(query string, args ...any) (sql.Result, error) {
	if len(args) == 0 {
		return l.conn.(driver.ExecerContext).ExecContext(context.Background(), query, nil)
	}
	statement, err := l.statement(query)
	if err != nil {
		return nil, err
	}
	values, err := valuesOf(args)
	if err != nil {
		return nil, err
	}
	return statement.(driver.StmtExecContext).ExecContext(context.Background(), values)
}

// scan reads what a query finds first into what can scan itself, or returns sql.ErrNoRows.
func (l *line) scan(query string, args []any, to ...any) (err error) {
	values, err := valuesOf(args)
	if err != nil {
		return err
	}
	rows, err := l.conn.(driver.QueryerContext).QueryContext(context.Background(), query, values)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(found); err != nil {
		if errors.Is(err, io.EOF) {
			err = sql.ErrNoRows
		}
		return err
	}
	for i, value := range found {
		if err := to[i].(sql.Scanner).Scan(value); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf gives arguments the few types that a driver knows.
func valuesOf(args []any) ([]driver.NamedValue, error) {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, err
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: value}
	}
	return values, nil
}
