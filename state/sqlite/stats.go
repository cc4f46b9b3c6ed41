package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/task"
)

// waited is the sum of the delays between a task's attempts. That after the last one, where a task waits or was
// cancelled in its wait, is not over or was cut short. It is a float, which does not overflow.
const waited = `(SELECT total(a.delay) FROM attempts a WHERE a.task = t.number AND a.number < t.attempt_count)`

// ran is from when until when a task ran, in microseconds; null where it has not ended.
const ran = `t.finished_at - ` + began

// began is when a task was made, or last given fresh attempts.
const began = `coalesce(t.requeued_at, t.created_at)`

// Stats sums the tasks up by what they run, those made at since or later: the tasks of a name together, the others by
// their command line, or by their method and URL. Those whose last run failed come first, then those that failed most,
// then those that ran most. It returns no more than limit of them, 0 being no limit, and how many there are.
func (j *Journal) Stats(ctx context.Context, since time.Time, limit int) (list []task.CommandStats, all int, err error) {
	sums, err := j.tally(ctx, since)
	if err != nil {
		return nil, 0, err
	}
	groups := sums.sorted()
	all = len(groups)
	if limit > 0 {
		groups = groups[:min(limit, all)]
	}
	if err := j.lookAtLast(ctx, groups); err != nil {
		return nil, 0, err
	}
	for _, g := range groups {
		list = append(list, g.sum())
	}
	return list, all, nil
}

// tally reads each task once, in no order.
func (j *Journal) tally(ctx context.Context, since time.Time) (tally, error) {
	from := int64(math.MinInt64)
	if !since.IsZero() {
		from = since.UnixMicro()
	}
	const query = `SELECT t.number, t.name, t.argv, t.kind, t.request, t.status, t.attempt_count, ` + began + `, t.finished_at, ` + waited + ` FROM tasks t WHERE t.created_at >= ?`
	sums, endpoints := tally{}, endpoints{}
	err := j.read(ctx, func(c *conn) error {
		return c.each(ctx, query, []any{from}, func(scan scanner) (bool, error) {
			var r taskRun
			err := scan(&r.number, &r.name, &r.argv, &r.kind, &r.request, &r.status, &r.attempts, &r.began, &r.finished, &r.waited)
			if err == nil {
				r.endpoint = endpoints.of(&r)
				sums.add(&r)
			}
			return true, err
		})
	})
	return sums, err
}

// taskRun is what the sums need of a task.
type taskRun struct {
	number                            int64
	name, argv, kind, request, status []byte
	attempts                          int
	began, finished                   time.Time
	waited                            time.Duration
	endpoint                          task.Endpoint // empty for a command, and for a request that cannot be read
}

// group are the tasks of one key.
type group struct {
	task.CommandStats
	argv []byte          // of the latest
	took []time.Duration // of those that succeeded or failed

	last int64   // the number of the one of these that ended last
	open []int64 // the numbers of those that have not ended
}

// tally holds the groups by name, or by what they run: a command line ends with NUL, and a request begins with it,
// which no name can hold.
type tally map[string]*group

func (sums tally) add(r *taskRun) {
	key := r.argv
	switch {
	case len(r.name) > 0:
		key = r.name
	case r.endpoint != task.Endpoint{}:
		key = []byte("\x00" + r.endpoint.Method + " " + r.endpoint.URL)
	}
	g := sums[string(key)]
	if g == nil {
		g = &group{CommandStats: task.CommandStats{Name: string(r.name)}}
		sums[string(key)] = g
	}
	g.argv, g.Endpoint = append(g.argv[:0], r.argv...), r.endpoint
	g.add(r)
}

// endpoints remembers where the stored requests go: most runs of a command send the same one, and to read JSON takes
// time.
type endpoints map[string]task.Endpoint

// maxEndpoints bounds how many different requests are remembered, as each may hold a large body.
const maxEndpoints = 1000

func (known endpoints) of(r *taskRun) (e task.Endpoint) {
	if len(r.request) == 0 {
		return e
	}
	if e, found := known[string(r.request)]; found {
		return e
	}
	if target, err := task.DecodeTarget(task.Kind(r.kind), r.request); err == nil {
		e = target.Endpoint()
	}
	if len(known) < maxEndpoints {
		known[string(r.request)] = e
	}
	return e
}

func (g *group) add(r *taskRun) {
	g.Runs++
	g.Waiting += r.waited
	switch task.Status(r.status) {
	case task.Succeeded:
		if r.attempts > 1 {
			g.Rescues++
		} else {
			g.FirstTry++
		}
	case task.Failed, task.Exhausted:
		g.Failures++
	case task.Cancelled:
		g.Cancelled++
		return
	default:
		g.Unfinished++
		g.open = append(g.open, r.number)
		return
	}
	g.ended(r)
	took := r.finished.Sub(r.began)
	g.took = append(g.took, min(max(took, 0), longest)) // the clock may have been set back
}

// ended keeps the last ends. Where two are the same, the newer task is the later one.
func (g *group) ended(r *taskRun) {
	at := r.finished
	if task.Status(r.status) == task.Succeeded && at.After(g.Last.SucceededAt) {
		g.Last.SucceededAt = at
	}
	if c := at.Compare(g.Last.FinishedAt); c > 0 || (c == 0 && r.number > g.last) {
		g.last, g.Last.Status, g.Last.FinishedAt = r.number, task.Status(r.status), at
	}
}

func (g *group) sum() task.CommandStats {
	slices.Sort(g.took)
	s := g.CommandStats
	s.Command, s.Ended = splitStrings(g.argv), len(g.took)
	s.P50, s.P95 = task.Quantile(g.took, 0.5), task.Quantile(g.took, 0.95)
	return s
}

func (sums tally) sorted() []*group {
	return slices.SortedFunc(maps.Values(sums), func(a, b *group) int {
		return cmp.Or(
			broken(b)-broken(a), cmp.Compare(b.Failures, a.Failures), cmp.Compare(b.Runs, a.Runs),
			strings.Compare(a.Name, b.Name), bytes.Compare(a.argv, b.argv), strings.Compare(a.Endpoint.Method, b.Endpoint.Method), strings.Compare(a.Endpoint.URL, b.Endpoint.URL),
		)
	})
}

func broken(g *group) int {
	if g.Last.Broken() {
		return 1
	}
	return 0
}

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
		err := scan(&number, &row.exit, &row.Outcome.Signal, (*string)(&row.Outcome.Error), &row.exchange)
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
