package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// leastRows are the rows of a task with one attempt and its tail. A step that removes fewer makes no progress.
const leastRows = 3

// The statements of a step. None reads more rows than it may remove; a test checks SQLite's plans.
const (
	prunable    = `FROM tasks WHERE status = ? AND finished_at IS NOT NULL AND NOT (once AND status = 'SUCCEEDED') AND finished_at < ?`
	selectPrune = `SELECT number, finished_at ` + prunable + ` ORDER BY finished_at`
	countPrune  = `SELECT count(*), min(finished_at), max(finished_at) ` + prunable
	deleteFirst = `DELETE FROM attempts WHERE task = ?1
		AND number IN (SELECT number FROM attempts WHERE task = ?1 ORDER BY number LIMIT ?2)`
	deleteTask = `DELETE FROM tasks WHERE number = ?`
)

// finishedStatuses are all statuses of a task that has ended.
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

// Prune removes some finished tasks, the oldest first, in one short transaction. A task with many attempts is removed by
// several calls, its first attempts first. Prune returns how many tasks it removed, and whether another call would find
// more.
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

// removeAll removes candidates until it has removed so many rows as there is room for.
func removeAll(c *conn, found []candidate, room int) (tasks int, more bool, err error) {
	for _, f := range found {
		if room < leastRows {
			return tasks, true, nil
		}
		rows, whole, err := remove(c, f.number, room)
		if err != nil || !whole {
			return tasks, true, err
		}
		room -= rows
		tasks++
	}
	return tasks, false, nil
}

// prunable returns the oldest tasks that may be removed, at most so many.
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

// candidate is a task that may be removed.
type candidate struct {
	number, finished int64
}

// candidates leaves out a task whose owner is alive, as that may still read the task for its report.
func (j *Journal) candidates(c *conn, status task.Status, before int64, most int) (found []candidate, err error) {
	err = c.each(context.Background(), selectPrune, []any{status, before}, func(scan scanner) (bool, error) {
		var f candidate
		if err := scan(&f.number, &f.finished); err != nil {
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

// remove removes a task, or as many of its first attempts as there is room for. It counts each attempt as if it had a
// tail.
func remove(c *conn, number int64, room int) (rows int, whole bool, err error) {
	most := (room - 1) / 2
	attempts, err := c.exec(deleteFirst, number, most)
	rows = 1 + 2*int(attempts)
	if err != nil {
		return 0, false, err
	}
	if int(attempts) == most {
		var more bool
		err := c.row("SELECT EXISTS (SELECT 1 FROM attempts WHERE task = ?)", []any{number}, &more)
		if err != nil || more {
			return rows, false, err
		}
	}
	_, err = c.exec(deleteTask, number)
	return rows, true, err
}

// Prunable returns what Prune would remove in all.
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
