package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/state"
)

// busyTimeout is how long one process waits for the others' writes.
const busyTimeout = 5 * time.Second

// The pauses between two looks at a lock. A write takes a fraction of a millisecond; many that wait look more rarely.
const (
	firstPause = 200 * time.Microsecond
	lastPause  = 4 * time.Millisecond
)

// patiently repeats what another process's lock keeps it from, for busyTimeout or until the context ends. The pauses are uneven, so
// that none of many is always too late. Where the context ends for its deadline, what came of the last try is the error.
func patiently(ctx context.Context, do func() error) error {
	ctx, cancel := Limit(ctx, busyTimeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return context.Cause(ctx)
		}
		err := do()
		if err == nil || !isBusy(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
		}
	}
}

// beginner is what a database and one of its connections have in common.
type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// write waits in line for its turn, for busyTimeout or as long as the context lets it. What it has begun it brings to an end: the
// context that do gets does not end.
func (j *Journal) write(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	ctx, cancel := Limit(ctx, busyTimeout)
	defer cancel()
	defer j.owners.Queue(ctx)()
	return j.diagnose(transact(ctx, j.db, do))
}

// quickly is write for what a run has to write: on the line as it is.
func (j *Journal) quickly(ctx context.Context, do func(*line) error) error {
	ctx, cancel := Limit(ctx, busyTimeout)
	defer cancel()
	defer j.owners.Queue(ctx)()
	try := func() error { return j.diagnose(j.line.use(j.db, func(l *line) error { return l.transact(ctx, do) })) }
	err := try()
	if (errors.Is(err, state.ErrFull) || errors.Is(err, state.ErrFileLimit)) && j.makeRoom() {
		err = try()
	}
	return err
}

// transact rolls back also what could not be committed: SQLite may leave that open.
func (l *line) transact(ctx context.Context, do func(*line) error) error {
	err := patiently(ctx, func() error {
		_, err := l.exec("BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return err
	}
	step("transaction begun")
	if err = do(l); err == nil {
		step("transaction written")
		_, err = l.exec("COMMIT")
		step("transaction committed")
	}
	if err != nil {
		_, _ = l.exec("ROLLBACK")
	}
	return err
}

// sync has what was committed survive a power loss. SQLite would wait for the disk while it holds the lock; here others write
// meanwhile, and their waits become one.
func (j *Journal) sync() error {
	step("transaction not synced")
	return syncFile(filepath.Join(j.dir, databaseName+walSuffix))
}

// syncFile waits until the disk has what was written to a file, by whomever.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0) // Windows syncs only what may be written
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return syncData(file)
}

func transact(ctx context.Context, b beginner, do func(context.Context, *sql.Tx) error) error {
	plain := context.WithoutCancel(ctx) // one that can end would cost a goroutine for each statement
	var tx *sql.Tx
	err := patiently(ctx, func() (err error) {
		tx, err = b.BeginTx(plain, nil)
		return err
	})
	if err != nil {
		return err
	}
	step("transaction begun")
	if err := do(plain, tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	step("transaction written")
	err = tx.Commit()
	step("transaction committed")
	return err
}
