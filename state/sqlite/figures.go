package sqlite

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// Figures returns what a monitoring system asks for.
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
	if f.Pruned, err = j.statusCounts(ctx, "SELECT status, tasks FROM pruned"); err != nil {
		return f, err
	}
	if err := j.countQueue(ctx, &f); err != nil {
		return f, err
	}
	running, err := j.countInterrupted(ctx, &f)
	if err != nil {
		return f, err
	}
	f.Names, err = collect(ctx, j, selectNames, nil, func(scan conn.Scanner) (n task.NameFigures, err error) {
		err = scan(&n.Name, &n.FinishedAt, &n.Succeeded, &n.Duration, &n.Attempts, &n.LastSuccess)
		n.Attempts, n.Running = max(n.Attempts, 0), running[n.Name]
		return n, err
	})
	return f, err
}

// countByStatus counts every status, even those without tasks.
func (j *Journal) countByStatus(ctx context.Context) (map[task.Status]int, error) {
	counts, err := j.statusCounts(ctx, selectCounts)
	for _, status := range append([]task.Status{task.Pending, task.InFlight}, finishedStatuses...) {
		counts[status] += 0
	}
	return counts, err
}

func (j *Journal) statusCounts(ctx context.Context, query string) (map[task.Status]int, error) {
	counts := map[task.Status]int{}
	_, err := collect(ctx, j, query, nil, func(scan conn.Scanner) (n int, err error) {
		var status task.Status
		err = scan((*string)(&status), &n)
		counts[status] += n
		return n, err
	})
	return counts, err
}

// selectCounts counts tasks by status, each part in an index of its own; a status may come twice.
const selectCounts = `SELECT status, count(*) FROM tasks WHERE ` + isFinished + ` GROUP BY status
	UNION ALL SELECT 'SUCCEEDED', count(*) FROM tasks WHERE once AND status = 'SUCCEEDED'
	UNION ALL SELECT 'IN_FLIGHT', count(*) FROM tasks WHERE worker IS NOT NULL AND status = 'IN_FLIGHT'
	UNION ALL SELECT 'PENDING', count(*) ` + inQueue + `
	UNION ALL SELECT status, count(*) FROM tasks WHERE status IN ('PENDING', 'IN_FLIGHT') AND queue <> 1 AND queue = 0
		GROUP BY status`

// isFinished is what tasks_finished has an index of: all that has ended but what --once remembers.
const isFinished = "finished_at IS NOT NULL AND NOT (once AND status = 'SUCCEEDED')"

// countAttempts sums the delays like Stats: without the delay after a task's last attempt.
func (j *Journal) countAttempts(ctx context.Context, f *task.JournalFigures) error {
	return j.row(ctx, selectAttempts, nil, &f.Attempts, &f.Waiting)
}

// selectAttempts reads the tasks that may have a delay after their last attempt: some that have ended, and of the
// many that wait those with attempts.
const selectAttempts = `WITH last (delay) AS (
		SELECT a.delay FROM tasks t CROSS JOIN attempts a ON a.task = t.number AND a.number = t.attempt_count
			WHERE t.status = 'PENDING' AND t.number IN
				(SELECT task FROM attempts INTERSECT SELECT number FROM tasks WHERE finished_at IS NULL)
		UNION ALL SELECT a.delay FROM tasks t CROSS JOIN attempts a ON a.task = t.number AND a.number = t.attempt_count
			WHERE ` + isFinished + ` AND t.status IN ('CANCELLED', 'EXHAUSTED'))
	SELECT count(*), total(delay) - (SELECT total(delay) FROM last) FROM attempts`

func (j *Journal) countQueue(ctx context.Context, f *task.JournalFigures) error {
	workers, err := j.ListWorkers(ctx)
	for _, w := range workers {
		if !w.Gone {
			f.Workers++
		}
	}
	if err == nil {
		err = j.row(ctx, "SELECT count(*) "+inQueue, nil, &f.Queued)
	}
	return err
}

// selectOwned leaves out tasks without a name that wait for any worker: there may be a million, and they have no
// owner to look for.
const selectOwned = `SELECT number, name, status, queue, worker FROM tasks WHERE number IN (` + selectBegun + `
	UNION ALL SELECT number FROM tasks WHERE name IS NOT NULL AND finished_at IS NULL)`

// countInterrupted looks at the owner of each unfinished task. It returns the names of the tasks with a living owner.
func (j *Journal) countInterrupted(ctx context.Context, f *task.JournalFigures) (running map[string]bool, err error) {
	// Numbers follow the times but where the clock was set back, and there may be a million.
	const oldest = `SELECT min(created_at) FROM (SELECT created_at FROM tasks
		WHERE finished_at IS NULL ORDER BY number LIMIT 1000)`
	if err := j.row(ctx, oldest, nil, &f.OldestUnfinished); err != nil {
		return nil, err
	}
	unfinished, err := collect(ctx, j, selectOwned, nil, func(scan conn.Scanner) (t task.Task, err error) {
		err = scan(&t.Number, &t.Name, (*string)(&t.Status), (*int)(&t.Queue), &t.Worker)
		return t, err
	})
	if err != nil {
		return nil, err
	}
	running = map[string]bool{}
	for _, t := range unfinished {
		interrupted, err := j.Interrupted(ctx, &t)
		if err != nil {
			return nil, err
		}
		if interrupted {
			f.Interrupted++
		} else if t.Queue != task.QueueWorker || t.Worker != 0 || f.Workers > 0 {
			running[t.Name] = true
		}
	}
	return running, nil
}

// selectNames reads the last finished run of each name, without the cancelled ones: they say nothing about the command.
// With max() as the only aggregate, SQLite takes the other columns from the row of the maximum.
const selectNames = `WITH names AS MATERIALIZED (SELECT DISTINCT name FROM tasks WHERE name IS NOT NULL AND name <> ''),
	ends AS MATERIALIZED (SELECT t.name, max(t.finished_at) AS finished_at, t.status, ` + ran + ` AS took, t.attempt_count
		FROM tasks t WHERE t.name IS NOT NULL AND t.status IN ('SUCCEEDED', 'FAILED', 'EXHAUSTED') GROUP BY t.name),
	successes AS MATERIALIZED (SELECT name, max(finished_at) AS finished_at
		FROM tasks WHERE name IS NOT NULL AND status = 'SUCCEEDED' GROUP BY name)
	SELECT n.name, e.finished_at, coalesce(e.status = 'SUCCEEDED', 0), e.took, coalesce(e.attempt_count, 0), s.finished_at
	FROM names n LEFT JOIN ends e ON e.name = n.name LEFT JOIN successes s ON s.name = n.name ORDER BY n.name`

// Size looks at the journal's files.
func (j *Journal) Size() (s state.Size, err error) {
	if j.dir == "" {
		return s, nil // a journal that does not exist yet
	}
	for suffix, size := range map[string]*int64{"": &s.Database, walSuffix: &s.WAL} {
		info, err := stat(filepath.Join(j.dir, DatabaseName+suffix))
		if err != nil {
			return s, err
		}
		if info != nil {
			*size = info.Size()
		}
	}
	return s, nil
}

// Compact returns the space of removed tasks to the file system. It rewrites the whole journal; other processes wait.
func (j *Journal) Compact(ctx context.Context) error {
	return j.read(ctx, func(c *conn.Conn) error {
		if _, err := c.Exec("VACUUM"); err != nil {
			return err
		}
		// If a process still reads the old pages, the next checkpoint truncates the WAL.
		_, err := c.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
}

// Inspection is what `retry doctor` asks about a database.
type Inspection struct {
	Schema  int    // version
	Mode    string // journal mode
	Damage  string // the first damage that SQLite's integrity check found
	Orphans int    // rows that refer to a row that does not exist

	Future int       // how many tasks were made in the future, as after the clock was set back
	Latest time.Time // when the last of them was made
}

// Inspect reads all pages of the database.
func (j *Journal) Inspect(ctx context.Context, now time.Time) (i Inspection, err error) {
	i.Schema = len(migrations)
	err = cmp.Or(
		j.row(ctx, "PRAGMA journal_mode", nil, &i.Mode),
		j.row(ctx, "PRAGMA integrity_check(1)", nil, &i.Damage),
	)
	if i.Damage == "ok" {
		i.Damage = ""
	}
	if err != nil || i.Damage != "" {
		return i, err // the other answers would not be reliable
	}
	const future = "SELECT count(*), max(created_at) FROM tasks WHERE created_at > ?"
	err = cmp.Or(
		j.row(ctx, "SELECT count(*) FROM pragma_foreign_key_check", nil, &i.Orphans),
		j.row(ctx, future, []any{now.UnixMicro()}, &i.Future, &i.Latest),
	)
	return i, err
}
