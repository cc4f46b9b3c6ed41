package sqlite

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/10f93571/retry/task"
)

// lookAtLast adds what cannot be summed up: how the last attempt of the last run came out, and whether one runs now.
func (j *Journal) lookAtLast(ctx context.Context, groups []*group) error {
	outcomes, err := j.lastOutcomes(ctx, groups)
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.Last.Outcome = outcomes[g.last]
		if g.Last.Running, err = j.anyOwned(g.open); err != nil {
			return err
		}
	}
	return nil
}

// selectLast reads the last attempts of the tasks whose numbers are in a JSON list.
const selectLast = `SELECT t.number, a.exit, a.signal, a.error, a.exchange FROM json_each(?) n CROSS JOIN tasks t ON t.number = n.value
	CROSS JOIN attempts a ON a.task = t.number AND a.number = t.attempt_count`

// lastOutcomes returns the outcomes by the number of their task.
func (j *Journal) lastOutcomes(ctx context.Context, groups []*group) (map[int64]task.Outcome, error) {
	var numbers []int64
	for _, g := range groups {
		numbers = append(numbers, g.last)
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	outcomes := map[int64]task.Outcome{}
	_, err = collect(ctx, j, selectLast, []any{string(list)}, func(scan scanner) (struct{}, error) {
		var number int64
		var row attemptRow
		err := scan(&number, &row.exit, &row.signal, &row.class, &row.exchange)
		outcomes[number] = row.attempt().Outcome
		return struct{}{}, err
	})
	return outcomes, err
}

// anyOwned asks for the newest first: older ones are mostly forgotten.
func (j *Journal) anyOwned(numbers []int64) (bool, error) {
	for _, number := range slices.Backward(numbers) {
		if pid, err := j.Owner(number); pid != 0 || err != nil {
			return pid != 0, err
		}
	}
	return false, nil
}
