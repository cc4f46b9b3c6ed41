package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// transition is a task's step from one status to another, with what else the step changes.
type transition struct {
	event         string
	from          task.Status
	fromCount     int // the attempt count that the task must have
	to            task.Status
	count         int // the attempt count that it gets
	reason        task.Reason
	finishedAt    time.Time
	nextAttemptAt time.Time

	held   int64 // the nonce of the claim that the task must have; 0 for any
	worker int64 // that claims it, with the nonce of the claim; 0 where no worker has it from now on
	nonce  int64
	due    time.Time // when the task must have been due for that; zero for any
	queued bool      // without its row, the task was cancelled and pruned: nothing else keeps workers from that
}

// Only these statements and the INSERT of a new task write a status. Each leaves alone the indexes of columns that
// its transitions do not change: the second is for those from one unfinished status to another, the third for those
// that keep the status.
const (
	updateTask = `UPDATE tasks SET status = ?1, reason = ?2, finished_at = ?3, next_attempt_at = ?4, attempt_count = ?5,
		worker = ?10, nonce = ?11 WHERE ` + ofTask
	updateUnfinished = `UPDATE tasks SET status = ?1, reason = ?2, next_attempt_at = ?4, attempt_count = ?5,
		worker = ?10, nonce = ?11 WHERE ` + ofTask
	ofTask = `number = ?6 AND id = ?7 AND status = ?8 AND attempt_count = ?9 AND (?12 IS NULL OR nonce = ?12)
		AND (?13 IS NULL OR next_attempt_at = ?13)`
	updateTaskInPlace = `UPDATE tasks SET reason = ?2, finished_at = ?3, next_attempt_at = ?4, attempt_count = ?5
		WHERE number = ?6 AND id = ?7 AND status = ?8 AND attempt_count = ?9`
)

// advance writes a transition of a task. It returns task.ErrNotOwner if another process has changed the task before.
func (j *Journal) advance(c *conn.Conn, number int64, id string, s transition) error {
	if !task.Allowed(s.event, s.from, s.to) {
		return fmt.Errorf("no transition %q leads from %s to %s", s.event, s.from, s.to)
	}
	query := updateTask
	args := []any{s.to, nullable(string(s.reason)), micros(s.finishedAt), micros(s.nextAttemptAt), s.count,
		number, id, s.from, s.fromCount}
	switch {
	case s.from == s.to:
		query = updateTaskInPlace
	case !s.from.Finished() && !s.to.Finished():
		query = updateUnfinished
		fallthrough
	default:
		args = append(args, orNull(s.worker), orNull(s.nonce), orNull(s.held), micros(s.due))
	}
	changed, err := c.Exec(query, args...)
	if err != nil || changed == 1 {
		return err
	}
	stored, err := position(c, number)
	gone := errors.Is(err, sql.ErrNoRows) || err == nil && stored.id != id
	switch {
	case gone && s.queued:
		return task.ErrNotOwner
	case gone, err == nil && s.held == 0 && s.due.IsZero() && stored.status == s.from && stored.count == s.fromCount:
		return j.rowLost() // no process has changed the task: without its row it must not look like a cancelled one
	case err != nil:
		return err
	}
	return task.ErrNotOwner
}

// placed is the position of a task among its transitions.
type placed struct {
	id       string
	status   task.Status
	count    int // of attempts
	requeued time.Time
}

// position returns the position of a task, or sql.ErrNoRows.
func position(c *conn.Conn, number int64) (p placed, err error) {
	const query = "SELECT id, status, attempt_count, requeued_at FROM tasks WHERE number = ?"
	err = c.Row(query, []any{number}, &p.id, (*string)(&p.status), &p.count, &p.requeued)
	return p, err
}

// positionOf returns the position of a task that was read before. It returns ErrNotOwner if the task was requeued
// since: status and count may be as before, but it has fresh attempts and another deadline.
func (j *Journal) positionOf(c *conn.Conn, t *task.Task) (placed, error) {
	p, err := position(c, t.Number)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && p.id != t.ID:
		return p, j.rowLost()
	case err == nil && p.requeued.UnixMicro() != t.RequeuedAt.UnixMicro():
		return p, task.ErrNotOwner
	}
	return p, err
}

// rowLost is an ErrCorrupt without a file: the journal is not set aside for a lost row.
func (j *Journal) rowLost() error {
	return state.NewFault(state.ErrCorrupt, "retry doctor --state "+j.dir+" says what is wrong",
		"a row that was written cannot be found")
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// NoteProcess stores with the attempt in flight how to find its processes.
func (j *Journal) NoteProcess(ctx context.Context, t *task.Task, process string) error {
	return j.write(ctx, func(c *conn.Conn) error { return noteProcess(c, t, process) })
}

func noteProcess(c *conn.Conn, t *task.Task, process string) error {
	const query = `UPDATE attempts SET process = ? WHERE task = ? AND number = ? AND decision IS NULL`
	_, err := c.Exec(query, process, t.Number, t.AttemptCount)
	return err
}

// NoteAssumed stores how to find the processes of the task's last attempt, now that a user has said that they have
// ended.
func (j *Journal) NoteAssumed(ctx context.Context, t *task.Task, process string) error {
	if t.Last.Later > 0 {
		j.owners.Note(t.Number, startKey(t.ID, t.Last.Later), process)
		return nil
	}
	return j.write(ctx, func(c *conn.Conn) error {
		const query = `UPDATE attempts SET process = ? WHERE task = ? AND number = ?`
		_, err := c.Exec(query, process, t.Number, t.Last.Number)
		return err
	})
}

// NoteStart notes it beside the database, without a transaction.
func (j *Journal) NoteStart(t *task.Task, process string) {
	if t.Number != 0 {
		j.owners.Note(t.Number, startKey(t.ID, t.AttemptCount), process)
	}
}

func startKey(id string, attempt int) string { return id + " " + strconv.Itoa(attempt) }

// Record writes the outcome of the attempt in flight and the decision. It waits until the task is synced.
func (j *Journal) Record(ctx context.Context, t *task.Task, a task.Attempt) error {
	err := j.awaitSync(t)
	j.syncs.Delete(t.Number) // a failed sync is reported once: the journal may be writable again later
	if err != nil {
		return err
	}
	err = j.writeEnd(ctx, t, func(c *conn.Conn) error {
		if err := j.decide(c, t, task.InFlight, a.Decision); err != nil {
			return err
		}
		conn.Step("task moved")
		return j.recordInFlight(c, t, a)
	})
	if errors.Is(err, task.ErrNotOwner) {
		late, succeeded := j.recordTooLate(ctx, t, a), a.Decision.Verdict == task.VerdictSucceeded
		switch {
		case succeeded && late != nil:
			_ = j.KeepEnd(t)
		case succeeded && j.mustSurvive(t):
			_ = j.sync()
		}
	}
	return j.recorded(t, err)
}

// recordTooLate adds its outcome to an attempt of a task that another process has cancelled meanwhile, and nothing
// else.
func (j *Journal) recordTooLate(ctx context.Context, t *task.Task, a task.Attempt) error {
	a.Decision = tooLate(a.Decision)
	return j.writeEnd(ctx, t, func(c *conn.Conn) error {
		_, err := updateAttempt(c, t.Number, a, isCancelled)
		return err
	})
}

// tooLate is the decision about an attempt of a task that was cancelled meanwhile. Of a success it says so: --once
// must not run that again.
func tooLate(d task.Decision) task.Decision {
	return task.Decision{Verdict: task.VerdictCancelled, Success: d.Verdict == task.VerdictSucceeded}
}

// RecordAndClaim is Record and the Claim of the next attempt, in one transaction.
func (j *Journal) RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error {
	if err := j.awaitSync(t); err != nil {
		return err
	}
	return j.write(ctx, func(c *conn.Conn) error {
		err := j.advance(c, t.Number, t.ID, transition{
			event: task.EventRetryNow, from: task.InFlight, fromCount: t.AttemptCount,
			to: task.InFlight, count: t.AttemptCount + 1,
		})
		if err != nil {
			return err
		}
		conn.Step("next attempt counted")
		if err := j.recordInFlight(c, t, a); err != nil {
			return err
		}
		conn.Step("attempt recorded")
		return insertAttempt(c, t.Number, t.AttemptCount+1, now)
	})
}

// Settle writes a decision about a waiting task. A task that was never stored has nothing to end.
func (j *Journal) Settle(ctx context.Context, t *task.Task, d task.Decision) error {
	if t.Number == 0 {
		return nil
	}
	return j.recorded(t, j.writeEnd(ctx, t, func(c *conn.Conn) error { return j.decide(c, t, task.Pending, d) }))
}

// decide writes the task's new status after a decision.
func (j *Journal) decide(c *conn.Conn, t *task.Task, from task.Status, d task.Decision) error {
	// A worker may go on with it, as a resume may; a nested one is left to the outer one.
	if t.Reason == task.ReasonDeferred && t.Parent == "" && !forReply(t) {
		if _, err := c.Exec("UPDATE tasks SET queue = 2 WHERE number = ?", t.Number); err != nil {
			return err
		}
	}
	return j.advance(c, t.Number, t.ID, transition{
		event: string(d.Verdict), from: from, fromCount: t.AttemptCount, to: t.Status, count: t.AttemptCount,
		reason: t.Reason, finishedAt: t.FinishedAt, nextAttemptAt: t.NextAttemptAt,
	})
}

// forReply reports whether a task of a wrapper is a request for its reply, which goes to stdout or to a file: a worker
// would throw it away.
func forReply(t *task.Task) bool {
	target, ok := t.Target.(interface{ ForReply() bool })
	return ok && t.Queue != task.QueueWorker && (target.ForReply() || t.Options.Stdout.Inode != 0)
}

// CatchUp writes the end of a task whose owner could not write all of its attempts.
func (j *Journal) CatchUp(ctx context.Context, t *task.Task) error {
	err := j.writeEnd(ctx, t, func(c *conn.Conn) error {
		stored, err := j.behind(c, t)
		if err != nil {
			return err
		}
		err = j.advance(c, t.Number, t.ID, transition{
			event: task.EventCatchUp, from: stored.status, fromCount: stored.count,
			to: t.Status, count: t.AttemptCount, reason: t.Reason, finishedAt: t.FinishedAt,
		})
		if err != nil {
			return err
		}
		return catchUpAttempts(c, t)
	})
	if errors.Is(err, task.ErrNotOwner) {
		if failed := j.recordTooLate(ctx, t, t.Last); failed != nil {
			return failed
		}
	}
	return j.recorded(t, err)
}

// catchUpAttempts writes the last attempt, and ends every stored attempt that is still in flight.
func catchUpAttempts(c *conn.Conn, t *task.Task) error {
	if t.Last.Decision.Verdict == "" { // nobody knows how it ended
		return endLost(c, t.Number)
	}
	const last = `INSERT OR IGNORE INTO attempts (task, number, started_at) VALUES (?, ?, ?)`
	if _, err := c.Exec(last, t.Number, t.Last.Number, t.Last.StartedAt.UnixMicro()); err != nil {
		return err
	}
	// If the journal failed during a wait, the last attempt has its outcome already. That of a worker may stand there as
	// crashed.
	if _, err := updateAttempt(c, t.Number, t.Last, hasNoOutcome); err != nil {
		return err
	}
	return endLost(c, t.Number)
}

func endLost(c *conn.Conn, number int64) error {
	const lost = `UPDATE attempts SET decision = 'interrupted', message = 'the journal could not be written'
		WHERE task = ? AND decision IS NULL`
	_, err := c.Exec(lost, number)
	return err
}

// recorded syncs what became of a task, where that is relied on, and removes its kept stdin where it has ended. Where
// the sync fails, it is written all the same.
func (j *Journal) recorded(t *task.Task, err error) error {
	if err != nil {
		return err
	}
	if j.reliedOn(t) {
		_ = j.sync()
	}
	if t.Status.Finished() && t.KeepsInput() {
		j.DropInput(t)
	}
	return nil
}

// reliedOn reports whether a power loss must not take away what became of a task: without an outcome, an unsafe request
// counts as one that may have taken effect.
func (j *Journal) reliedOn(t *task.Task) bool {
	return t.Unsafe() || t.Status.Finished() && j.mustSurvive(t)
}

// recordInFlight writes the outcome of an attempt whose task is in flight.
func (j *Journal) recordInFlight(c *conn.Conn, t *task.Task, a task.Attempt) error {
	found, err := updateAttempt(c, t.Number, a, isInFlight)
	switch {
	case err != nil || found:
		return err
	case a.Number != t.AttemptCount: // another attempt is in flight
		return task.ErrNotOwner
	}
	return j.rowLost()
}

const (
	setAttempt = `UPDATE attempts SET duration = ?, exit = ?, signal = ?, error = ?, message = ?, decision = ?, delay = ?,
		shortened = ?, success = ?, rule = ?, exchange = ? WHERE task = ? AND number = ? AND `
	isInFlight  = "decision IS NULL"
	isCancelled = "decision = 'cancelled' AND exit IS NULL"

	hasNoOutcome = "(decision IS NULL OR decision = 'interrupted' AND exit IS NULL)"
)

// updateAttempt writes an attempt's outcome, decision and tails. It reports whether it found the attempt.
func updateAttempt(c *conn.Conn, number int64, a task.Attempt, guard string) (found bool, err error) {
	o, d := a.Outcome, a.Decision
	exit, duration := outcomeColumns(o)
	var delay, rule any
	if d.Verdict == task.VerdictRetry {
		delay = d.Delay.Microseconds()
	}
	if d.Rule != 0 {
		rule = d.Rule
	}
	exchange, err := marshalExchange(o.Reply)
	if err != nil {
		return false, err
	}
	changed, err := c.Exec(setAttempt+guard, duration, exit, nullable(o.Signal), nullable(string(o.Error)),
		nullable(o.Message), d.Verdict, delay, d.Shortened, d.Success, rule, exchange, number, a.Number)
	if err != nil || changed == 0 {
		return false, err
	}
	return true, keepTail(c, number, a)
}

// keptTails is how many attempts keep their output: a task may have no limit of attempts.
const keptTails = 100

// keepTail writes the end of an attempt's output, or of the reply that it got.
func keepTail(c *conn.Conn, number int64, a task.Attempt) error {
	o := a.Outcome
	if o.Stdout+o.Stderr == "" {
		return nil
	}
	const insert = "INSERT INTO tails (task, attempt, stdout, stderr) VALUES (?, ?, ?, ?)"
	_, err := c.Exec(insert, number, a.Number, []byte(o.Stdout), []byte(o.Stderr))
	if err == nil && a.Number > keptTails {
		_, err = c.Exec("DELETE FROM tails WHERE task = ? AND attempt <= ?", number, a.Number-keptTails)
	}
	return err
}
