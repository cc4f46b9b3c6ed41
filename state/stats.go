package state

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/runner"
)

// waited is the sum of the delays between a task's attempts. That after the last one, where a task waits or was cancelled in its
// wait, is not over or was cut short. It is a float, which does not overflow.
const waited = `(SELECT total(a.delay) FROM attempts a WHERE a.task = t.number AND a.number < t.attempt_count)`

// ran is from when until when a task ran, in microseconds; null where it has not ended.
const ran = `t.finished_at - coalesce(t.requeued_at, t.created_at)`

// Stats sums the tasks up by what they run, those made at since or later: the tasks of a name together, the others by their command
// line. Those that failed most come first, then those that ran most.
func (j *Journal) Stats(ctx context.Context, since time.Time) ([]runner.CommandStats, error) {
	from := int64(math.MinInt64)
	if !since.IsZero() {
		from = since.UnixMicro()
	}
	const query = `SELECT t.name, t.argv, t.status, t.attempt_count, ` + ran + `, ` + waited + ` FROM tasks t WHERE t.created_at >= ?`
	rows, err := j.db.QueryContext(ctx, query, from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	sums := tally{}
	for rows.Next() {
		var r taskRun
		if err := rows.Scan(&r.name, &r.argv, &r.status, &r.attempts, &r.took, &r.waited); err != nil {
			return nil, err
		}
		sums.add(&r)
	}
	return sums.sorted(), rows.Err()
}

// taskRun is what the sums need of a task. The raw columns are the driver's: they are good for one row.
type taskRun struct {
	name, argv, status sql.RawBytes
	attempts           integer
	took, waited       span
}

// group are the tasks of one key.
type group struct {
	runner.CommandStats
	argv []byte          // of the latest
	took []time.Duration // of those that succeeded or failed
}

// tally holds the groups by name, or by command line. That ends with NUL, which no name can hold.
type tally map[string]*group

func (sums tally) add(r *taskRun) {
	key := r.argv
	if len(r.name) > 0 {
		key = r.name
	}
	g := sums[string(key)]
	if g == nil {
		g = &group{CommandStats: runner.CommandStats{Name: string(r.name)}}
		sums[string(key)] = g
	}
	g.argv = append(g.argv[:0], r.argv...)
	g.add(r)
}

func (g *group) add(r *taskRun) {
	g.Runs++
	g.Waiting = plus(g.Waiting, r.waited.Duration)
	switch runner.Status(r.status) {
	case runner.Succeeded:
		if r.attempts.Int64 > 1 {
			g.Rescues++
		} else {
			g.FirstTry++
		}
	case runner.Failed, runner.Exhausted:
		g.Failures++
	case runner.Cancelled:
		g.Cancelled++
		return
	default:
		g.Unfinished++
		return
	}
	g.took = append(g.took, r.took.Duration) // not negative, though the clock may have been set back
}

// plus adds durations that are not negative, up to the greatest that there is.
func plus(a, b time.Duration) time.Duration {
	return a + min(b, math.MaxInt64-a)
}

func (sums tally) sorted() []runner.CommandStats {
	list := make([]runner.CommandStats, 0, len(sums))
	for _, g := range sums {
		slices.Sort(g.took)
		s := g.CommandStats
		s.Command, s.Ended = splitStrings(g.argv), len(g.took)
		s.P50, s.P95 = runner.Quantile(g.took, 0.5), runner.Quantile(g.took, 0.95)
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b runner.CommandStats) int {
		return cmp.Or(
			-cmp.Compare(a.Failures, b.Failures), -cmp.Compare(a.Runs, b.Runs),
			strings.Compare(a.Name, b.Name), slices.Compare(a.Command, b.Command),
		)
	})
	return list
}
