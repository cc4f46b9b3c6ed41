package state

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// busyTimeout is how long one process waits for the others' writes.
const busyTimeout = 5 * time.Second

// The pauses between two looks at a lock. A write takes a fraction of a millisecond; many that wait look more rarely.
const (
	firstPause = 200 * time.Microsecond
	lastPause  = 4 * time.Millisecond
)

// patiently repeats what another process's lock keeps it from, for busyTimeout or until the context ends. The pauses are
// uneven, so that none of many is always too late.
func patiently(ctx context.Context, do func() error) error {
	start := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := do()
		if err == nil || !isBusy(err) || time.Since(start) > busyTimeout {
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

func (j *Journal) write(ctx context.Context, do func(*sql.Tx) error) error {
	return j.diagnose(transact(ctx, j.db, do))
}

// sync has what was committed survive a power loss. SQLite would wait for the disk while it holds the lock; here others write
// meanwhile, and their waits become one.
func (j *Journal) sync() error {
	step("transaction not synced")
	return syncFile(filepath.Join(j.dir, databaseName) + "-wal")
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

// transact waits for its turn as long as the context lets it. What it has begun it brings to an end.
func transact(ctx context.Context, b beginner, do func(*sql.Tx) error) error {
	var tx *sql.Tx
	err := patiently(ctx, func() (err error) {
		tx, err = b.BeginTx(context.WithoutCancel(ctx), nil)
		return err
	})
	if err != nil {
		return err
	}
	step("transaction begun")
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	step("transaction written")
	err = tx.Commit()
	step("transaction committed")
	return err
}
