package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// leastRows are the rows of a task with one attempt and its tail. A step that removes fewer makes no progress.
const leastRows = 3

// The statements of a step. None reads more rows than it may remove; a test checks SQLite's plans.
const (
	ofStatus = `FROM tasks t WHERE status = ? AND finished_at IS NOT NULL AND NOT (once AND status = 'SUCCEEDED')
		AND finished_at < ?`
	wasCutOff = `(t.status <> 'SUCCEEDED' AND t.kind = 'command' AND (t.name IS NOT NULL OR t.parent IS NOT NULL)
		AND EXISTS (SELECT 1 FROM attempts a WHERE a.task = t.number AND a.number = t.attempt_count
			AND (a.exit IS NULL OR a.decision IN ('interrupted', 'cancelled')
				OR a.error IS NULL AND a.signal IN ('SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGKILL'))))` // as of task.Attempt
	// hasNested is an outer task of unfinished ones, however deep, of which it says whether they may go on.
	hasNested = `EXISTS (WITH RECURSIVE inside (id, finished_at, queue) AS (
		SELECT id, finished_at, queue FROM tasks made WHERE made.parent = t.id
		UNION SELECT made.id, made.finished_at, made.queue FROM inside JOIN tasks made ON made.parent = inside.id)
		SELECT 1 FROM inside WHERE finished_at IS NULL AND queue = 0)`
	// relied is what --once relies on: a success, or a request that may have been one.
	relied = `(once AND (` + hasSucceeded + ` OR kind <> 'command'
		AND (coalesce(reason, '') IN ('ambiguous', 'expired') OR status = 'CANCELLED' AND attempt_count > 0
		OR requeued_after > 0)))`
	prunable = ofStatus + ` AND NOT ` + relied + ` AND NOT ` + hasNested + `
		AND (NOT ` + wasCutOff + ` OR number IN (SELECT value FROM json_each(?)))
		AND id NOT IN (SELECT value FROM json_each(?))`
	selectOldest = `SELECT number, finished_at ` + ofStatus
	selectPrune  = `SELECT number, finished_at, status ` + prunable
	countPrune   = `SELECT count(*) AS tasks, min(finished_at) AS oldest, max(finished_at) AS newest ` + prunable
	deleteFirst  = `DELETE FROM attempts WHERE task = ?1
		AND number IN (SELECT number FROM attempts WHERE task = ?1 ORDER BY number LIMIT ?2)`
	countPruned = `INSERT INTO pruned VALUES (?, 1) ON CONFLICT (status) DO UPDATE SET tasks = tasks + 1`
	deleteTask  = `DELETE FROM tasks WHERE number = ?`
)

// ofEach repeats a query for each status that a retention removes: one condition on several statuses would use no
// index. more are the arguments that the query has after status and time.
func ofEach(query string, r state.Retention, more ...any) (union string, args []any) {
	statuses, before := finishedStatuses, int64(math.MaxInt64)
	if len(r.Statuses) > 0 {
		statuses = r.Statuses
	}
	if !r.Before.IsZero() {
		before = r.Before.UnixMicro()
	}
	for _, status := range statuses {
		args = append(append(args, status, before), more...)
	}
	return strings.Join(slices.Repeat([]string{query}, len(statuses)), " UNION ALL "), args
}

// finishedStatuses are all statuses of a task that has ended.
var finishedStatuses = []task.Status{task.Succeeded, task.Failed, task.Exhausted, task.Cancelled}

// inJSON is a list as an argument of prunable.
func inJSON[T int64 | string](list []T) string {
	text, _ := json.Marshal(append([]T{}, list...)) // which cannot fail for numbers and strings
	return string(text)
}

// Prune removes some finished tasks, the oldest first, in one short transaction. A task with many attempts is removed
// by several calls, its first attempts first.
func (j *Journal) Prune(ctx context.Context, r state.Retention) (tasks int, more bool, err error) {
	_, err = j.writeKeptEnds(ctx, 0)
	if err := errors.Join(err, j.sweepInputs(ctx)); err != nil {
		return 0, false, err
	}
	err = j.write(ctx, func(c *conn.Conn) error {
		room := max(r.Rows, leastRows)
		tasks, more = 0, false
		found, err := j.candidates(c, r, room/leastRows+1)
		if err != nil {
			return err
		}
		for _, t := range found {
			if more = room < leastRows; more {
				break
			}
			rows, whole, err := remove(c, t.Number, room)
			if more = !whole; more || err != nil {
				return err
			}
			if _, err := c.Exec(countPruned, t.Status); err != nil {
				return err
			}
			room -= rows
			tasks++
		}
		return nil
	})
	return tasks, more, err
}

// candidates returns the oldest tasks that may be removed, at most so many. It leaves out a task whose owner is alive,
// as that may still read the task for its report.
func (j *Journal) candidates(c *conn.Conn, r state.Retention, most int) (found []task.Task, err error) {
	query, args := ofEach(selectPrune, r, inJSON(r.Ended), inJSON(r.Outer))
	err = c.Each(context.Background(), query+" ORDER BY finished_at", args, func(scan conn.Scanner) (bool, error) {
		var t task.Task
		var finished int64
		if err := scan(&t.Number, &finished, (*string)(&t.Status)); err != nil {
			return false, err
		}
		pid, err := j.Owner(t.Number)
		if pid == 0 && err == nil {
			pid, err = j.HookOwner(t.Number)
		}
		if pid == 0 && err == nil && !j.owners.Has(lock.Hook(t.Number)) {
			found = append(found, t)
		}
		return len(found) < most, err
	})
	return found, err
}

// remove removes a task, or as many of its first attempts as there is room for. It counts each attempt as if it had a
// tail.
func remove(c *conn.Conn, number int64, room int) (rows int, whole bool, err error) {
	most := (room - 1) / 2
	attempts, err := c.Exec(deleteFirst, number, most)
	rows = 1 + 2*int(attempts)
	if err != nil {
		return 0, false, err
	}
	if int(attempts) == most {
		var more bool
		err := c.Row("SELECT EXISTS (SELECT 1 FROM attempts WHERE task = ?)", []any{number}, &more)
		if err != nil || more {
			return rows, false, err
		}
	}
	_, err = c.Exec(deleteTask, number)
	return rows, true, err
}

// Prunable returns what Prune would remove in all.
func (j *Journal) Prunable(ctx context.Context, r state.Retention) (p state.Prunable, err error) {
	query, args := ofEach(countPrune, r, inJSON(r.Ended), inJSON(r.Outer))
	err = j.row(ctx, "SELECT sum(tasks), min(oldest), max(newest) FROM ("+query+")", args, &p.Tasks, &p.Oldest, &p.Newest)
	return p, err
}

// CutOff implements state.Store.
func (j *Journal) CutOff(ctx context.Context, r state.Retention, most int) ([]*task.Task, error) {
	if most == 0 {
		most = -1 // no limit
	}
	query, args := ofEach(selectOldest, r)
	query = "SELECT number FROM (" + query + " ORDER BY finished_at LIMIT ?)"
	query = selectTasks + "WHERE t.number IN (" + query + ") AND " + wasCutOff + " ORDER BY t.number"
	return j.tasks(ctx, query, append(args, most)...)
}
