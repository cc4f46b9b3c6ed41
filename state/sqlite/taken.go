package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// confirm looks at a task that a write found taken. Where it still stands where that began, or not at all, nobody has taken it:
// the write missed it in a damaged table. That must not pass for a cancelled task, whose command is not run again.
func (j *Journal) confirm(ctx context.Context, t *task.Task, from task.Status, err error) error {
	return j.confirmIf(ctx, t, err, func(status task.Status, count int) bool { return status == from && count == t.AttemptCount })
}

func (j *Journal) confirmIf(ctx context.Context, t *task.Task, err error, stands func(task.Status, int) bool) error {
	if !errors.Is(err, task.ErrNotOwner) {
		return err
	}
	var id string
	var status task.Status
	var count int
	const query = "SELECT id, status, attempt_count FROM tasks WHERE number = ?"
	ctx = context.WithoutCancel(ctx) // who cancels a task has its owner stopped, too: just now
	found := j.db.QueryRowContext(ctx, query, t.Number).Scan(&id, &status, &count)
	switch {
	case errors.Is(found, sql.ErrNoRows), found == nil && id != t.ID, found == nil && stands(status, count):
		return j.lost()
	case found != nil:
		return j.diagnose(found)
	}
	return err
}

// lost is an ErrCorrupt of our own finding. It is no ground to set a journal aside: a cancelled task may have been requeued before
// we looked.
func (j *Journal) lost() error {
	return state.NewFault(state.ErrCorrupt, "retry doctor --state "+j.dir+" says what is wrong", "a row that was written cannot be found")
}
