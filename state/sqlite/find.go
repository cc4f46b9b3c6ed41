package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// maxNamed is how many tasks an error lists for an ambiguous part of an id.
const maxNamed = 6

const (
	findID   = selectTasks + "WHERE t.id = ?"
	findName = selectTasks + "WHERE t.name = ?" + newest
	newest   = " ORDER BY t.number DESC LIMIT 1"
)

// Find returns the task with a name or an id, or with a unique beginning or end of an id.
func (j *Journal) Find(ctx context.Context, ref string) (*task.Task, error) {
	for _, query := range []string{findID, findName} {
		if t, err := j.one(ctx, query, ref); err != nil || t != nil {
			return t, err
		}
	}
	var found []*task.Task
	var err error
	if isPart(ref) {
		found, err = j.tasks(ctx, findPart, strings.ToLower(ref), maxNamed)
	}
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %q\nhint: retry status lists the tasks; "+
			"a part of an id is its beginning or its end, of four characters at least", state.ErrNotFound, ref)
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, t := range found {
			ids[i] = t.ID
		}
		return nil, fmt.Errorf("%q stands for several tasks\nhint: give more of one of %s", ref, strings.Join(ids, ", "))
	}
	return found[0], nil
}

// isPart reports whether a reference may be a part of an id: hexadecimal digits and hyphens. A number with fewer
// digits than tables show of an id is rather a name that no task has any more, and must not stand for another task.
func isPart(ref string) bool {
	if strings.Trim(ref, "0123456789abcdefABCDEF-") != "" {
		return false // findPart would read the index of all ids for it
	}
	return len(ref) >= 8 || len(ref) >= 4 && strings.Trim(ref, "0123456789") != ""
}

// findPart finds at most ?2 tasks whose id begins or ends with ?1. A beginning is a range in the index of ids; for an
// end the whole index is read, but not the far larger table.
const (
	withPrefix = "SELECT number FROM (SELECT number FROM tasks WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id DESC LIMIT ?2)"
	withSuffix = "SELECT number FROM (SELECT number FROM tasks WHERE substr(id, -length(?1)) = ?1 LIMIT ?2)"
	findPart   = selectTasks + "WHERE ?1 <> '' AND t.number IN (" + withPrefix + " UNION ALL " + withSuffix +
		") ORDER BY t.number DESC LIMIT ?2"
)

// Unfinished returns the tasks that have not ended, oldest first, without their attempts. It leaves out what is queued
// for workers: there may be a million.
func (j *Journal) Unfinished(ctx context.Context) ([]*task.Task, error) {
	return j.tasks(ctx, selectTasks+"WHERE t.status IN ('PENDING', 'IN_FLIGHT') AND t.queue <> 1 ORDER BY t.number")
}

func (j *Journal) tasks(ctx context.Context, query string, args ...any) ([]*task.Task, error) {
	return collect(ctx, j, query, args, j.scanTask)
}

// one returns the first task that a query finds; nil if it finds none.
func (j *Journal) one(ctx context.Context, query string, args ...any) (*task.Task, error) {
	found, err := j.tasks(ctx, query, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Attempts returns the task's attempts in their order, with the tails of their output. An attempt in flight has no
// verdict yet.
func (j *Journal) Attempts(ctx context.Context, number int64) ([]task.Attempt, error) {
	const query = "SELECT " + attemptColumns + `, o.stdout, o.stderr
		FROM attempts a LEFT JOIN tails o ON o.task = a.task AND o.attempt = a.number WHERE a.task = ? ORDER BY a.number`
	return collect(ctx, j, query, []any{number}, scanAttempt)
}

const selectHistory = "SELECT " + attemptColumns + " FROM attempts a WHERE a.task = ? ORDER BY a.number"

// History returns the task's attempts in their order, without the tails.
func (j *Journal) History(ctx context.Context, number int64) ([]task.Attempt, error) {
	return collect(ctx, j, selectHistory, []any{number}, scanAttempt)
}

// Named returns the unfinished task with a name; nil if there is none.
func (j *Journal) Named(ctx context.Context, name string) (*task.Task, error) {
	return j.one(ctx, selectTasks+"WHERE t.name = ? AND t.finished_at IS NULL"+newest, name)
}

// hasSucceeded is a task that has succeeded, also where it was requeued since, and has ended otherwise, or was
// cancelled before the success was recorded.
const hasSucceeded = `(t.status = 'SUCCEEDED' OR t.status IN ('CANCELLED', 'EXHAUSTED', 'FAILED') AND EXISTS (
	SELECT 1 FROM attempts a
	WHERE a.task = t.number AND (a.decision = 'succeeded' OR a.decision = 'cancelled' AND a.success)))`

// Success returns the newest task with a name that succeeded; nil if none did. What ends are kept beside the journal
// are written first: one of them may be that success.
func (j *Journal) Success(ctx context.Context, name string) (*task.Task, error) {
	if _, err := j.writeKeptEnds(ctx, 0); err != nil {
		return nil, err
	}
	return j.one(ctx, selectTasks+"WHERE t.name = ? AND "+hasSucceeded+newest, name)
}

// MayBeDone returns the newest task of t's name that may have done what t would do, without a success; nil if none did.
func (j *Journal) MayBeDone(ctx context.Context, t *task.Task) (found *task.Task, err error) {
	err = j.read(ctx, func(c *conn.Conn) error {
		found, err = j.mayBeDone(c, t)
		return err
	})
	return found, err
}

func (j *Journal) mayBeDone(c *conn.Conn, t *task.Task) (sent *task.Task, err error) {
	if t.Target == nil {
		return nil, nil
	}
	const query = selectTasks + `WHERE t.name = ? AND t.kind <> 'command'
		AND (t.status IN ('FAILED', 'CANCELLED') OR t.reason = 'expired' OR t.status = 'EXHAUSTED' AND t.requeued_after > 0)
		ORDER BY t.number DESC`
	var list []*task.Task
	err = c.Each(context.Background(), query, []any{t.Name}, func(scan conn.Scanner) (bool, error) {
		earlier, err := j.scanTask(scan)
		list = append(list, earlier)
		return true, err
	})
	for _, earlier := range list {
		var attempts []task.Attempt
		if err == nil && (earlier.Status == task.Cancelled || earlier.RequeuedAfter > 0) {
			err = c.Each(context.Background(), selectHistory, []any{earlier.Number}, func(scan conn.Scanner) (bool, error) {
				a, err := scanAttempt(scan)
				attempts = append(attempts, a)
				return true, err
			})
		}
		if err != nil {
			return nil, err
		}
		if earlier.MayBeDone(attempts) {
			return earlier, nil
		}
	}
	return nil, err
}

// Output returns what was captured of an attempt, or, for attempt 0, of the latest one that wrote anything.
func (j *Journal) Output(ctx context.Context, number int64, attempt int) (o state.Output, err error) {
	const query = `SELECT attempt, stdout, stderr FROM tails WHERE task = ?1 AND (?2 = 0 OR attempt = ?2)
		ORDER BY attempt DESC LIMIT 1`
	err = j.row(ctx, query, []any{number, attempt}, &o.Attempt, &o.Stdout, &o.Stderr)
	if errors.Is(err, sql.ErrNoRows) {
		err = state.ErrNoOutput
	}
	return o, err
}

// pageSize is how many tasks are read at once. Between two pages no transaction is open, however slow the caller is: an
// open one would keep the WAL from being reset.
const pageSize = 256

// All yields tasks, newest first, without their attempts; it holds at most a page of them. An error is the last item.
func (j *Journal) All(ctx context.Context, f state.Filter) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		last, err := j.afterLast(ctx, f)
		if err != nil {
			yield(nil, err)
			return
		}
		for left := f.Limit; ; left -= pageSize {
			limit := pageSize
			if f.Limit > 0 {
				limit = min(left, pageSize)
			}
			query, args := listQuery(f, last, limit)
			page, err := j.tasks(ctx, query, args...)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			if len(page) < pageSize || left == pageSize {
				return
			}
			last = page[len(page)-1]
		}
	}
}

// afterLast bounds a list by the id and the number of all tasks made until a time, in the order of either; nil where
// any may be on it. A requeue only moves a task's time later.
func (j *Journal) afterLast(ctx context.Context, f state.Filter) (*task.Task, error) {
	if f.Until.IsZero() {
		return nil, nil
	}
	after := &task.Task{ID: earliestID(f.Until.Add(time.Millisecond))}
	return after, j.row(ctx, selectAfter, []any{after.ID}, &after.Number)
}

// selectAfter reads the index of the ids alone. For max(number), without +, SQLite would read the newest tasks first.
const selectAfter = "SELECT coalesce(max(+number), 0) + 1 FROM tasks WHERE id < ?"

// selectBegun finds what a run or a worker has, in two small indexes. UNION without ALL would sort both parts by
// number, and for that read all tasks.
const selectBegun = "SELECT number FROM tasks WHERE status IN ('PENDING', 'IN_FLIGHT') AND queue <> 1" +
	" UNION ALL SELECT number FROM tasks WHERE worker IS NOT NULL"

// listQuery finds the tasks after the last one. Two of its conditions follow from others, so that SQLite can use an
// index: those of the unfinished and of the finished tasks, and that of the ids, which begin with the time.
func listQuery(f state.Filter, last *task.Task, limit int) (query string, args []any) {
	where, order := "true", "t.number"
	and := func(condition string, values ...any) {
		where, args = where+" AND "+condition, append(args, values...)
	}
	byNumber := f.Name != "" || f.Begun // what finds few tasks without the index of the ids
	if len(f.Statuses) > 0 {
		statuses := list(len(f.Statuses))
		and("t.status IN "+statuses, statusArgs(f.Statuses)...)
		finished := slices.ContainsFunc(f.Statuses, task.Status.Finished)
		unfinished := slices.ContainsFunc(f.Statuses, func(s task.Status) bool { return !s.Finished() })
		switch onePage := f.Limit > 0 && f.Limit <= pageSize; {
		case !finished:
			and("t.finished_at IS NULL")
		case unfinished:
		case f.Name == "" && onePage && !slices.Contains(f.Statuses, task.Succeeded):
			byNumber = true // the index has few of these; but each page reads all of them
			and("t.number IN (SELECT number FROM tasks WHERE "+isFinished+" AND status IN "+statuses+")",
				statusArgs(f.Statuses)...)
		default: // there may be a million newer ones that wait
			and("t.finished_at > 0")
		}
	}
	if f.Begun {
		and("t.number IN (" + selectBegun + ")")
	}
	if !f.Until.IsZero() {
		and(began+" <= ?", f.Until.UnixMicro())
	}
	if f.Name != "" {
		and("t.name = ?", f.Name)
	}
	if f.Host != nil {
		and("t.host = ?", *f.Host)
	}
	if f.PolicyID != nil {
		and("coalesce(t.policy ->> 'name', '') = ?", *f.PolicyID)
	}
	if f.Error != "" {
		and(lastError+" = ?", f.Error)
	}
	if !f.Since.IsZero() {
		and("t.created_at >= ?", f.Since.UnixMicro())
		if !byNumber {
			order = "t.id"
			and("t.id >= ?", earliestID(f.Since))
		}
	}
	switch {
	case last == nil:
	case order == "t.id":
		and("t.id < ?", last.ID)
	default:
		and("t.number < ?", last.Number)
	}
	return selectTasks + "WHERE " + where + " ORDER BY " + order + " DESC LIMIT ?", append(args, limit)
}

// earliestID is the lower bound of every UUIDv7 made at a time or later: its first 48 bits are the milliseconds since
// 1970 (RFC 9562, section 5.7).
func earliestID(t time.Time) string {
	digits := fmt.Sprintf("%012x", max(0, t.UnixMilli()))
	return digits[:8] + "-" + digits[8:]
}
