package sqlite

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// maxNamed is how many tasks an error names of those that a part of an id stands for.
const maxNamed = 6

const (
	findID   = selectTasks + "WHERE t.id = ?"
	findName = selectTasks + "WHERE t.name = ? ORDER BY t.number DESC LIMIT 1"
)

// Find returns the task that a name, an id, or a unique prefix or suffix of an id stands for.
func (j *Journal) Find(ctx context.Context, ref string) (*task.Task, error) {
	for _, query := range []string{findID, findName} {
		if found, err := j.tasks(ctx, query, ref); err != nil || len(found) > 0 {
			return first(found), err
		}
	}
	found, err := j.findPart(ctx, strings.ToLower(ref))
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %q\nhint: retry status lists the tasks; a part of an id is its beginning or its end", state.ErrNotFound, ref)
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, t := range found {
			ids[i] = t.ID
		}
		return nil, fmt.Errorf("%q stands for several tasks\nhint: give more of one of %s", ref, strings.Join(ids, ", "))
	}
	return found[0], nil
}

func first(tasks []*task.Task) *task.Task {
	if len(tasks) == 0 {
		return nil
	}
	return tasks[0]
}

// Parts of an id, ?1, lead to no more than ?2 numbers. A beginning is a range of the ids' index; for an end all of that
// is read, but none of the far larger table.
const (
	withPrefix = "SELECT number FROM (SELECT number FROM tasks WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id DESC LIMIT ?2)"
	withSuffix = "SELECT number FROM (SELECT number FROM tasks WHERE substr(id, -length(?1)) = ?1 LIMIT ?2)"
	findPart   = selectTasks + "WHERE t.number IN (" + withPrefix + " UNION ALL " + withSuffix + ") ORDER BY t.number DESC LIMIT ?2"
)

func (j *Journal) findPart(ctx context.Context, part string) ([]*task.Task, error) {
	if part == "" {
		return nil, nil
	}
	return j.tasks(ctx, findPart, part, maxNamed)
}

// Unfinished returns the tasks that have not ended, oldest first, without their attempts.
func (j *Journal) Unfinished(ctx context.Context) ([]*task.Task, error) {
	return j.tasks(ctx, selectTasks+"WHERE t.status IN ('PENDING', 'IN_FLIGHT') ORDER BY t.number")
}

// Count returns how many tasks the journal holds.
func (j *Journal) Count(ctx context.Context) (n int, err error) {
	err = j.row(ctx, "SELECT count(*) FROM tasks", nil, &n)
	return n, err
}

func (j *Journal) tasks(ctx context.Context, query string, args ...any) ([]*task.Task, error) {
	return collect(ctx, j, query, args, j.scanTask)
}

// Attempts returns the task's attempts in their order, with the tails of their output. One that is in flight has no
// verdict yet.
func (j *Journal) Attempts(ctx context.Context, number int64) ([]task.Attempt, error) {
	const query = "SELECT " + attemptColumns + `, o.stdout, o.stderr
		FROM attempts a LEFT JOIN tails o ON o.task = a.task AND o.attempt = a.number WHERE a.task = ? ORDER BY a.number`
	return collect(ctx, j, query, []any{number}, func(scan scanner) (task.Attempt, error) {
		var row attemptRow
		var stdout, stderr []byte
		err := scan(append(row.columns(), &stdout, &stderr)...)
		a := row.attempt()
		a.Outcome.Stdout, a.Outcome.Stderr = string(stdout), string(stderr)
		return a, err
	})
}

// History returns the task's attempts in their order, without the tails.
func (j *Journal) History(ctx context.Context, number int64) ([]task.Attempt, error) {
	const query = "SELECT " + attemptColumns + " FROM attempts a WHERE a.task = ? ORDER BY a.number"
	return collect(ctx, j, query, []any{number}, func(scan scanner) (task.Attempt, error) {
		var row attemptRow
		err := scan(row.columns()...)
		return row.attempt(), err
	})
}

// Named returns the unfinished task of a name; nil where there is none.
func (j *Journal) Named(ctx context.Context, name string) (*task.Task, error) {
	return j.newest(ctx, "WHERE t.name = ? AND t.status IN ('PENDING', 'IN_FLIGHT')", name)
}

// Newest returns the newest task of a name; nil where there is none.
func (j *Journal) Newest(ctx context.Context, name string) (*task.Task, error) {
	return j.newest(ctx, "WHERE t.name = ?", name)
}

// Success returns the newest task of a name that succeeded; nil where none did.
func (j *Journal) Success(ctx context.Context, name string) (*task.Task, error) {
	return j.newest(ctx, "WHERE t.name = ? AND t.status = 'SUCCEEDED'", name)
}

func (j *Journal) newest(ctx context.Context, where string, args ...any) (*task.Task, error) {
	found, err := j.tasks(ctx, selectTasks+where+" ORDER BY t.number DESC LIMIT 1", args...)
	return first(found), err
}

// Output returns what was captured of a task's attempt, or, for attempt 0, of the latest one that has anything.
func (j *Journal) Output(ctx context.Context, number int64, attempt int) (state.Output, error) {
	const query = `SELECT attempt, stdout, stderr FROM tails WHERE task = ?1 AND (?2 = 0 OR attempt = ?2) ORDER BY attempt DESC LIMIT 1`
	found, err := collect(ctx, j, query, []any{number, attempt}, func(scan scanner) (o state.Output, err error) {
		var stdout, stderr []byte
		err = scan(&o.Attempt, &stdout, &stderr)
		o.Stdout, o.Stderr = string(stdout), string(stderr)
		return o, err
	})
	switch {
	case err != nil:
		return state.Output{}, err
	case len(found) == 0:
		return state.Output{}, state.ErrNoOutput
	}
	return found[0], nil
}

// pageSize is how many tasks are read at once. Between two pages no transaction is open, however slowly the tasks are
// taken: one would keep the WAL from being reset.
const pageSize = 256

// List returns tasks, newest first, without their attempts.
func (j *Journal) List(ctx context.Context, f state.Filter) ([]*task.Task, error) {
	var tasks []*task.Task
	for t, err := range j.All(ctx, f) {
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// All yields what List returns, and holds no more than a page of it. An error is the last that it yields.
func (j *Journal) All(ctx context.Context, f state.Filter) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		var last *task.Task
		for left := f.Limit; ; left -= pageSize {
			page, err := j.page(ctx, f, last, left)
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

// page reads the tasks that follow the last one; limit is how many are wanted, as in Filter.
func (j *Journal) page(ctx context.Context, f state.Filter, last *task.Task, limit int) ([]*task.Task, error) {
	if limit <= 0 || limit > pageSize {
		limit = pageSize
	}
	query, args := listQuery(f, last, limit)
	return j.tasks(ctx, query, args...)
}

func listQuery(f state.Filter, last *task.Task, limit int) (query string, args []any) {
	where, args := listConditions(f)
	order := "t.number"
	if byID(f) {
		order = "t.id"
	}
	switch {
	case last == nil:
	case order == "t.id":
		where, args = append(where, "t.id < ?"), append(args, last.ID)
	default:
		where, args = append(where, "t.number < ?"), append(args, last.Number)
	}
	return selectTasks + "WHERE " + strings.Join(where, " AND ") + " ORDER BY " + order + " DESC LIMIT ?", append(args, limit)
}

// byID reports whether the index of the ids answers. That of the names is better, where one is given.
func byID(f state.Filter) bool {
	return !f.Since.IsZero() && f.Name == ""
}

// listConditions are the filter in SQL. Two of them say what follows from others, so that an index answers: that of the
// unfinished tasks, and that of the ids, which begin with the time.
func listConditions(f state.Filter) (where []string, args []any) {
	where = []string{"true"}
	if len(f.Statuses) > 0 {
		where = append(where, "t.status IN (?"+strings.Repeat(", ?", len(f.Statuses)-1)+")")
		for _, s := range f.Statuses {
			args = append(args, s)
		}
		if !slices.ContainsFunc(f.Statuses, task.Status.Finished) {
			where = append(where, "t.status IN ('PENDING', 'IN_FLIGHT')")
		}
	}
	if f.Name != "" {
		where, args = append(where, "t.name = ?"), append(args, f.Name)
	}
	if !f.Since.IsZero() {
		where, args = append(where, "t.created_at >= ?"), append(args, f.Since.UnixMicro())
	}
	if byID(f) {
		where, args = append(where, "t.id >= ?"), append(args, earliestID(f.Since))
	}
	return where, args
}

// earliestID is the beginning of every UUIDv7 that was made at a time or later: RFC 9562, section 5.7, has the
// milliseconds since 1970 in its first 48 bits.
func earliestID(t time.Time) string {
	digits := fmt.Sprintf("%012x", max(0, t.UnixMilli()))
	return digits[:8] + "-" + digits[8:]
}
