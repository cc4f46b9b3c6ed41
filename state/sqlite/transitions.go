package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// transition is one step of a task from a status to another, with what the step changes besides.
type transition struct {
	event         string
	from          task.Status
	fromCount     int // the attempt count that the task must have
	to            task.Status
	count         int // the attempt count that it gets
	reason        task.Reason
	finishedAt    time.Time
	nextAttemptAt time.Time
}

// Only these two statements and the INSERT of a new task write a status. The second is for a transition that leaves the status as it is,
// and so leaves the index of the unfinished tasks alone. A run compiles the first while its command runs.
const (
	updateTask = `UPDATE tasks SET status = ?1, reason = ?2, finished_at = ?3, next_attempt_at = ?4, attempt_count = ?5
		WHERE number = ?6 AND id = ?7 AND status = ?8 AND attempt_count = ?9`
	updateTaskInPlace = `UPDATE tasks SET reason = ?2, finished_at = ?3, next_attempt_at = ?4, attempt_count = ?5
		WHERE number = ?6 AND id = ?7 AND status = ?8 AND attempt_count = ?9`
)

// advance takes a task through a transition. It returns task.ErrNotOwner where the task does not stand where the transition begins.
func (j *Journal) advance(c *conn, number int64, id string, s transition) error {
	if !task.Allowed(s.event, s.from, s.to) {
		return fmt.Errorf("no transition %q leads from %s to %s", s.event, s.from, s.to)
	}
	query := updateTask
	if s.from == s.to {
		query = updateTaskInPlace
	}
	changed, err := c.exec(query, s.to, nullable(string(s.reason)), micros(s.finishedAt), micros(s.nextAttemptAt), s.count,
		number, id, s.from, s.fromCount)
	if err != nil || changed == 1 {
		return err
	}
	stored, err := position(c, number)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && (stored.id != id || stored.status == s.from && stored.count == s.fromCount):
		return j.rowLost() // nobody has changed the task: that must not look like a cancelled one, whose command is not run again
	case err != nil:
		return err
	}
	return task.ErrNotOwner
}

// placed is where a task stands in its transitions.
type placed struct {
	id     string
	status task.Status
	count  int // of attempts
}

// position returns where a task stands, or sql.ErrNoRows.
func position(c *conn, number int64) (p placed, err error) {
	err = c.row("SELECT id, status, attempt_count FROM tasks WHERE number = ?", []any{number}, &p.id, (*string)(&p.status), &p.count)
	return p, err
}

// rowLost is an ErrCorrupt that we found ourselves. It names no file: the journal is not set aside for it.
func (j *Journal) rowLost() error {
	return state.NewFault(state.ErrCorrupt, "retry doctor --state "+j.dir+" says what is wrong", "a row that was written cannot be found")
}
