package sqlite

import (
	"context"

	"github.com/10f93571/retry/task"
)

// selectTasks reads tasks with the latest attempt of each.
const selectTasks = `SELECT t.number, t.id, t.parent, t.name, t.kind, t.status, t.reason, t.argv, t.directory, t.policy, t.options, t.idempotency_key,
	t.attempt_count, t.created_at, t.finished_at, t.next_attempt_at, t.once, t.environment, t.requeued_at, t.requeued_after, t.request,
	(SELECT max(number) FROM attempts WHERE task = t.number), ` + attemptColumns + `
	FROM tasks t LEFT JOIN attempts a ON a.task = t.number AND a.number = t.attempt_count `

const attemptColumns = "a.number, a.started_at, a.duration, a.exit, a.signal, a.error, a.message, a.decision, a.delay, a.shortened, a.process, a.success, a.rule, a.exchange"

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

func (j *Journal) scanTask(scan scanner) (*task.Task, error) {
	row := taskRow{policies: &j.policies}
	if err := scan(row.columns()...); err != nil {
		return nil, err
	}
	t := row.task()
	t.History = task.History{Began: t.Began(), Expires: t.Expiry(), Made: t.RequeuedAfter, Phase: t.Options.Phase(phase(t.Number, j.salt))}
	return t, nil
}

// Attempts returns the task's attempts in their order, with the tails of their output. One that is in flight has no verdict yet.
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
