package sqlite

import (
	"context"

	"github.com/10f93571/retry/state"
)

// Output returns what was captured of a task's attempt, or, for attempt 0, of the latest one that has anything.
func (j *Journal) Output(ctx context.Context, number int64, attempt int) (state.Output, error) {
	const query = `SELECT attempt, stdout, stderr FROM tails WHERE task = ?1 AND (?2 = 0 OR attempt = ?2) ORDER BY attempt DESC LIMIT 1`
	found, err := collect(ctx, j, query, []any{number, attempt}, func(scan scanner) (o state.Output, err error) {
		var stdout, stderr []byte
		err = scan(&o.Attempt, &stdout, &stderr)
		o.Stdout, o.Stderr = string(stdout), string(stderr)
		return o, err
	})
	switch {
	case err != nil:
		return state.Output{}, err
	case len(found) == 0:
		return state.Output{}, state.ErrNoOutput
	}
	return found[0], nil
}
