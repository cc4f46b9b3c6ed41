package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/state/sqlite/wake"
	"github.com/10f93571/retry/task"
)

// Cancel ends an unfinished task, even one with an owner, whose next write then fails. It survives a power loss a moment
// later, and once the journal is closed.
func (j *Journal) Cancel(ctx context.Context, number int64, now time.Time) error {
	if err := j.writeKept(ctx, number); err != nil {
		return err
	}
	var stored placed
	err := j.write(ctx, func(c *conn.Conn) (err error) {
		stored, err = j.cancel(c, number, now)
		return err
	})
	if err != nil {
		return err
	}
	j.tellCancelled(number, stored, now)
	if j.syncsCancel.CompareAndSwap(false, true) { // beside what stops the attempt
		j.background.Go(func() {
			j.syncsCancel.Store(false)
			_ = j.sync()
		})
	}
	return nil
}

// tellCancelled drops the input of a task that was cancelled, and tells other processes.
func (j *Journal) tellCancelled(number int64, stored placed, now time.Time) {
	j.dropInput(inputName(number, stored.id))
	wake.TellOthers(j.dir, []state.Change{cancelledAt(number, stored, now)})
}

// cancelledAt describes a task that was cancelled, by where it stood before.
func cancelledAt(number int64, stored placed, now time.Time) state.Change {
	return state.Change{Number: number, ID: stored.id, Status: task.Cancelled, Attempt: stored.count, At: now}
}

// cancel writes the end of a cancelled task, and returns where it stood before.
func (j *Journal) cancel(c *conn.Conn, number int64, now time.Time) (stored placed, err error) {
	stored, err = position(c, number)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && stored.status.Finished():
		return stored, state.ErrFinished
	case err != nil:
		return stored, err
	}
	err = j.advance(c, number, stored.id, transition{
		event: string(task.VerdictCancelled), from: stored.status, fromCount: stored.count,
		to: task.Cancelled, count: stored.count, reason: task.ReasonCancelled, finishedAt: now,
	})
	if err != nil {
		return stored, err
	}
	conn.Step("task cancelled")
	_, err = c.Exec("UPDATE attempts SET decision = 'cancelled' WHERE task = ? AND decision IS NULL", number)
	return stored, err
}

// Hasten makes a task that waits due now, and reports whether it waits. Its status and its owner stay as they are.
func (j *Journal) Hasten(ctx context.Context, number int64, now time.Time) (waits bool, err error) {
	var change state.Change
	err = j.write(ctx, func(c *conn.Conn) error {
		const query = `UPDATE tasks SET next_attempt_at = min(next_attempt_at, ?) WHERE number = ? AND status = 'PENDING'`
		changed, err := c.Exec(query, now.UnixMicro(), number)
		if waits = changed > 0; err != nil || !waits {
			return err
		}
		change, err = currentChange(c, number, now)
		return err
	})
	if waits {
		wake.TellOthers(j.dir, []state.Change{change})
	}
	return waits, err
}

// NextAttempt returns when the next attempt of a task is due; zero for none.
func (j *Journal) NextAttempt(ctx context.Context, number int64) (time.Time, error) {
	var due sql.NullInt64
	err := j.row(ctx, "SELECT next_attempt_at FROM tasks WHERE number = ?", []any{number}, &due)
	if err != nil || !due.Valid {
		return time.Time{}, err
	}
	return time.UnixMicro(due.Int64), nil
}

// CancelNested ends the unfinished tasks that the task's attempts made before a time, and that have no living owner; a
// zero time is any. It leaves those with a name, which the next attempt continues, unless the task was cancelled.
func (j *Journal) CancelNested(ctx context.Context, t *task.Task, before, now time.Time) error {
	status, err := j.status(ctx, t.Number)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return j.cancelNested(ctx, t, before, now, status == task.Cancelled)
}

// madeIn is the tasks that a task ?1 has made: of those that have ended, the ones that did so since a time ?2.
const madeIn = `SELECT number, id FROM tasks WHERE parent = ?1 AND finished_at IS NULL
	UNION ALL SELECT number, id FROM tasks WHERE parent = ?1 AND finished_at >= ?2`

// nestedIn selects the numbers of the unfinished tasks that ran inside a task ?1, however deep: those in between have
// ended since a time ?2. What was queued was handed over.
const nestedIn = `WITH RECURSIVE inside (number, id) AS (` + madeIn + `
	UNION SELECT t.number, t.id FROM inside JOIN tasks made ON made.number = inside.number
		JOIN tasks t ON t.parent = inside.id WHERE made.finished_at IS NOT NULL)
	SELECT number FROM inside CROSS JOIN tasks USING (number) WHERE finished_at IS NULL AND queue = 0`

func (j *Journal) cancelNested(ctx context.Context, t *task.Task, before, now time.Time, named bool) error {
	const query = "WHERE t.number IN (" + nestedIn + ") AND t.created_at < ?3 AND (t.name IS NULL OR ?4)"
	made := int64(math.MaxInt64)
	if !before.IsZero() {
		made = before.UnixMicro()
	}
	nested, err := j.tasks(ctx, selectTasks+query, t.ID, t.RequeuedAt.UnixMicro(), made, named)
	if err != nil {
		return err
	}
	var failures []error
	for _, n := range nested {
		err := j.cancelAbandoned(ctx, n, now, named)
		if err != nil && !errors.Is(err, state.ErrOwned) && !errors.Is(err, state.ErrFinished) {
			failures = append(failures, fmt.Errorf("cancel the nested task %s: %w", n.ID, err))
		}
	}
	return errors.Join(failures...)
}

// selectNested selects the numbers of the tasks that ran inside a task ?1, however deep, and that may have left
// processes running: unfinished ones, and those that have ended since a time ?2 without an end of their own.
const selectNested = `WITH RECURSIVE inside (number, id) AS (` + madeIn + `
	UNION SELECT t.number, t.id FROM inside JOIN tasks t ON t.parent = inside.id)
	SELECT number FROM inside CROSS JOIN tasks t USING (number)
		WHERE finished_at IS NULL OR finished_at >= ?2 AND ` + wasCutOff

// Nested returns the tasks that a task's last attempt made, and what those made, whose own last attempts may have left
// processes running: a group of its own for each.
func (j *Journal) Nested(ctx context.Context, t *task.Task) (left []*task.Task, err error) {
	nested, err := j.tasks(ctx, selectTasks+"WHERE t.number IN ("+selectNested+")", t.ID, t.Last.StartedAt.UnixMicro())
	return slices.DeleteFunc(nested, func(n *task.Task) bool { return !n.Last.CutOff() }), err
}

// cancelAbandoned ends a task without an owner, and the tasks that are nested in it.
func (j *Journal) cancelAbandoned(ctx context.Context, t *task.Task, now time.Time, named bool) error {
	if owned, err := j.owners.Acquire(t.Number); !owned || err != nil {
		return errors.Join(err, state.ErrOwned)
	}
	defer func() { _ = j.owners.Release(t.Number) }()
	if err := j.Cancel(ctx, t.Number, now); err != nil {
		return err
	}
	return j.cancelNested(ctx, t, time.Time{}, now, named)
}

// Requeue gives a finished task new attempts and a new budget, and makes this process its owner: a process that still
// carries the cancelled attempt would run beside the next one.
func (j *Journal) Requeue(ctx context.Context, t *task.Task, now time.Time) error {
	switch {
	case t.Damage != nil:
		return fmt.Errorf("%w: %w", state.ErrDamaged, t.Damage)
	case t.KeepsInput() && !t.Status.Finished():
		return state.ErrUnfinished
	case t.KeepsInput():
		return state.ErrInputDropped
	}
	if err := j.writeKeptIn(ctx, t.Number); err != nil {
		return err
	}
	return j.write(ctx, func(c *conn.Conn) error {
		stored, err := position(c, t.Number)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return state.ErrNotFound
		case err != nil:
			return err
		case !stored.status.Finished():
			return state.ErrUnfinished
		}
		if err := cmp.Or(nameFree(c, t.Name, 0), notDone(c, t)); err != nil {
			return err
		}
		if owned, err := j.owners.Acquire(t.Number); err != nil || !owned {
			return cmp.Or(err, state.ErrOwned)
		}
		queue := task.QueueShared
		if forReply(t) {
			queue = task.QueueNone
		}
		return j.requeue(c, t, now, queue)
	})
}

// requeue writes that a finished task has fresh attempts, and who may begin them.
func (j *Journal) requeue(c *conn.Conn, t *task.Task, due time.Time, queue task.Queue) error {
	stored, err := position(c, t.Number)
	if err != nil {
		return err
	}
	if carried, err := j.isCarried(c, t.Number); carried || err != nil {
		return cmp.Or(err, state.ErrOwned)
	}
	err = j.advance(c, t.Number, t.ID, transition{
		event: task.EventRequeue, from: stored.status, fromCount: stored.count,
		to: task.Pending, count: stored.count, nextAttemptAt: due,
	})
	if err != nil {
		return err
	}
	// A nested task loses its parent, which would otherwise have to resume it.
	const query = `UPDATE tasks SET requeued_at = ?, requeued_after = attempt_count, parent = NULL,
		queue = ? WHERE number = ?`
	if _, err = c.Exec(query, due.UnixMicro(), int(queue), t.Number); err != nil {
		return err
	}
	// What a daemon has begun that its earlier attempts left behind is not a part of the attempts to come.
	const free = `UPDATE tasks SET parent = NULL WHERE parent = ? AND finished_at IS NULL AND queue = 0
		AND (created_at > ? OR ?)`
	_, err = c.Exec(free, t.ID, t.FinishedAt.UnixMicro(), t.Status == task.Succeeded)
	if err != nil {
		return err
	}
	nested, err := j.unfinishedIn(c, t)
	for _, number := range nested {
		pid, failed := j.Owner(number)
		switch {
		case cmp.Or(err, failed) != nil:
			err = cmp.Or(err, failed)
		case t.Status == task.Cancelled: // which holds for all that ran in it, and the next attempt makes its own
			_, err = j.cancel(c, number, time.Now())
		case pid != 0: // it has outlived what had ended by itself
			_, err = c.Exec("UPDATE tasks SET parent = NULL WHERE number = ? AND parent = ?", number, t.ID)
		}
	}
	return err
}

// unfinishedIn returns the numbers of the unfinished tasks that ran inside one, and were made before that had ended.
func (j *Journal) unfinishedIn(c *conn.Conn, t *task.Task) (nested []int64, err error) {
	const query = "SELECT number FROM tasks WHERE number IN (" + nestedIn + ") AND created_at <= ?3"
	args := []any{t.ID, t.RequeuedAt.UnixMicro(), t.FinishedAt.UnixMicro()}
	err = c.Each(context.Background(), query, args, func(scan conn.Scanner) (bool, error) {
		var number int64
		err := scan(&number)
		nested = append(nested, number)
		return true, err
	})
	return nested, err
}

// isCarried reports whether a worker still carries the last attempt of a task that was cancelled: that may be about to
// start, or succeed yet.
func (j *Journal) isCarried(c *conn.Conn, number int64) (carried bool, err error) {
	const query = `SELECT w.number FROM attempts a JOIN workers w ON w.name = a.worker AND w.started_at <= a.started_at
		WHERE a.task = ?1 AND a.number = (SELECT attempt_count FROM tasks WHERE number = ?1) AND ` + isCancelled
	err = c.Each(context.Background(), query, []any{number}, func(scan conn.Scanner) (bool, error) {
		var worker int64
		if err := scan(&worker); err != nil {
			return false, err
		}
		pid, err := j.Owner(lock.Worker(worker))
		_, own := living.Load(workerKey{j.dir, worker}) // whose lock this process does not see
		carried = own || pid != 0
		return !carried, err
	})
	return carried, err
}

// Amend stores the policy, the options and the kept environment of a task that goes on with others, and --once. That
// its terminal was closed holds no longer; and a part of another run is left to that by workers.
func (j *Journal) Amend(ctx context.Context, t *task.Task) error {
	policy, err := t.Policy.MarshalJSON()
	if err != nil {
		return err
	}
	options, err := marshalOptions(t.Options)
	if err != nil {
		return err
	}
	return j.write(ctx, func(c *conn.Conn) error {
		const query = `UPDATE tasks SET policy = ?, options = ?, environment = ?, parent = ?, once = max(once, ?),
			reason = nullif(reason, '` + string(task.ReasonHangup) + `'),
			queue = CASE WHEN queue = 2 AND ?4 IS NOT NULL THEN 0 ELSE queue END WHERE number = ? AND id = ?`
		_, err := c.Exec(query, string(policy), options, joinStrings(t.Environment), nullable(t.Parent), t.Once,
			t.Number, t.ID)
		return err
	})
}

// Remember keeps a task from being pruned, for --once.
func (j *Journal) Remember(ctx context.Context, t *task.Task) error {
	if t.Once {
		return nil
	}
	err := j.write(ctx, func(c *conn.Conn) error {
		_, err := c.Exec("UPDATE tasks SET once = 1 WHERE number = ? AND id = ?", t.Number, t.ID)
		return err
	})
	t.Once = err == nil
	return err
}
