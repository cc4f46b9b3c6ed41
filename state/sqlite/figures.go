package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/state"
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
	return j.row(ctx, query, nil, &f.Attempts, &f.Waiting)
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
		err := scan(&t.Number, &t.Name, (*string)(&t.Status), &t.CreatedAt)
		return &t, err
	})
}

// selectNames reads of each name the last run that ended, cancelled ones left out: they say nothing of the command.
// Where the one aggregate is a maximum, SQLite takes the other columns from its row.
const selectNames = `WITH names AS MATERIALIZED (SELECT DISTINCT name FROM tasks WHERE name IS NOT NULL AND name <> ''),
	ends AS MATERIALIZED (SELECT t.name, max(t.finished_at) AS finished_at, t.status, ` + ran + ` AS took, t.attempt_count
		FROM tasks t WHERE t.name IS NOT NULL AND t.status IN ('SUCCEEDED', 'FAILED', 'EXHAUSTED') GROUP BY t.name),
	successes AS MATERIALIZED (SELECT name, max(finished_at) AS finished_at
		FROM tasks WHERE name IS NOT NULL AND status = 'SUCCEEDED' GROUP BY name)
	SELECT n.name, e.finished_at, coalesce(e.status = 'SUCCEEDED', 0), e.took, coalesce(e.attempt_count, 0), s.finished_at
	FROM names n LEFT JOIN ends e ON e.name = n.name LEFT JOIN successes s ON s.name = n.name ORDER BY n.name`

func (j *Journal) names(ctx context.Context, running map[string]bool) ([]task.NameFigures, error) {
	return collect(ctx, j, selectNames, nil, func(scan scanner) (n task.NameFigures, err error) {
		err = scan(&n.Name, &n.FinishedAt, &n.Succeeded, &n.Duration, &n.Attempts, &n.LastSuccess)
		n.Attempts, n.Running = max(n.Attempts, 0), running[n.Name]
		return n, err
	})
}

// Size looks at the journal's files.
func (j *Journal) Size() (s state.Size, err error) {
	if j.dir == "" {
		return s, nil // a journal that does not exist yet
	}
	if s.Database, err = fileSize(filepath.Join(j.dir, DatabaseName)); err != nil {
		return s, err
	}
	s.WAL, err = fileSize(filepath.Join(j.dir, DatabaseName+walSuffix))
	return s, err
}

// fileSize of a file that is not there is 0.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return info.Size(), nil
}

// Compact gives the room of what was removed back to the disk. It writes the whole journal anew, and others have to
// wait for it meanwhile.
func (j *Journal) Compact(ctx context.Context) error {
	return j.read(ctx, func(c *conn) error {
		if _, err := c.exec("VACUUM"); err != nil {
			return err
		}
		// Where somebody still reads the old pages, the next checkpoint does it.
		_, err := c.exec("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
}

// Inspection is what SQLite and the tables say of a journal, for `retry doctor`.
type Inspection struct {
	Schema  int    // version
	Mode    string // journal mode
	Damage  string // the first damage that SQLite's integrity check found; empty where it found none
	Orphans int    // rows that refer to a row that does not exist

	Future int       // tasks that were made in the future, as after the clock was set back
	Latest time.Time // when the last of them was made
}

// Inspect reads all pages of the database.
func (j *Journal) Inspect(ctx context.Context, now time.Time) (i Inspection, err error) {
	i.Schema = len(migrations)
	const future = "SELECT count(*), max(created_at) FROM tasks WHERE created_at > ?"
	for _, q := range []struct {
		query string
		args  []any
		to    []any
	}{
		{"PRAGMA journal_mode", nil, []any{&i.Mode}},
		{"PRAGMA integrity_check(1)", nil, []any{&i.Damage}},
		{"SELECT count(*) FROM pragma_foreign_key_check", nil, []any{&i.Orphans}},
		{future, []any{now.UnixMicro()}, []any{&i.Future, &i.Latest}},
	} {
		if err := j.row(ctx, q.query, q.args, q.to...); err != nil {
			return i, err
		}
		if i.Damage != "" && i.Damage != "ok" {
			return i, nil // the other answers could not be believed
		}
	}
	i.Damage = ""
	return i, nil
}
