package sqlite

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
	found, err := collect(ctx, j, query, []any{number, attempt}, func(rows *sql.Rows) (o Output, err error) {
		var stdout, stderr []byte
		err = rows.Scan(&o.Attempt, &stdout, &stderr)
		o.Stdout, o.Stderr = string(stdout), string(stderr)
		return o, err
	})
	switch {
	case err != nil:
		return Output{}, err
	case len(found) == 0:
		return Output{}, ErrNoOutput
	}
	return found[0], nil
}
