package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Requeue gives a finished task fresh attempts: their numbers go on, its key stays, its budget begins anew. Whoever resumes it
// runs it. It returns ErrDamaged where that would not, ErrUnfinished where the task has not ended, ErrNamed where an unfinished one
// has its name, and ErrInputDropped where its attempts read a stdin that was to be replayed.
func (j *Journal) Requeue(ctx context.Context, t *task.Task, now time.Time) error {
	switch {
	case t.Damage != nil:
		return fmt.Errorf("%w: %w", state.ErrDamaged, t.Damage)
	case t.KeepsInput() && !t.Status.Finished():
		return state.ErrUnfinished
	case t.KeepsInput():
		return state.ErrInputDropped
	}
	return j.quickly(ctx, func(l *line) error {
		if err := nameFree(l, t.Name); err != nil && t.Status.Finished() {
			return err
		}
		// A nested task is its own from now on: nobody else would take it up.
		const query = `UPDATE tasks SET status = 'PENDING', reason = NULL, finished_at = NULL, next_attempt_at = ?1, requeued_at = ?1,
			requeued_after = attempt_count, parent = NULL WHERE number = ?2 AND status NOT IN ('PENDING', 'IN_FLIGHT')`
		err := guarded(l.exec(query, now.UnixMicro(), t.Number))
		if errors.Is(err, task.ErrNotOwner) {
			return state.ErrUnfinished
		}
		return err
	})
}

// CancelNested ends what the task's attempts left unfinished: tasks that they made, whose owners are dead. One with a name is left
// for the next attempt, which goes on with it.
func (j *Journal) CancelNested(ctx context.Context, t *task.Task, now time.Time) error {
	const query = `WHERE t.parent = ? AND t.name IS NULL AND t.status IN ('PENDING', 'IN_FLIGHT')`
	nested, err := j.tasks(ctx, selectTasks+query, t.ID)
	if err != nil {
		return err
	}
	var failures []error
	for _, n := range nested {
		if err := j.cancelAbandoned(ctx, n, now); err != nil && !errors.Is(err, state.ErrOwned) && !errors.Is(err, state.ErrFinished) {
			failures = append(failures, fmt.Errorf("cancel the nested task %s: %w", n.ID, err))
		}
	}
	return errors.Join(failures...)
}

// cancelAbandoned ends a task that nobody owns, and what is nested in that.
func (j *Journal) cancelAbandoned(ctx context.Context, t *task.Task, now time.Time) error {
	if owned, err := j.owners.Acquire(t.Number); !owned || err != nil {
		return errors.Join(err, state.ErrOwned)
	}
	defer func() { _ = j.owners.Release(t.Number) }()
	if err := j.Cancel(ctx, t.Number, now); err != nil {
		return err
	}
	return j.CancelNested(ctx, t, now)
}
