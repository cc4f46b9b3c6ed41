package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// Register implements state.Queue. The worker lives as long as this process holds its lock.
func (q *Queue) Register(ctx context.Context, w state.Worker) (number int64, err error) {
	err = q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		const last = `SELECT coalesce(max(number), 0) FROM (SELECT max(number) AS number FROM workers
			UNION ALL SELECT max(worker) FROM tasks WHERE worker IS NOT NULL)`
		if err := c.Row(last, nil, &number); err != nil {
			return nil, err
		}
		for range mostSkipped {
			number++
			if owned, err := q.owners.Acquire(lock.Worker(number)); owned || err != nil {
				break
			}
		}
		name, err := q.freeName(c, w.Name)
		if err != nil {
			return nil, err
		}
		const query = `INSERT INTO workers (number, name, concurrency, visibility, started_at, renewed_at)
			VALUES (?, ?, ?, ?, ?, ?)`
		now := time.Now().UnixMicro()
		_, err = c.Exec(query, number, name, w.Concurrency, w.Visibility.Microseconds(), now, now)
		conn.Step("worker registered")
		living.Store(workerKey{q.dir, number}, ownWorker{q, name})
		return nil, err
	})
	if err != nil {
		living.Delete(workerKey{q.dir, number})
	}
	return number, err
}

// freeName returns the name for a new worker: attempts tell by it who carries them. Two containers on one host name are
// both process 1, and the second of them gets a number.
func (q *Queue) freeName(c *conn.Conn, name string) (string, error) {
	var taken []string
	err := c.Each(context.Background(), "SELECT number, name FROM workers", nil, func(scan conn.Scanner) (bool, error) {
		var number int64
		var other string
		if err := scan(&number, &other); err != nil {
			return false, err
		}
		alive, err := q.lives(number)
		if alive {
			taken = append(taken, other)
		}
		return true, err
	})
	free := name
	for n := 2; slices.Contains(taken, free); n++ {
		free = fmt.Sprintf("%s.%d", name, n)
	}
	return free, err
}

// living has the workers of this process: the system does not tell a process of its own locks. A worker is here from
// its registration until it unregisters or its queue is closed.
var living sync.Map

type workerKey struct {
	dir    string
	number int64
}

type ownWorker struct {
	queue *Queue
	name  string
}

// own returns a worker of this process.
func (q *Queue) own(number int64) (w ownWorker, ok bool) {
	found, ok := living.Load(workerKey{q.dir, number})
	if ok {
		w = found.(ownWorker)
	}
	return w, ok
}

// workerName is what the attempts of a worker of this process are stored with.
func (q *Queue) workerName(number int64) string {
	w, _ := q.own(number)
	return w.name
}

// forgetWorkers makes the workers that were registered here dead.
func (q *Queue) forgetWorkers() {
	living.Range(func(key, worker any) bool {
		if worker.(ownWorker).queue == q {
			living.Delete(key)
		}
		return true
	})
}

// Renew implements state.Queue.
func (q *Queue) Renew(ctx context.Context, number int64, now time.Time) error {
	return q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		renewed, err := c.Exec("UPDATE workers SET renewed_at = ? WHERE number = ? AND NOT lost", now.UnixMicro(), number)
		if err != nil || renewed == 1 {
			return nil, err
		}
		_, err = c.Exec("UPDATE workers SET lost = 0, renewed_at = ? WHERE number = ?", now.UnixMicro(), number)
		if err != nil {
			return nil, err
		}
		return nil, state.ErrLeaseLost
	})
}

// Unregister implements state.Queue.
func (q *Queue) Unregister(ctx context.Context, number int64) error {
	err := q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		_, err := c.Exec(deleteWorker, number)
		return nil, err
	})
	living.Delete(workerKey{q.dir, number})
	return errors.Join(err, q.owners.Release(lock.Worker(number)))
}

// selectWorkers also tells how many attempts each has. A worker whose row is gone has one as long as it has attempts:
// they must not stay in flight for ever.
const selectWorkers = `SELECT number, name, concurrency, started_at, renewed_at,
	(SELECT count(*) FROM tasks WHERE worker = workers.number) FROM workers
	UNION ALL SELECT worker, NULL, 0, NULL, NULL, count(*) FROM tasks
		WHERE worker IS NOT NULL AND worker NOT IN (SELECT number FROM workers) GROUP BY worker
	ORDER BY number`

func scanWorker(scan conn.Scanner) (w state.Worker, err error) {
	err = scan(&w.Number, &w.Name, &w.Concurrency, &w.StartedAt, &w.RenewedAt, &w.Tasks)
	return w, err
}

// ListWorkers implements state.Queue.
func (q *Queue) ListWorkers(ctx context.Context) ([]state.Worker, error) {
	rows, err := selected(ctx, q, selectWorkers, nil, scanWorker)
	return present(rows, q.lives), err
}

// ListWorkers returns the workers that live, or have tasks.
func (j *Journal) ListWorkers(ctx context.Context) ([]state.Worker, error) {
	rows, err := collect(ctx, j, selectWorkers, nil, scanWorker)
	return present(rows, func(number int64) (bool, error) {
		_, own := living.Load(workerKey{j.dir, number}) // whose lock this process does not see
		pid, err := j.Owner(lock.Worker(number))
		return own || pid != 0, err
	}), err
}

// present leaves out the workers that have died without tasks.
func present(workers []state.Worker, lives func(number int64) (bool, error)) []state.Worker {
	var list []state.Worker
	for _, w := range workers {
		alive, err := lives(w.Number)
		w.Gone = !alive && err == nil
		if !w.Gone || w.Tasks > 0 {
			list = append(list, w)
		}
	}
	return list
}

// lives reports whether a worker's process holds its lock.
func (q *Queue) lives(number int64) (bool, error) {
	if _, own := q.own(number); own {
		return true, nil
	}
	pid, err := q.owners.Owner(lock.Worker(number))
	return pid != 0, err
}

// hasRun is a task that a run has begun, and not a worker.
const hasRun = "(SELECT worker IS NULL FROM attempts WHERE task = tasks.number ORDER BY number LIMIT 1)"

// shareDead lets a resume, too, go on with what runs have begun, and workers have carried that are dead.
func (j *Journal) shareDead(ctx context.Context) error {
	const query = `SELECT number, worker FROM tasks
		WHERE worker IS NOT NULL AND status = 'IN_FLIGHT' AND queue = 1 AND ` + hasRun
	type claim struct{ number, worker int64 }
	claims, err := collect(ctx, j, query, nil, func(scan conn.Scanner) (c claim, err error) {
		return c, scan(&c.number, &c.worker)
	})
	for _, c := range claims {
		if _, own := living.Load(workerKey{j.dir, c.worker}); own || err != nil {
			continue
		}
		pid, failed := j.Owner(lock.Worker(c.worker))
		if pid != 0 || failed != nil {
			continue
		}
		err = j.write(ctx, func(db *conn.Conn) error {
			const share = "UPDATE tasks SET queue = 2 WHERE number = ? AND worker = ? AND status = 'IN_FLIGHT'"
			_, err := db.Exec(share, c.number, c.worker)
			return err
		})
	}
	return err
}

// Dead implements state.Queue. The rows of dead workers without tasks are removed.
func (q *Queue) Dead(ctx context.Context, now time.Time, visibility time.Duration) (dead []state.Worker, err error) {
	rows, err := selected(ctx, q, selectWorkers, nil, scanWorker)
	if err != nil {
		return nil, err
	}
	const query = "SELECT number, visibility FROM workers WHERE visibility > 0"
	ownTime := map[int64]time.Duration{}
	_, err = selected(ctx, q, query, nil, func(scan conn.Scanner) (struct{}, error) {
		var number, micros int64
		err := scan(&number, &micros)
		ownTime[number] = time.Duration(micros) * time.Microsecond
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	for _, w := range rows {
		w.Visibility = ownTime[w.Number]
		alive, err := q.lives(w.Number)
		own, _ := q.own(w.Number)
		switch {
		case err != nil:
			return nil, err
		case alive && now.Sub(w.RenewedAt) <= cmp.Or(w.Visibility, visibility), own.queue == q:
		case w.Tasks > 0:
			w.Stale = alive
			dead = append(dead, w)
		case !alive:
			if err := q.bury(ctx, w); err != nil {
				return nil, err
			}
		}
	}
	return dead, nil
}

// bury removes the row of a dead worker. Another process may have done so since it was read, and a new worker may have
// its number.
func (q *Queue) bury(ctx context.Context, w state.Worker) error {
	return q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		if alive, err := q.lives(w.Number); alive || err != nil {
			return nil, err
		}
		_, err := c.Exec(deleteWorker+" AND renewed_at = ?", w.Number, w.RenewedAt.UnixMicro())
		return nil, err
	})
}

// deleteWorker keeps the row of a worker with attempts: who takes them over finds them by it.
const deleteWorker = "DELETE FROM workers WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE worker = ?1)"

// TakeOver implements state.Queue. Of the attempts it changes who holds them, not their status: their outcomes follow.
func (q *Queue) TakeOver(ctx context.Context, by int64, from state.Worker, limit int,
	now time.Time) (taken []*task.Task, err error) {
	if err := q.writeEnds(ctx); err != nil { // what has one is no crash
		return nil, err
	}
	err = q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		taken = nil
		if alive, err := q.lives(from.Number); alive != from.Stale || err != nil {
			return nil, err // it has registered again, or died after all: the next look tells
		}
		numbers, err := held(c, from, limit)
		if err != nil || len(numbers) == 0 {
			return nil, err
		}
		if from.Stale {
			const query = "UPDATE workers SET lost = 1 WHERE number = ? AND renewed_at = ?"
			if lost, err := c.Exec(query, from.Number, from.RenewedAt.UnixMicro()); lost == 0 || err != nil {
				return nil, err // it has renewed after all
			}
		}
		for _, number := range numbers {
			const query = "UPDATE tasks SET worker = ?, nonce = ? WHERE number = ? AND worker = ?"
			if _, err := c.Exec(query, by, rand.Int64()|1, number, from.Number); err != nil {
				return nil, err
			}
			conn.Step("attempt taken over")
			t, err := q.readTask(c, number)
			if err == nil {
				err = rememberWithin(c, t) // afterwards it could fail, and nobody would have the attempt
			}
			if err != nil {
				return nil, err
			}
			taken = append(taken, t)
		}
		return nil, nil
	})
	return taken, err
}

// writeEnds writes what workers and runs have kept beside the journal, and tells who waits for it.
func (q *Queue) writeEnds(ctx context.Context) error {
	ended, err := q.writeKeptEnds(ctx, 0)
	now := time.Now()
	changes := make([]state.Change, len(ended))
	for i, t := range ended {
		changes[i] = changeOf(t, now)
	}
	q.peers.Tell(changes)
	return err
}

const selectHeld = "SELECT number FROM tasks WHERE worker = ? AND status = 'IN_FLIGHT'"

// rememberWithin gives a task its history, in a transaction.
func rememberWithin(c *conn.Conn, t *task.Task) error {
	var attempts []task.Attempt
	err := c.Each(context.Background(), selectHistory, []any{t.Number}, func(scan conn.Scanner) (bool, error) {
		a, err := scanAttempt(scan)
		attempts = append(attempts, a)
		return true, err
	})
	replay(t, attempts)
	return err
}

// held returns the attempts that a dead worker has. The processes of a worker that only stands still may run.
func held(c *conn.Conn, from state.Worker, limit int) (numbers []int64, err error) {
	query := selectHeld
	if from.Stale {
		query += " AND kind <> 'command'"
	}
	err = c.Each(context.Background(), query+" LIMIT ?", []any{from.Number, limit}, func(scan conn.Scanner) (bool, error) {
		var number int64
		err := scan(&number)
		numbers = append(numbers, number)
		return true, err
	})
	return numbers, err
}
