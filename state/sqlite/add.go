package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// Add implements state.Queue.
func (q *Queue) Add(ctx context.Context, tasks []*task.Task) (added []state.Added, err error) {
	var made []*task.Task
	err = q.submit(ctx, true, func(c *conn.Conn) (changes []state.Change, err error) {
		made = nil
		if added, err = q.replays(c, tasks); err != nil {
			return nil, err
		}
		var fresh []*task.Task
		for i, t := range tasks {
			if !added[i].Replayed {
				fresh = append(fresh, t)
			}
		}
		if err := q.namesFree(c, fresh); err != nil {
			return nil, err
		}
		for _, t := range fresh {
			if err := q.insert(c, t); err != nil {
				return nil, err
			}
			conn.Step("task queued")
			changes = append(changes, changeOf(t, t.CreatedAt))
		}
		made = fresh
		return changes, nil
	})
	if err != nil {
		q.unmake(ctx, made)
		return nil, fmt.Errorf("add to the queue: %w", err)
	}
	return added, nil
}

// Replace adds a new task as Add does, and cancels an earlier one of its name with it, unless that has ended.
func (q *Queue) Replace(ctx context.Context, t, earlier *task.Task) (cancelled bool, err error) {
	if err := q.writeKept(ctx, earlier.Number); err != nil {
		return false, err
	}
	made, now := false, time.Now()
	var ended *placed
	err = q.submit(ctx, true, func(c *conn.Conn) (changes []state.Change, err error) {
		made, ended = false, nil
		if err := cmp.Or(nameFree(c, t.Name, earlier.Number), notDone(c, t), q.notSent(c, t)); err != nil {
			return nil, err
		}
		stored, err := q.cancel(c, earlier.Number, now)
		switch {
		case err == nil:
			ended = &stored
			changes = append(changes, cancelledAt(earlier.Number, stored, now))
		case !errors.Is(err, state.ErrFinished):
			return nil, err
		}
		if err := q.insert(c, t); err != nil {
			return nil, err
		}
		made = true
		return append(changes, changeOf(t, t.CreatedAt)), nil
	})
	if err != nil && made {
		q.unmake(ctx, []*task.Task{t})
	}
	if err != nil {
		return false, fmt.Errorf("add to the queue: %w", err)
	}
	if ended != nil {
		q.dropInput(inputName(earlier.Number, ended.id))
	}
	return ended != nil, nil
}

// namesFree returns ErrNamed if an unfinished task has the name of a new one, or if two new ones have the same. For a
// new one with --once it returns ErrSucceeded and ErrMayBeDone as Claim does. It comes before anything is written: that
// is an answer, which leaves the transaction of others as it is.
func (j *Journal) namesFree(c *conn.Conn, fresh []*task.Task) error {
	given := map[string]bool{}
	for _, t := range fresh {
		if t.Name != "" && given[t.Name] {
			return state.ErrNamed
		}
		given[t.Name] = true
		if err := cmp.Or(nameFree(c, t.Name, 0), notDone(c, t), j.notSent(c, t)); err != nil {
			return err
		}
	}
	return nil
}

// unmake removes tasks that are committed, but could not be synced: who added them is told that there are none.
func (q *Queue) unmake(ctx context.Context, made []*task.Task) {
	if len(made) == 0 {
		return
	}
	_ = q.submit(context.WithoutCancel(ctx), false, func(c *conn.Conn) ([]state.Change, error) {
		for _, t := range made {
			const query = "DELETE FROM tasks WHERE number = ? AND id = ? AND status = 'PENDING' AND attempt_count = 0"
			if _, err := c.Exec(query, t.Number, t.ID); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

const selectKey = "SELECT number FROM tasks WHERE partition = ? AND idempotency_key = ? AND payload IS NOT NULL"

// replays finds the earlier tasks with the keys of some new ones, before anything is written.
func (q *Queue) replays(c *conn.Conn, tasks []*task.Task) ([]state.Added, error) {
	type key struct{ partition, key string }
	added := make([]state.Added, len(tasks))
	given := map[key]*task.Task{}
	for i, t := range tasks {
		added[i].Task = t
		if t.Payload == "" {
			continue
		}
		of := key{t.Partition, t.IdempotencyKey}
		earlier := given[of]
		if earlier == nil {
			var number int64
			err := c.Row(selectKey, []any{t.Partition, t.IdempotencyKey}, &number)
			if errors.Is(err, sql.ErrNoRows) {
				given[of] = t
				continue
			}
			if err == nil {
				earlier, err = q.readTask(c, number)
			}
			if err != nil {
				return nil, err
			}
		}
		if earlier.Payload != t.Payload {
			return nil, &state.KeyError{Index: i, ID: earlier.ID}
		}
		added[i] = state.Added{Task: earlier, Replayed: true}
	}
	return added, nil
}

// readTask reads a task on the connection of a transaction.
func (q *Queue) readTask(c *conn.Conn, number int64) (t *task.Task, err error) {
	err = c.Each(context.Background(), selectTasks+"WHERE t.number = ?", []any{number}, func(scan conn.Scanner) (bool, error) {
		t, err = q.scanTask(scan)
		return false, err
	})
	if err == nil && t == nil {
		err = state.ErrNotFound
	}
	return t, err
}

// insert stores a new task that waits for a worker. A number whose byte another process holds is left out: the database
// may have been removed while a task of that number ran.
func (q *Queue) insert(c *conn.Conn, t *task.Task) error {
	var number int64
	if err := c.Row("SELECT coalesce(max(number), 0) FROM tasks", nil, &number); err != nil {
		return err
	}
	for range mostSkipped {
		number++
		if pid, err := q.owners.Owner(number); pid == 0 || err != nil {
			break
		}
	}
	if t.NextAttemptAt.IsZero() {
		t.NextAttemptAt = t.CreatedAt
	}
	t.Number, t.Status = number, task.Pending
	t.History.Phase = t.Options.Phase(phase(number, q.salt))
	return insertTask(c, t, number, transition{event: task.EventAdd, to: task.Pending, nextAttemptAt: t.NextAttemptAt})
}

// changeOf describes where a task stands.
func changeOf(t *task.Task, now time.Time) state.Change {
	return state.Change{
		Number: t.Number, ID: t.ID, Status: t.Status, Attempt: t.AttemptCount, At: now, Due: t.NextAttemptAt,
		Lane: state.Lane{Partition: t.Partition, Host: t.Host()},
	}
}

// currentChange describes where a task stands that another process may carry.
func currentChange(c *conn.Conn, number int64, now time.Time) (state.Change, error) {
	change := state.Change{Number: number, At: now}
	const query = "SELECT id, status, attempt_count, next_attempt_at, partition, host FROM tasks WHERE number = ?"
	err := c.Row(query, []any{number}, &change.ID, (*string)(&change.Status), &change.Attempt, &change.Due,
		&change.Partition, &change.Host)
	return change, err
}
