package sqlite

import (
	"context"
	"fmt"
	"strings"

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

// Parts of an id, ?1, lead to no more than ?2 numbers. A beginning is a range of the ids' index; for an end all of that is read, but
// none of the far larger table.
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
