package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

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

// Prune takes one step: it removes finished tasks, the oldest first, in one transaction that others need not wait for
// long. A task with more attempts than a step may remove loses them over several, and its own row last. It returns how
// many tasks are gone, and whether another step would find more.
func (j *Journal) Prune(ctx context.Context, r state.Retention) (tasks int, more bool, err error) {
	if err := j.sweepInputs(ctx); err != nil {
		return 0, false, err
	}
	err = j.write(ctx, func(c *conn) error {
		found, err := j.prunable(c, r, max(r.Rows, leastRows)/leastRows+1)
		if err != nil {
			return err
		}
		tasks, more, err = removeAll(c, found, max(r.Rows, leastRows))
		return err
	})
	return tasks, more, err
}

// removeAll removes the candidates as far as there is room for.
func removeAll(c *conn, found []candidate, room int) (tasks int, more bool, err error) {
	for _, f := range found {
		if room < leastRows {
			return tasks, true, nil
		}
		rows, whole, err := f.remove(c, room)
		if err != nil || !whole {
			return tasks, true, err
		}
		room -= rows
		tasks++
	}
	return tasks, false, nil
}

// prunable returns the oldest tasks that may go, at most so many.
func (j *Journal) prunable(c *conn, r state.Retention, most int) ([]candidate, error) {
	var found []candidate
	for _, status := range statusesOf(r) {
		of, err := j.candidates(c, status, before(r), most)
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
func (j *Journal) candidates(c *conn, status task.Status, before int64, most int) (found []candidate, err error) {
	err = c.each(context.Background(), selectPrune, []any{status, before}, func(scan scanner) (bool, error) {
		var f candidate
		if err := scan(&f.number, &f.finished, &f.attempts); err != nil {
			return false, err
		}
		pid, err := j.Owner(f.number)
		if pid == 0 && err == nil {
			found = append(found, f)
		}
		return len(found) < most, err
	})
	return found, err
}

// remove removes a task with all that belongs to it, or as many of its first attempts as there is room for. It counts
// each attempt as if it had a tail.
func (f candidate) remove(c *conn, room int) (rows int, whole bool, err error) {
	most := (room - 1) / 2
	if f.attempts > most {
		var cut int64
		switch err := c.row(selectCut, []any{f.number, most}, &cut); {
		case err == nil:
			_, err = c.exec(deleteUpTo, f.number, cut)
			return 2 * most, false, err
		case !errors.Is(err, sql.ErrNoRows):
			return 0, false, err
		}
	}
	attempts, err := c.exec(deleteAll, f.number)
	if err != nil {
		return 0, false, err
	}
	_, err = c.exec(deleteTask, f.number)
	return 1 + 2*int(attempts), true, err
}

// Prunable tells what Prune would remove, and removes nothing.
func (j *Journal) Prunable(ctx context.Context, r state.Retention) (p state.Prunable, err error) {
	for _, status := range statusesOf(r) {
		var n int
		var oldest, newest time.Time
		if err := j.row(ctx, countPrune, []any{status, before(r)}, &n, &oldest, &newest); err != nil {
			return p, err
		}
		if n == 0 {
			continue
		}
		if p.Tasks == 0 || oldest.Before(p.Oldest) {
			p.Oldest = oldest
		}
		if newest.After(p.Newest) {
			p.Newest = newest
		}
		p.Tasks += n
	}
	return p, nil
}
