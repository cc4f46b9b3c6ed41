package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/10f93571/retry/task"
)

// Claim writes the intent of the task's next attempt, in one transaction with the task itself where this is its first.
// Creating a task survives power loss; the claims that follow survive the death of the process. It returns ErrNamed where an
// unfinished task has the new one's name.
func (j *Journal) Claim(ctx context.Context, t *task.Task, now time.Time) error {
	if t.Number != 0 {
		err := j.quickly(ctx, func(l *line) error { return claim(l, t, now) })
		j.ready.Go(j.getReady)
		return j.confirm(ctx, t, task.Pending, err)
	}
	number, err := j.create(ctx, t, now)
	if err != nil {
		return fmt.Errorf("write the task to the journal: %w", j.diagnose(err))
	}
	j.ready.Go(j.getReady)
	t.Number, t.History.Phase = number, t.Options.Phase(phase(number, j.salt))
	return nil
}

// create writes a task and makes this process its owner.
func (j *Journal) create(ctx context.Context, t *task.Task, now time.Time) (number int64, err error) {
	err = j.quickly(ctx, func(l *line) (err error) {
		if number, err = insertTask(l, t); err != nil {
			return err
		}
		step("task inserted")
		if number, err = j.own(l, number); err != nil { // before anybody else can see the task
			return err
		}
		step("task owned")
		return insertAttempt(l, number, 1, now)
	})
	if err == nil {
		if err = j.sync(); err != nil {
			_ = j.quickly(ctx, func(l *line) error { return forget(l, number) })
		}
	}
	if err != nil && number != 0 {
		_ = j.owners.Release(number) // it goes to the next task, whoever makes that
	}
	return number, err
}

// own makes this process the owner of a task that nobody has seen yet. Where the database was removed under a living owner, its
// number is passed over.
func (j *Journal) own(l *line, number int64) (int64, error) {
	free := number
	for {
		owned, err := j.owners.Acquire(free)
		if err != nil {
			return 0, err
		}
		if owned {
			break
		}
		free++
	}
	if free == number {
		return number, nil
	}
	_, err := l.exec("UPDATE tasks SET number = ? WHERE number = ?", free, number)
	return free, err
}

// forget removes a task that was never acknowledged.
func forget(l *line, number int64) error {
	_, err := l.exec("DELETE FROM tasks WHERE number = ?", number)
	return err
}

// insertTask writes a task whose first attempt is claimed already.
func insertTask(l *line, t *task.Task) (int64, error) {
	if err := nameFree(l, t.Name); err != nil {
		return 0, err
	}
	policy, err := t.Policy.MarshalJSON() // a third of the time that json.Marshal takes for it
	if err != nil {
		return 0, err
	}
	options, err := marshalOptions(t.Options)
	if err != nil {
		return 0, err
	}
	request, err := marshalRequest(t)
	if err != nil {
		return 0, err
	}
	const query = `INSERT INTO tasks (id, parent, name, once, kind, status, argv, request, directory, environment, policy, options, idempotency_key, attempt_count, created_at)
		VALUES (?, ?, ?, ?, ?, 'IN_FLIGHT', ?, ?, ?, ?, ?, ?, ?, 1, ?)`
	result, err := l.exec(query, t.ID, nullable(t.Parent), nullable(t.Name), t.Once, t.Kind, joinStrings(t.Command), request, []byte(t.Directory),
		joinStrings(t.Environment), string(policy), options, t.IdempotencyKey, t.CreatedAt.UnixMicro())
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func claim(l *line, t *task.Task, now time.Time) error {
	const update = `UPDATE tasks SET status = 'IN_FLIGHT', reason = NULL, next_attempt_at = NULL, attempt_count = attempt_count + 1
		WHERE number = ? AND status = 'PENDING' AND attempt_count = ?`
	if err := guarded(l.exec(update, t.Number, t.AttemptCount)); err != nil {
		return err
	}
	step("attempt counted")
	return insertAttempt(l, t.Number, t.AttemptCount+1, now)
}

func insertAttempt(l *line, tk int64, number int, now time.Time) error {
	const query = `INSERT INTO attempts (task, number, started_at) VALUES (?, ?, ?)`
	_, err := l.exec(query, tk, number, now.UnixMicro())
	return err
}
