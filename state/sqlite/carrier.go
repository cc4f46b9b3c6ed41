package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// inQueue is what tasks_due has an index of.
const inQueue = "FROM tasks WHERE status = 'PENDING' AND queue > 0"

// Conditions of a lane may stand between the two.
const (
	selectItems = "SELECT number, next_attempt_at, host, partition " + inQueue +
		" AND (next_attempt_at, number) > (?, ?) AND next_attempt_at <= ?"
	waitingOrder = " ORDER BY next_attempt_at, number LIMIT ?"
)

// Waiting implements state.Queue.
func (q *Queue) Waiting(ctx context.Context, after state.Position, until time.Time, lane *state.Lane,
	limit int) ([]state.Item, error) {
	if lane == nil {
		if err := q.shareDeferred(ctx); err != nil {
			return nil, err
		}
	}
	query := selectItems
	from := int64(-1)
	if !after.Due.IsZero() {
		from = after.Due.UnixMicro()
	}
	args := []any{from, after.Number, until.UnixMicro()}
	if lane != nil {
		query += " AND host = ? AND partition = ?"
		args = append(args, lane.Host, lane.Partition)
	}
	return selected(ctx, q, query+waitingOrder, append(args, limit), scanItem)
}

// deferredInEnded is a request that was deferred inside of runs which have ended since, however deep. One that is not in
// this journal may go on: it has another one, or none.
const deferredInEnded = `WITH RECURSIVE up (number, outer) AS (
	SELECT number, parent FROM tasks
		WHERE status IN ('PENDING', 'IN_FLIGHT') AND queue <> 1 AND queue = 0 AND reason = 'deferred' AND parent IS NOT NULL
	UNION SELECT up.number, t.parent FROM up JOIN tasks t ON t.id = up.outer
		WHERE t.parent IS NOT NULL AND t.finished_at IS NOT NULL)
	SELECT number FROM up WHERE number NOT IN (SELECT up.number FROM up LEFT JOIN tasks o ON o.id = up.outer
		WHERE o.id IS NULL OR o.status IN ('PENDING', 'IN_FLIGHT', 'CANCELLED'))`

// shareDeferred lets a worker, too, go on with such requests: as long as a run goes on, its next attempt makes its own.
func (q *Queue) shareDeferred(ctx context.Context) error {
	deferred, err := q.found(ctx, selectTasks+"WHERE t.number IN ("+deferredInEnded+")")
	if deferred = slices.DeleteFunc(deferred, forReply); err != nil || len(deferred) == 0 {
		return err
	}
	return q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		for _, t := range deferred {
			const share = "UPDATE tasks SET queue = 2 WHERE number = ? AND id = ? AND number IN (" + deferredInEnded + ")"
			if _, err := c.Exec(share, t.Number, t.ID); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

func scanItem(scan conn.Scanner) (i state.Item, err error) {
	err = scan(&i.Number, &i.Due, &i.Host, &i.Partition)
	return i, err
}

// list is a parenthesis with so many parameters.
func list(n int) string { return "(" + strings.TrimSuffix(strings.Repeat("?,", n), ",") + ")" }

func values(numbers []int64) []any {
	args := make([]any, len(numbers))
	for i, n := range numbers {
		args[i] = n
	}
	return args
}

// Claim implements state.Queue. It reads the tasks beside the writer, and writes only claims of what has not changed
// since.
func (q *Queue) Claim(ctx context.Context, worker int64, numbers []int64, now time.Time,
	ready func(*task.Task) bool) ([]*task.Task, error) {
	if err := q.writeEnds(ctx); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	tasks, err := q.dueTasks(ctx, numbers, now)
	if ready != nil {
		tasks = slices.DeleteFunc(tasks, func(t *task.Task) bool { return !budgetEnded(t, now) && !ready(t) })
	}
	if err != nil || len(tasks) == 0 {
		return make([]*task.Task, len(numbers)), err
	}
	claimed := map[int64]*task.Task{}
	err = q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		clear(claimed)
		var changes []state.Change
		for _, t := range tasks {
			if budgetEnded(t, now) {
				claimed[t.Number] = t
				continue
			}
			nonce := rand.Int64() | 1
			done, err := q.cancelDone(c, t, now)
			if err == nil && done == nil {
				err = q.claimFor(c, t, worker, nonce, now)
			}
			if errors.Is(err, task.ErrNotOwner) {
				continue // somebody else has claimed, moved, cancelled or pruned it
			}
			if err != nil {
				return nil, err
			}
			if done != nil {
				changes = append(changes, cancelledAt(t.Number, *done, now))
				continue
			}
			mine := *t
			mine.Worker, mine.Nonce, mine.Queue = worker, nonce, task.QueueWorker
			claimed[t.Number] = &mine
			changes = append(changes, state.Change{
				Number: t.Number, ID: t.ID, Status: task.InFlight, Attempt: t.AttemptCount + 1, At: now,
			})
		}
		return changes, nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	if slices.ContainsFunc(tasks, (*task.Task).Unsafe) { // a power loss must not take away that they were sent
		_ = q.sync()
	}
	result := make([]*task.Task, len(numbers))
	for i, number := range numbers {
		result[i] = claimed[number]
		delete(claimed, number) // where a number is given twice, its attempt is one all the same
	}
	return result, nil
}

func budgetEnded(t *task.Task, now time.Time) bool {
	return task.DecideResume(&t.Policy, t.History, t.NextAttemptAt, now).Verdict == task.VerdictExhausted
}

// dueTasks reads tasks that a worker may claim, each with its history.
func (q *Queue) dueTasks(ctx context.Context, numbers []int64, now time.Time) (due []*task.Task, err error) {
	err = q.reading(ctx, func(c *conn.Conn) error {
		due = make([]*task.Task, 0, len(numbers))
		query := selectWaiting + "AND t.number IN " + list(len(numbers))
		return c.Each(ctx, query, values(numbers), func(scan conn.Scanner) (bool, error) {
			t, rest, err := q.scanWaiting(scan)
			if err != nil || t.NextAttemptAt.After(now) {
				return true, err
			}
			if rest {
				t, err = q.readTask(c, t.Number)
			}
			due = append(due, t)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	free := due[:0]
	for _, t := range due {
		if t.Queue == task.QueueShared {
			if pid, err := q.owners.Owner(t.Number); pid != 0 || err != nil {
				continue // a resume has it
			}
		}
		if err := q.remember(ctx, t); err != nil {
			return nil, err
		}
		free = append(free, t)
	}
	return free, nil
}

// remember gives a task its history, and its last attempt where it was read without: the next one looks for what that
// has left.
func (q *Queue) remember(ctx context.Context, t *task.Task) error {
	if t.AttemptCount == 0 {
		return nil
	}
	attempts, err := selected(ctx, q, selectHistory, []any{t.Number}, scanAttempt)
	replay(t, attempts)
	if n := len(attempts); t.Last.Number == 0 && n > 0 {
		t.Last = attempts[n-1]
		q.findNote(t)
	}
	return err
}

// claimFor writes the claim of a task's next attempt by a worker.
func (q *Queue) claimFor(c *conn.Conn, t *task.Task, worker, nonce int64, now time.Time) error {
	if t.Queue == task.QueueShared { // again: a resume may have taken it since it was read
		if pid, err := q.owners.Owner(t.Number); pid != 0 || err != nil {
			return cmp.Or(err, task.ErrNotOwner)
		}
	}
	err := q.advance(c, t.Number, t.ID, transition{
		event: task.EventClaim, from: task.Pending, fromCount: t.AttemptCount, to: task.InFlight, count: t.AttemptCount + 1,
		worker: worker, nonce: nonce, due: t.NextAttemptAt, queued: true,
	})
	if err != nil {
		return err
	}
	conn.Step("attempt claimed")
	if t.Queue == task.QueueShared {
		if _, err := c.Exec("UPDATE tasks SET queue = ? WHERE number = ?", int(task.QueueWorker), t.Number); err != nil {
			return err
		}
	}
	const query = "INSERT INTO attempts (task, number, started_at, worker) VALUES (?, ?, ?, ?)"
	_, err = c.Exec(query, t.Number, t.AttemptCount+1, now.UnixMicro(), nullable(q.workerName(worker)))
	return err
}

// NoteProcess implements state.Queue.
func (q *Queue) NoteProcess(ctx context.Context, t *task.Task, process string) error {
	return q.submit(ctx, false, func(c *conn.Conn) ([]state.Change, error) {
		const query = `UPDATE attempts SET process = ?1 WHERE task = ?2 AND number = ?3 AND decision IS NULL
			AND EXISTS (SELECT 1 FROM tasks WHERE number = ?2 AND id = ?4 AND nonce = ?5)`
		noted, err := c.Exec(query, process, t.Number, t.AttemptCount, t.ID, t.Nonce)
		if err == nil && noted == 0 {
			err = task.ErrNotOwner
		}
		return nil, err
	})
}

// BeginHook implements state.Queue.
func (q *Queue) BeginHook(number int64) (bool, error) { return q.owners.Acquire(lock.Hook(number)) }

// EndHook implements state.Queue.
func (q *Queue) EndHook(number int64) error { return q.owners.Release(lock.Hook(number)) }

// shareAgain lets a resume, too, go on with what a run has begun and not a worker.
const shareAgain = "UPDATE tasks SET queue = 2 WHERE number = ? AND " + hasRun

// Settle implements state.Queue.
func (q *Queue) Settle(ctx context.Context, t *task.Task, a task.Attempt, follows *task.Task) error {
	if a.Number > 0 && t.Nonce == 0 {
		return task.ErrNotOwner // nobody has claimed it
	}
	if t.Nonce == 0 { // by which settledBefore knows the end
		t.Nonce = rand.Int64() | 1
	}
	now := time.Now()
	end := t.Status.Finished()
	w := &queuedWrite{end: end, durable: q.reliedOn(t)}
	var unfollowed error
	w.do = func(c *conn.Conn) ([]state.Change, error) {
		unfollowed = nil
		s := transition{
			event: string(a.Decision.Verdict), from: task.InFlight, fromCount: a.Number, to: t.Status, count: a.Number,
			reason: t.Reason, finishedAt: t.FinishedAt, nextAttemptAt: t.NextAttemptAt, held: t.Nonce, queued: true,
		}
		if a.Number == 0 {
			s.from, s.fromCount, s.count, s.held, s.nonce = task.Pending, t.AttemptCount, t.AttemptCount, 0, t.Nonce
		}
		if err := q.advance(c, t.Number, t.ID, s); err != nil {
			return nil, err
		}
		conn.Step("attempt settled")
		if a.Number > 0 {
			if _, err := updateAttempt(c, t.Number, a, isInFlight); err != nil {
				return nil, err
			}
		}
		if a.Number > 1 && t.Status == task.Pending {
			if _, err := c.Exec(shareAgain, t.Number); err != nil {
				return nil, err
			}
		}
		changes := []state.Change{changeOf(t, now)}
		if follows != nil {
			added, err := q.replays(c, []*task.Task{follows})
			switch {
			case err != nil && !isAnswer(err):
				return nil, err
			case err != nil:
				unfollowed = &state.UnfollowedError{ID: t.ID, Err: err}
			case !added[0].Replayed:
				if err := q.insert(c, follows); err != nil {
					return nil, err
				}
				changes = append(changes, changeOf(follows, now))
			}
		}
		return changes, nil
	}
	err := q.pass(ctx, w)
	switch {
	case errors.Is(err, task.ErrNotOwner):
		return q.settledBefore(ctx, t, a, err)
	case err == nil && end && t.KeepsInput():
		q.DropInput(t)
	}
	if err == nil {
		err = unfollowed
	}
	return err
}

// TellUnfollowed implements state.Queue.
func (q *Queue) TellUnfollowed(t *task.Task) {
	change := changeOf(t, time.Now())
	change.Unfollowed = true
	q.peers.Tell([]state.Change{change})
}

// settledBefore returns nil where the same end is in the journal already, and else the refusal. To an attempt that was
// cancelled meanwhile it adds the outcome.
func (q *Queue) settledBefore(ctx context.Context, t *task.Task, a task.Attempt, refusal error) error {
	query := "SELECT count(*) FROM tasks WHERE number = ? AND id = ? AND status = ? AND nonce = ?"
	args := []any{t.Number, t.ID, t.Status, t.Nonce}
	if a.Number > 0 {
		query = `SELECT count(*) FROM attempts a JOIN tasks t ON t.number = a.task WHERE t.number = ? AND t.id = ?
			AND a.number = ? AND a.decision = ? AND a.duration IS ? AND a.exit IS ? AND a.error IS ?`
		exit, duration := outcomeColumns(a.Outcome)
		args = []any{t.Number, t.ID, a.Number, string(a.Decision.Verdict), duration, exit, nullable(string(a.Outcome.Error))}
	}
	var same int
	err := q.reading(ctx, func(c *conn.Conn) error { return c.Row(query, args, &same) })
	if err != nil || same == 1 {
		return err
	}
	if a.Number == 0 {
		return refusal
	}
	succeeded := a.Decision.Verdict == task.VerdictSucceeded
	a.Decision = tooLate(a.Decision)
	if a.Outcome.Stop != nil {
		a.Outcome.Message = "stopped: the task was cancelled"
	}
	err = q.pass(ctx, &queuedWrite{end: true, durable: succeeded, do: func(c *conn.Conn) ([]state.Change, error) {
		_, err := updateAttempt(c, t.Number, a, isCancelled)
		return nil, err
	}})
	if err != nil && succeeded {
		_ = q.KeepEnd(t)
	}
	return refusal
}

// Cancelled implements state.Queue.
func (q *Queue) Cancelled(ctx context.Context, numbers []int64) ([]state.Change, error) {
	query := "SELECT task, number FROM attempts WHERE task IN " + list(len(numbers)) + " AND " + isCancelled
	return selected(ctx, q, query, values(numbers), func(scan conn.Scanner) (c state.Change, err error) {
		c.Status = task.Cancelled
		err = scan(&c.Number, &c.Attempt)
		return c, err
	})
}

// Unfinished implements state.Queue.
func (q *Queue) Unfinished(ctx context.Context, due time.Time) (found bool, err error) {
	const running = "SELECT 1 FROM tasks WHERE worker IS NOT NULL AND status = 'IN_FLIGHT'"
	query, args := "SELECT EXISTS ("+running+" UNION ALL SELECT 1 "+inQueue, []any{}
	if !due.IsZero() {
		query, args = query+" AND next_attempt_at <= ?", append(args, due.UnixMicro())
	}
	err = q.reading(ctx, func(c *conn.Conn) error { return c.Row(query+")", args, &found) })
	return found, err
}

// Changes implements state.Queue.
func (q *Queue) Changes(ctx context.Context) <-chan state.Change { return q.peers.Listen(ctx) }
