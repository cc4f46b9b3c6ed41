package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// leastRows are those of a task with one attempt and its tail: a step with room for less would get nowhere.
const leastRows = 3

// The statements of a step. None reads more than it removes, or may remove: a test asks SQLite for its plans.
const (
	prunable    = `FROM tasks WHERE status = ? AND finished_at IS NOT NULL AND NOT (once AND status = 'SUCCEEDED') AND finished_at < ?`
	selectPrune = `SELECT number, finished_at, attempt_count ` + prunable + ` ORDER BY finished_at`
	countPrune  = `SELECT count(*), min(finished_at), max(finished_at) ` + prunable
	selectCut   = `SELECT number FROM attempts WHERE task = ? ORDER BY number LIMIT 1 OFFSET ?`
	deleteUpTo  = `DELETE FROM attempts WHERE task = ? AND number < ?`
	deleteAll   = `DELETE FROM attempts WHERE task = ?`
	deleteTask  = `DELETE FROM tasks WHERE number = ?`
)

// finishedStatuses are those that a task never leaves by itself.
var finishedStatuses = []task.Status{task.Succeeded, task.Failed, task.Exhausted, task.Cancelled}

func statusesOf(r state.Retention) []task.Status {
	if len(r.Statuses) == 0 {
		return finishedStatuses
	}
	return r.Statuses
}

func before(r state.Retention) int64 {
	if r.Before.IsZero() {
		return math.MaxInt64
	}
	return r.Before.UnixMicro()
}

// Prune takes one step: it removes finished tasks, the oldest first, in one transaction that others need not wait for long. A
// task with more attempts than a step may remove loses them over several, and its own row last. It returns how many tasks are
// gone, and whether another step would find more.
func (j *Journal) Prune(ctx context.Context, r state.Retention) (tasks int, more bool, err error) {
	if err := j.sweepInputs(ctx); err != nil {
		return 0, false, err
	}
	err = j.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		found, err := j.prunable(ctx, tx, r, max(r.Rows, leastRows)/leastRows+1)
		if err != nil {
			return err
		}
		tasks, more, err = j.remove(ctx, tx, found, max(r.Rows, leastRows))
		return err
	})
	return tasks, more, err
}

// remove removes the candidates as far as there is room for.
func (j *Journal) remove(ctx context.Context, tx *sql.Tx, found []candidate, room int) (tasks int, more bool, err error) {
	if len(found) == 0 {
		return 0, false, nil
	}
	r, err := newRemover(ctx, tx)
	if err != nil {
		return 0, false, err
	}
	for _, c := range found {
		if room < leastRows {
			return tasks, true, nil
		}
		rows, whole, err := r.remove(ctx, c, room)
		if err != nil || !whole {
			return tasks, true, err
		}
		room -= rows
		tasks++
	}
	return tasks, false, nil
}

// prunable returns the oldest tasks that may go, at most so many.
func (j *Journal) prunable(ctx context.Context, tx *sql.Tx, r state.Retention, most int) ([]candidate, error) {
	var found []candidate
	for _, status := range statusesOf(r) {
		of, err := j.candidates(ctx, tx, status, before(r), most)
		if err != nil {
			return nil, err
		}
		found = append(found, of...)
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.finished, b.finished) })
	return found[:min(most, len(found))], nil
}

// candidate is a task that may go.
type candidate struct {
	number, finished int64
	attempts         int // no more than these
}

// candidates leaves out a task whose owner lives, for now: that may still read it, for a report.
func (j *Journal) candidates(ctx context.Context, tx *sql.Tx, status task.Status, before int64, most int) ([]candidate, error) {
	rows, err := tx.QueryContext(ctx, selectPrune, status, before)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []candidate
	for len(found) < most && rows.Next() {
		var c candidate
		if err := rows.Scan(&c.number, &c.finished, &c.attempts); err != nil {
			return nil, err
		}
		pid, err := j.Owner(c.number)
		if err != nil {
			return nil, err
		}
		if pid == 0 {
			found = append(found, c)
		}
	}
	return found, rows.Err()
}

// remover removes tasks within a transaction. Its statements are prepared: each compiles what follows from the references between
// the tables, which takes longer than to run it.
type remover struct{ cut, upTo, all, task *sql.Stmt }

func newRemover(ctx context.Context, tx *sql.Tx) (r remover, err error) {
	for _, s := range []struct {
		to    **sql.Stmt
		query string
	}{{&r.cut, selectCut}, {&r.upTo, deleteUpTo}, {&r.all, deleteAll}, {&r.task, deleteTask}} {
		if *s.to, err = tx.PrepareContext(ctx, s.query); err != nil { //nolint:sqlclosecheck // the transaction closes it
			return r, err
		}
	}
	return r, nil
}

// remove removes a task with all that belongs to it, or as many of its first attempts as there is room for. It counts each attempt
// as if it had a tail.
func (r remover) remove(ctx context.Context, c candidate, room int) (rows int, whole bool, err error) {
	most := (room - 1) / 2
	if c.attempts > most {
		var cut int64
		switch err := r.cut.QueryRowContext(ctx, c.number, most).Scan(&cut); {
		case err == nil:
			_, err = r.upTo.ExecContext(ctx, c.number, cut)
			return 2 * most, false, err
		case !errors.Is(err, sql.ErrNoRows):
			return 0, false, err
		}
	}
	result, err := r.all.ExecContext(ctx, c.number)
	if err != nil {
		return 0, false, err
	}
	attempts, err := result.RowsAffected()
	if err != nil {
		return 0, false, err
	}
	_, err = r.task.ExecContext(ctx, c.number)
	return 1 + 2*int(attempts), true, err
}

// Prunable tells what Prune would remove, and removes nothing.
func (j *Journal) Prunable(ctx context.Context, r state.Retention) (p state.Prunable, err error) {
	for _, status := range statusesOf(r) {
		var n int
		var oldest, newest integer
		if err := j.db.QueryRowContext(ctx, countPrune, status, before(r)).Scan(&n, &oldest, &newest); err != nil {
			return p, err
		}
		if n == 0 {
			continue
		}
		if from := moment(oldest); p.Tasks == 0 || from.Before(p.Oldest) {
			p.Oldest = from
		}
		if to := moment(newest); to.After(p.Newest) {
			p.Newest = to
		}
		p.Tasks += n
	}
	return p, nil
}
