package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Note adds to the attempt in flight where its processes are found.
func (j *Journal) Note(ctx context.Context, t *task.Task, process string) error {
	return j.quickly(ctx, func(l *line) error {
		const query = `UPDATE attempts SET process = ? WHERE task = ? AND number = ? AND decision IS NULL`
		_, err := l.exec(query, process, t.Number, t.AttemptCount)
		return err
	})
}

// Record writes the outcome of the attempt in flight and the decision, in one transaction.
func (j *Journal) Record(ctx context.Context, t *task.Task, a task.Attempt) error {
	err := j.writeEnd(ctx, t, func(l *line) error {
		if err := move(l, t, task.InFlight, a.Decision); err != nil {
			return err
		}
		step("task moved")
		return recordAttempt(l, t.Number, a, isInFlight)
	})
	if a.Number == t.AttemptCount {
		err = j.confirm(ctx, t, task.InFlight, err)
	}
	if errors.Is(err, task.ErrNotOwner) {
		// Who cancelled the task left its attempt without an outcome. That is all a late writer may add.
		a.Decision = task.Decision{Verdict: task.VerdictCancelled}
		_ = j.quickly(ctx, func(l *line) error {
			return recordAttempt(l, t.Number, a, "decision = 'cancelled' AND exit IS NULL")
		})
	}
	return j.ended(t, err)
}

// RecordAndClaim is Record and the Claim of the attempt that follows at once, in one transaction: the task never waits in between. It
// implements runner.Chainer. Where it cannot write both it writes nothing.
func (j *Journal) RecordAndClaim(ctx context.Context, t *task.Task, a task.Attempt, now time.Time) error {
	return j.quickly(ctx, func(l *line) error {
		if err := chain(l, t); err != nil {
			return err
		}
		step("next attempt counted")
		if err := recordAttempt(l, t.Number, a, isInFlight); err != nil {
			return err
		}
		step("attempt recorded")
		return insertAttempt(l, t.Number, t.AttemptCount+1, now)
	})
}

// chain takes a task from one attempt in flight to the next. It leaves the status alone, and with it an index.
func chain(l *line, t *task.Task) error {
	const query = `UPDATE tasks SET attempt_count = attempt_count + 1 WHERE number = ? AND status = 'IN_FLIGHT' AND attempt_count = ?`
	return guarded(l.exec(query, t.Number, t.AttemptCount))
}

// Unclaim takes back the claim of RecordAndClaim, before its attempt began: the task waits, as the decision had it. A task that was
// cancelled meanwhile stays so, and gives ErrTaken.
func (j *Journal) Unclaim(ctx context.Context, t *task.Task) error {
	return j.quickly(ctx, func(l *line) error {
		const update = `UPDATE tasks SET status = 'PENDING', reason = ?, next_attempt_at = ?, attempt_count = attempt_count - 1
			WHERE number = ? AND status = 'IN_FLIGHT' AND attempt_count = ?`
		if err := guarded(l.exec(update, nullable(string(t.Reason)), micros(t.NextAttemptAt), t.Number, t.AttemptCount+1)); err != nil {
			return err
		}
		const attempt = `DELETE FROM attempts WHERE task = ? AND number = ? AND decision IS NULL`
		return guarded(l.exec(attempt, t.Number, t.AttemptCount+1))
	})
}

// ended drops what is of no use once the task has ended.
func (j *Journal) ended(t *task.Task, err error) error {
	if err == nil && t.Status.Finished() && t.KeepsInput() {
		j.DropInput(t)
	}
	return err
}

// The statements of an attempt's end, whose guards follow. A run compiles them before it needs them.
const (
	updateTask = `UPDATE tasks SET status = ?, reason = ?, finished_at = ?, next_attempt_at = ?
		WHERE number = ? AND status = ? AND attempt_count = ?`
	updateAttempt = `UPDATE attempts SET duration = ?, exit = ?, signal = ?, error = ?, message = ?, decision = ?, delay = ?, shortened = ?,
		success = ?, rule = ?, exchange = ? WHERE task = ? AND number = ? AND `
	isInFlight = "decision IS NULL"
)

func recordAttempt(l *line, tk int64, a task.Attempt, guard string) error {
	o, d := a.Outcome, a.Decision
	exit, duration := any(o.Exit), any(o.Duration.Microseconds())
	if o.IsCrash() {
		exit, duration = nil, nil
	}
	var delay, rule any
	if d.Verdict == task.VerdictRetry {
		delay = d.Delay.Microseconds()
	}
	if d.Rule != 0 {
		rule = d.Rule
	}
	exchange, err := marshalExchange(o.HTTP)
	if err != nil {
		return err
	}
	err = guarded(l.exec(updateAttempt+guard, duration, exit, nullable(o.Signal), nullable(string(o.Error)), nullable(o.Message),
		d.Verdict, delay, d.Shortened, d.Success, rule, exchange, tk, a.Number))
	if err != nil {
		return err
	}
	return keepTail(l, tk, a)
}

// keepTail writes the end of what an attempt wrote, or of the reply that it got.
func keepTail(l *line, tk int64, a task.Attempt) error {
	o := a.Outcome
	if o.Stdout+o.Stderr == "" {
		return nil
	}
	_, err := l.exec("INSERT INTO tails (task, attempt, stdout, stderr) VALUES (?, ?, ?, ?)", tk, a.Number, []byte(o.Stdout), []byte(o.Stderr))
	if err == nil && a.Number > keptTails {
		_, err = l.exec("DELETE FROM tails WHERE task = ? AND attempt <= ?", tk, a.Number-keptTails)
	}
	return err
}

// keptTails is of how many attempts a task keeps the output: one without a limit of attempts may never end.
const keptTails = 100

// Settle writes a decision about a task that waits. A task that never reached the journal has nothing to close.
func (j *Journal) Settle(ctx context.Context, t *task.Task, d task.Decision) error {
	if t.Number == 0 {
		return nil
	}
	err := j.writeEnd(ctx, t, func(l *line) error { return move(l, t, task.Pending, d) })
	return j.ended(t, j.confirm(ctx, t, task.Pending, err))
}

// move writes the status that a decision led to, provided that the task still stands where it was decided on.
func move(l *line, t *task.Task, from task.Status, d task.Decision) error {
	if !task.Allowed(string(d.Verdict), from, t.Status) {
		return fmt.Errorf("no transition %q leads from %s to %s", d.Verdict, from, t.Status)
	}
	return guarded(l.exec(updateTask, t.Status, nullable(string(t.Reason)), micros(t.FinishedAt), micros(t.NextAttemptAt),
		t.Number, from, t.AttemptCount))
}

// CatchUp writes the end of a task whose owner could not write all that led there: the attempts in between are missing.
func (j *Journal) CatchUp(ctx context.Context, t *task.Task) error {
	err := j.writeEnd(ctx, t, func(l *line) error {
		const update = `UPDATE tasks SET status = ?, reason = ?, finished_at = ?, next_attempt_at = NULL, attempt_count = ?
			WHERE number = ? AND id = ? AND status IN ('PENDING', 'IN_FLIGHT') AND attempt_count <= ?`
		err := guarded(l.exec(update, t.Status, nullable(string(t.Reason)), micros(t.FinishedAt), t.AttemptCount,
			t.Number, t.ID, t.AttemptCount))
		if err != nil {
			return err
		}
		const last = `INSERT OR IGNORE INTO attempts (task, number, started_at) VALUES (?, ?, ?)`
		if _, err := l.exec(last, t.Number, t.Last.Number, t.Last.StartedAt.UnixMicro()); err != nil {
			return err
		}
		// Where the journal failed during a wait, the last attempt was written before.
		if err := recordAttempt(l, t.Number, t.Last, isInFlight); err != nil && !errors.Is(err, task.ErrNotOwner) {
			return err
		}
		const lost = `UPDATE attempts SET decision = 'interrupted', message = 'the journal could not be written' WHERE task = ? AND decision IS NULL`
		_, err = l.exec(lost, t.Number)
		return err
	})
	return j.ended(t, j.confirmIf(ctx, t, err, func(status task.Status, count int) bool {
		return !status.Finished() && count <= t.AttemptCount
	}))
}

// Cancel ends an unfinished task, whoever owns it; an owner is refused its next write. It returns ErrFinished where the task
// has ended already.
func (j *Journal) Cancel(ctx context.Context, number int64, now time.Time) error {
	id := ""
	err := j.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const update = `UPDATE tasks SET status = 'CANCELLED', reason = 'cancelled', finished_at = ?, next_attempt_at = NULL
			WHERE number = ? AND status IN ('PENDING', 'IN_FLIGHT') RETURNING id`
		err := tx.QueryRowContext(ctx, update, now.UnixMicro(), number).Scan(&id)
		step("task cancelled")
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return state.ErrFinished
		case err != nil:
			return err
		}
		const attempt = `UPDATE attempts SET decision = 'cancelled' WHERE task = ? AND decision IS NULL`
		_, err = tx.ExecContext(ctx, attempt, number)
		return err
	})
	if err == nil {
		j.dropInput(inputName(number, id))
	}
	return err
}

// guarded turns an update that found nothing into ErrTaken.
func guarded(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return task.ErrNotOwner
}
