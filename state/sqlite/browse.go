package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// Find implements state.Queue: by the whole id.
func (q *Queue) Find(ctx context.Context, id string) (*task.Task, error) {
	found, err := q.found(ctx, findID, id)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, state.ErrNotFound
	}
	return found[0], q.remember(ctx, found[0])
}

// A page is read in steps of so many numbers, until it is full or has taken so long. Where few tasks match, it ends
// with fewer than were asked for: a request must not read a million rows.
const (
	pageRows     = 2_000
	pagePatience = 25 * time.Millisecond
)

// Conditions of a filter may stand between the two.
const (
	wherePage = "WHERE t.number < ? AND t.number > ?"
	pageOrder = " ORDER BY t.number DESC LIMIT ?"
)

// Page implements state.Queue.
func (q *Queue) Page(ctx context.Context, f state.PageFilter) (page state.Page, err error) {
	where, args := filtered(f)
	narrower, rows := narrowed(f.Statuses)
	query := selectTasks + wherePage + narrower + where + pageOrder
	f.Limit = cmp.Or(f.Limit, state.DefaultPage)
	err = q.reading(ctx, func(c *conn.Conn) error {
		page = state.Page{}
		size, top := 0, f.Cursor
		if top == 0 {
			if err := c.Row("SELECT coalesce(max(number), 0) + 1 FROM tasks", nil, &top); err != nil {
				return err
			}
		}
		for began := time.Now(); ; {
			bottom := max(0, top-rows-1)
			bound := slices.Concat([]any{top, bottom}, args, []any{f.Limit + 1 - len(page.Tasks)})
			err := c.Each(ctx, query, bound, func(scan conn.Scanner) (bool, error) {
				t, err := q.scanTask(func(to ...any) error {
					err := scan(to...)
					size += textIn(to)
					return err
				})
				page.Tasks = append(page.Tasks, t)
				return f.Bytes == 0 || size <= f.Bytes, err
			})
			top = bottom + 1
			switch {
			case err != nil:
				return err
			case len(page.Tasks) > f.Limit:
				page.Tasks = page.Tasks[:f.Limit]
				page.Next = page.Tasks[f.Limit-1].Number
				return nil
			case f.Bytes > 0 && size > f.Bytes:
				page.Next = page.Tasks[len(page.Tasks)-1].Number
				return nil
			case bottom == 0:
				return nil
			case len(page.Tasks) == f.Limit, time.Since(began) >= pagePatience:
				page.Next = top
				return nil
			}
		}
	})
	return page, err
}

// textIn returns how many bytes of text were copied to the columns of a row.
func textIn(columns []any) (size int) {
	for _, column := range columns {
		switch column := column.(type) {
		case *string:
			size += len(*column)
		case *[]byte:
			size += len(*column)
		}
	}
	return size
}

// narrowed returns what follows from the statuses of a page and has an index of fewer tasks t, and how many numbers a
// step may have.
func narrowed(statuses []task.Status) (where string, rows int64) {
	finished := slices.ContainsFunc(statuses, task.Status.Finished)
	unfinished := slices.ContainsFunc(statuses, func(s task.Status) bool { return !s.Finished() })
	switch {
	case finished == unfinished: // both, or any status
		return "", pageRows
	case finished:
		return " AND t.finished_at > 0", pageRows
	case slices.Contains(statuses, task.Pending):
		return " AND t.finished_at IS NULL", pageRows
	}
	return " AND t.number IN (" + selectBegun + ")", math.MaxInt64 / 2
}

// filtered returns the conditions of a filter, on tasks t.
func filtered(f state.PageFilter) (where string, args []any) {
	and := func(condition string, values ...any) {
		where, args = where+" AND "+condition, append(args, values...)
	}
	if len(f.Statuses) > 0 {
		and("t.status IN "+list(len(f.Statuses)), statusArgs(f.Statuses)...)
	}
	if f.PolicyID != "" {
		and(policyName+" = ?", f.PolicyID)
	}
	if f.Partition != nil {
		and("t.partition = ?", *f.Partition)
	}
	if f.Host != "" {
		and("t.host = ?", f.Host)
	}
	if f.Tag != "" {
		and("EXISTS (SELECT 1 FROM json_each(iif(json_valid(t.tags), t.tags, NULL)) WHERE value = ?)", f.Tag)
	}
	if f.Error != "" {
		and(lastError+" = ?", f.Error)
	}
	if !f.Since.IsZero() {
		and("t.created_at >= ?", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		and("t.created_at < ?", f.Until.UnixMicro())
	}
	return where, args
}

func statusArgs(statuses []task.Status) (args []any) {
	for _, s := range statuses {
		args = append(args, s)
	}
	return args
}

// policyName is that of a task t; NULL where the policy cannot be read: a bad row must not hide the others.
const policyName = "iif(json_valid(t.policy), t.policy ->> 'name', NULL)"

// lastError names how the last attempt of a task t ended: by an error's class, a status, or a signal or an exit.
const lastError = `(SELECT coalesce(error, 'status ' || nullif(iif(json_valid(exchange), exchange ->> 'status', 0), 0), signal,
	'exit ' || exit, '') FROM attempts WHERE task = t.number AND number = t.attempt_count)`

// AttemptsAfter implements state.Queue.
func (q *Queue) AttemptsAfter(ctx context.Context, number int64, after, limit int) ([]task.Attempt, error) {
	const query = "SELECT " + attemptColumns + `, o.stdout, o.stderr
		FROM attempts a LEFT JOIN tails o ON o.task = a.task AND o.attempt = a.number
		WHERE a.task = ? AND a.number > ? ORDER BY a.number LIMIT ?`
	return selected(ctx, q, query, []any{number, after, limit}, scanAttempt)
}

// Groups implements state.Queue. It reads every dead letter that the filter selects.
func (q *Queue) Groups(ctx context.Context, f state.PageFilter, limit int) ([]state.Group, error) {
	query, args := selectGroups(f, limit)
	return selected(ctx, q, query, args, scanGroup)
}

// Groups returns the dead letters in groups of the same host, policy and error, the largest first.
func (j *Journal) Groups(ctx context.Context, f state.PageFilter, limit int) ([]state.Group, error) {
	query, args := selectGroups(f, limit)
	return collect(ctx, j, query, args, scanGroup)
}

func selectGroups(f state.PageFilter, limit int) (query string, args []any) {
	if len(f.Statuses) == 0 {
		f.Statuses = []task.Status{task.Exhausted, task.Failed}
	}
	where, args := filtered(f)
	query = `WITH g (host, policy, error, tasks, first, last) AS (SELECT t.host, ` + policyName + ", " + lastError + `,
			count(*), min(t.finished_at), max(t.finished_at) FROM tasks t WHERE ` + isFinished + where + `
			GROUP BY 1, 2, 3 ORDER BY 4 DESC, 6 DESC LIMIT ?)
		SELECT host, policy, error, tasks, first, last, (SELECT t.id FROM tasks t WHERE ` + isFinished + where + `
			AND t.finished_at = g.last AND t.host = g.host AND ` + policyName + ` IS g.policy AND ` + lastError + ` IS g.error)
		FROM g ORDER BY 4 DESC, 6 DESC`
	return query, append(append(slices.Clone(args), limit), args...)
}

func scanGroup(scan conn.Scanner) (g state.Group, err error) {
	err = scan(&g.Host, &g.PolicyID, &g.Error, &g.Count, &g.First, &g.Last, &g.Example)
	return g, err
}

// selectDue counts the queued tasks whose time has come.
const selectDue = "SELECT count(*), min(next_attempt_at) " + inQueue + " AND next_attempt_at <= ?"

// Due returns how many tasks in the queue should have begun. Of those that wait, there may be a million more.
func (j *Journal) Due(ctx context.Context, now time.Time) (due int, err error) {
	var oldest time.Time
	err = j.row(ctx, selectDue, []any{now.UnixMicro()}, &due, &oldest)
	return due, err
}

// Backlog returns what waits for a worker.
func (j *Journal) Backlog(ctx context.Context, now time.Time) (b state.Backlog, err error) {
	if err = j.row(ctx, "SELECT count(*) "+inQueue, nil, &b.Waiting); err == nil {
		err = j.row(ctx, selectDue, []any{now.UnixMicro()}, &b.Due, &b.OldestDue)
	}
	return b, err
}

// selectDead counts the dead letters by policy.
const selectDead = "SELECT " + policyName + ", count(*) FROM tasks t WHERE " + isFinished +
	" AND status IN ('EXHAUSTED', 'FAILED') GROUP BY 1"

// CountUnfinished implements state.Queue. It reads no task: tasks_unfinished is smaller by far than what Counts reads.
func (q *Queue) CountUnfinished(ctx context.Context) (n int, err error) {
	err = q.reading(ctx, func(c *conn.Conn) error { return c.Row(selectUnfinished, nil, &n) })
	return n, err
}

const selectUnfinished = "SELECT count(*) FROM tasks WHERE finished_at IS NULL"

// Counts implements state.Queue.
func (q *Queue) Counts(ctx context.Context, now time.Time) (counts state.Counts, err error) {
	err = q.reading(ctx, func(c *conn.Conn) error {
		counts = state.Counts{ByStatus: map[task.Status]int{}, Dead: map[string]int{}}
		err := c.Each(ctx, selectCounts, nil, func(scan conn.Scanner) (bool, error) {
			var status task.Status
			var n int
			err := scan((*string)(&status), &n)
			counts.ByStatus[status] += n
			return true, err
		})
		if err != nil {
			return err
		}
		if err := c.Row(selectDue, []any{now.UnixMicro()}, &counts.Due, &counts.OldestDue); err != nil {
			return err
		}
		return c.Each(ctx, selectDead, nil, func(scan conn.Scanner) (bool, error) {
			var policy string
			var n int
			err := scan(&policy, &n)
			counts.Dead[policy] = n
			return true, err
		})
	})
	return counts, err
}

// Cancel implements state.Queue.
func (q *Queue) Cancel(ctx context.Context, number int64, now time.Time) (before task.Status, err error) {
	if err := q.writeKept(ctx, number); err != nil {
		return "", err
	}
	var stored placed
	err = q.submit(ctx, true, func(c *conn.Conn) (_ []state.Change, err error) {
		if stored, err = q.cancel(c, number, now); err != nil {
			return nil, err
		}
		before = stored.status
		return []state.Change{cancelledAt(number, stored, now)}, nil
	})
	if err == nil {
		q.dropInput(inputName(number, stored.id))
	}
	return stored.status, err
}

// Requeue implements state.Queue.
func (q *Queue) Requeue(ctx context.Context, number int64, due time.Time) error {
	return q.requeueIf(ctx, number, due, func(*conn.Conn, *task.Task) error { return nil })
}

// RequeueDead implements state.Queue.
func (q *Queue) RequeueDead(ctx context.Context, t *task.Task, due time.Time) error {
	return q.requeueIf(ctx, t.Number, due, func(c *conn.Conn, now *task.Task) error {
		outer := 0
		err := c.Row("SELECT count(*) FROM tasks WHERE id = ?", []any{now.Parent}, &outer)
		switch {
		case err != nil:
			return err
		case now.ID != t.ID || now.Status != t.Status || !now.FinishedAt.Equal(t.FinishedAt):
			return state.ErrUnfinished
		case outer > 0 && now.Queue != task.QueueWorker:
			return state.ErrNested
		}
		return nil
	})
}

// requeueIf gives a task fresh attempts where refuse returns nil for what it has become.
func (q *Queue) requeueIf(ctx context.Context, number int64, due time.Time,
	refuse func(*conn.Conn, *task.Task) error) error {
	if err := q.writeKeptIn(ctx, number); err != nil {
		return err
	}
	return q.submit(ctx, true, func(c *conn.Conn) ([]state.Change, error) {
		t, err := q.readTask(c, number)
		switch {
		case err != nil:
			return nil, err
		case t.Damage != nil:
			return nil, fmt.Errorf("%w: %w", state.ErrDamaged, t.Damage)
		case !t.Status.Finished():
			return nil, state.ErrUnfinished
		case t.KeepsInput():
			return nil, state.ErrInputDropped
		case forReply(t):
			return nil, state.ErrReply
		}
		if err := cmp.Or(refuse(c, t), nameFree(c, t.Name, 0), notDone(c, t)); err != nil {
			return nil, err
		}
		if pid, err := q.owners.Owner(number); pid != 0 || err != nil {
			return nil, errors.Join(err, state.ErrOwned) // the process that carried it still runs
		}
		queue := task.QueueWorker
		if t.Queue != task.QueueWorker { // a wrapper's: a resume may take it too
			queue = task.QueueShared
		}
		if err := q.requeue(c, t, due, queue); err != nil {
			return nil, err
		}
		if _, err := c.Exec(shareAgain, number); err != nil { // a worker may have carried what a run had begun
			return nil, err
		}
		change, err := currentChange(c, number, time.Now())
		return []state.Change{change}, err
	})
}

// Reschedule implements state.Queue.
func (q *Queue) Reschedule(ctx context.Context, number int64, due time.Time) (waits bool, err error) {
	err = q.submit(ctx, true, func(c *conn.Conn) ([]state.Change, error) {
		const query = "UPDATE tasks SET next_attempt_at = ? WHERE number = ? AND status = 'PENDING'"
		changed, err := c.Exec(query, due.UnixMicro(), number)
		if waits = changed > 0; err != nil || !waits {
			return nil, err
		}
		change, err := currentChange(c, number, time.Now())
		return []state.Change{change}, err
	})
	return waits, err
}
