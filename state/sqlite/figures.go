package sqlite

import (
	"context"

	"github.com/10f93571/retry/task"
)

// Figures returns what a monitor wants to know of the journal.
func (j *Journal) Figures(ctx context.Context) (f task.JournalFigures, err error) {
	size, err := j.Size()
	if err != nil {
		return f, err
	}
	f.DatabaseBytes, f.WALBytes = size.Database, size.WAL
	if f.Tasks, err = j.countByStatus(ctx); err != nil {
		return f, err
	}
	if err := j.countAttempts(ctx, &f); err != nil {
		return f, err
	}
	running, err := j.countInterrupted(ctx, &f)
	if err != nil {
		return f, err
	}
	f.Names, err = j.names(ctx, running)
	return f, err
}

// countByStatus counts every status, those that no task has too.
func (j *Journal) countByStatus(ctx context.Context) (map[task.Status]int, error) {
	counts := map[task.Status]int{task.Pending: 0, task.InFlight: 0}
	for _, status := range finishedStatuses {
		counts[status] = 0
	}
	err := j.read(ctx, func(c *conn) error {
		return c.each(ctx, `SELECT status, count(*) FROM tasks GROUP BY status`, nil, func(scan scanner) (bool, error) {
			var status string
			var n int
			err := scan(&status, &n)
			counts[task.Status(status)] = n
			return true, err
		})
	})
	return counts, err
}

// countAttempts counts the delays as Stats does: each but that after a task's last attempt.
func (j *Journal) countAttempts(ctx context.Context, f *task.JournalFigures) error {
	const query = `SELECT (SELECT count(*) FROM attempts),
		(SELECT total(delay) FROM attempts) - total(a.delay)
		FROM tasks t CROSS JOIN attempts a ON a.task = t.number AND a.number = t.attempt_count
		WHERE t.status IN ('PENDING', 'CANCELLED', 'EXHAUSTED')`
	var delays span
	err := j.row(ctx, query, nil, &f.Attempts, &delays)
	f.Waiting = delays.Duration
	return err
}

// countInterrupted looks at the owner of each unfinished task. It returns the names of those whose owner lives.
func (j *Journal) countInterrupted(ctx context.Context, f *task.JournalFigures) (running map[string]bool, err error) {
	unfinished, err := j.unfinishedNames(ctx)
	if err != nil {
		return nil, err
	}
	running = map[string]bool{}
	for _, t := range unfinished {
		if f.OldestUnfinished.IsZero() || t.CreatedAt.Before(f.OldestUnfinished) {
			f.OldestUnfinished = t.CreatedAt
		}
		interrupted, err := j.Interrupted(ctx, t)
		if err != nil {
			return nil, err
		}
		if interrupted {
			f.Interrupted++
		} else {
			running[t.Name] = true
		}
	}
	return running, nil
}

// unfinishedNames returns the unfinished tasks, of each no more than its number, name, status and time.
func (j *Journal) unfinishedNames(ctx context.Context) ([]*task.Task, error) {
	const query = `SELECT number, coalesce(name, ''), status, created_at FROM tasks WHERE status IN ('PENDING', 'IN_FLIGHT')`
	return collect(ctx, j, query, nil, func(scan scanner) (*task.Task, error) {
		var t task.Task
		var created integer
		err := scan(&t.Number, &t.Name, (*string)(&t.Status), &created)
		t.CreatedAt = moment(created)
		return &t, err
	})
}

// selectNames reads of each name the last run that ended, cancelled ones left out: they say nothing of the command. Where the one
// aggregate is a maximum, SQLite takes the other columns from its row.
const selectNames = `WITH names AS MATERIALIZED (SELECT DISTINCT name FROM tasks WHERE name IS NOT NULL AND name <> ''),
	ends AS MATERIALIZED (SELECT t.name, max(t.finished_at) AS finished_at, t.status, ` + ran + ` AS took, t.attempt_count
		FROM tasks t WHERE t.name IS NOT NULL AND t.status IN ('SUCCEEDED', 'FAILED', 'EXHAUSTED') GROUP BY t.name),
	successes AS MATERIALIZED (SELECT name, max(finished_at) AS finished_at
		FROM tasks WHERE name IS NOT NULL AND status = 'SUCCEEDED' GROUP BY name)
	SELECT n.name, e.finished_at, coalesce(e.status = 'SUCCEEDED', 0), e.took, coalesce(e.attempt_count, 0), s.finished_at
	FROM names n LEFT JOIN ends e ON e.name = n.name LEFT JOIN successes s ON s.name = n.name ORDER BY n.name`

func (j *Journal) names(ctx context.Context, running map[string]bool) ([]task.NameFigures, error) {
	return collect(ctx, j, selectNames, nil, func(scan scanner) (n task.NameFigures, err error) {
		var finished, attempts, succeeded integer
		var took span
		err = scan(&n.Name, &finished, &n.Succeeded, &took, &attempts, &succeeded)
		n.FinishedAt, n.LastSuccess, n.Running = moment(finished), moment(succeeded), running[n.Name]
		n.Duration, n.Attempts = took.Duration, int(max(attempts.Int64, 0))
		return n, err
	})
}
