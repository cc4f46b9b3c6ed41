package state

import (
	"context"
	"database/sql"
	"errors"
)

// Output is the captured end of what an attempt wrote.
type Output struct {
	Attempt        int
	Stdout, Stderr string // the same where both streams were one file
}

// ErrNoOutput says that nothing was captured.
var ErrNoOutput = errors.New("no output was captured")

// Output returns what was captured of a task's attempt, or, for attempt 0, of the latest one that has anything.
func (j *Journal) Output(ctx context.Context, number int64, attempt int) (Output, error) {
	const query = `SELECT attempt, stdout, stderr FROM tails WHERE task = ?1 AND (?2 = 0 OR attempt = ?2) ORDER BY attempt DESC LIMIT 1`
	var o Output
	var stdout, stderr []byte
	err := j.db.QueryRowContext(ctx, query, number, attempt).Scan(&o.Attempt, &stdout, &stderr)
	if errors.Is(err, sql.ErrNoRows) {
		return o, ErrNoOutput
	}
	o.Stdout, o.Stderr = string(stdout), string(stderr)
	return o, err
}
