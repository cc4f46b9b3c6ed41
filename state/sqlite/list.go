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

// pageSize is how many tasks are read at once. Between two pages no transaction is open, however slowly the tasks are taken:
// one would keep the WAL from being reset.
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

// listConditions are the filter in SQL. Two of them say what follows from others, so that an index answers: that of the unfinished
// tasks, and that of the ids, which begin with the time.
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

// earliestID is the beginning of every UUIDv7 that was made at a time or later: RFC 9562, section 5.7, has the milliseconds since
// 1970 in its first 48 bits.
func earliestID(t time.Time) string {
	digits := fmt.Sprintf("%012x", max(0, t.UnixMilli()))
	return digits[:8] + "-" + digits[8:]
}
