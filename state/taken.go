package state

import (
	"context"
	"database/sql"
	"errors"

	"github.com/10f93571/retry/runner"
)

// errLost says that a row is not where it was written.
var errLost = errors.New("a row that was written cannot be found")

// confirm looks at a task that a write found taken. Where it still stands as it was guarded, or not at all, nobody has taken it:
// the write missed it in a damaged table. That must not pass for a cancelled task, whose command is not run again.
func (j *Journal) confirm(ctx context.Context, t *runner.Task, from runner.Status, err error) error {
	if !errors.Is(err, runner.ErrTaken) {
		return err
	}
	var id string
	var status runner.Status
	var count int
	const query = "SELECT id, status, attempt_count FROM tasks WHERE number = ?"
	found := j.db.QueryRowContext(ctx, query, t.Number).Scan(&id, &status, &count)
	switch {
	case errors.Is(found, sql.ErrNoRows), found == nil && id != t.ID, found == nil && status == from && count == t.AttemptCount:
		return j.damaged(errLost)
	case found != nil:
		return j.diagnose(found)
	}
	return err
}

// damaged is an ErrCorrupt of our own finding.
func (j *Journal) damaged(err error) error {
	return &Fault{Kind: ErrCorrupt, Err: err, Hint: hintFor(ErrCorrupt, j.dir), dir: j.dir, file: j.file}
}
