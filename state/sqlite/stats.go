package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// waited is the sum of the delays between a task's attempts. The delay after the last attempt is left out: the task
// still waits, or was cancelled during the wait. A float does not overflow.
const waited = `iif(t.attempt_count > 1,
	(SELECT total(a.delay) FROM attempts a WHERE a.task = t.number AND a.number < t.attempt_count), 0)`

// ran is how long a task ran, in microseconds; NULL for an unfinished one.
const ran = `t.finished_at - ` + began

// missing is whether a task without a name only found that there is no such command.
const missing = `t.status = 'FAILED' AND t.name IS NULL AND EXISTS
	(SELECT 1 FROM attempts a WHERE a.task = t.number AND a.number = t.attempt_count AND a.error = 'not found')`

// began is when a task was created or last requeued.
const began = `coalesce(t.requeued_at, t.created_at)`

// Stats sums up the tasks made at since or later by their name, or else by their command line, or by method and URL.
// First come the groups whose last run failed, then those that failed most, then those that ran most. It returns at
// most limit groups, 0 being no limit, and how many there are.
func (j *Journal) Stats(ctx context.Context, since time.Time, limit int) (list []task.CommandStats, all int, err error) {
	sums, err := j.tally(ctx, since, endpoints{})
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
func (j *Journal) tally(ctx context.Context, since time.Time, known endpoints) (tally, error) {
	sums := tally{}
	query, args := runsSince(since)
	err := j.read(ctx, func(c *conn.Conn) error {
		clear(sums)
		return c.Each(ctx, query, args, func(scan conn.Scanner) (bool, error) {
			var r taskRun
			err := scan(&r.number, &r.name, &r.argv, &r.kind, &r.request, &r.url, &r.status, &r.attempts, &r.began, &r.finished,
				&r.waited, &r.missing, &r.queued)
			if err == nil {
				sums.add(&r, known.of(&r))
			}
			return true, err
		})
	})
	return sums, err
}

// selectRuns leaves out of a request what is different in each, and its endpoint does not depend on: its body.
const selectRuns = `SELECT t.number, t.name, t.argv, t.kind,
	iif(t.kind = 'http' AND t.body IS NULL AND json_valid(t.request), json_remove(t.request, '$.body'), t.request), t.url,
	t.status, t.attempt_count,
	` + began + `, t.finished_at, ` + waited + `, ` + missing + `, t.queue = 1 FROM tasks t WHERE t.created_at >= ?`

// runsSince has the ids spare what was made before; that condition follows from the time.
func runsSince(since time.Time) (query string, args []any) {
	if since.IsZero() {
		return selectRuns, []any{since.UnixMicro()}
	}
	return selectRuns + " AND t.id >= ?", []any{since.UnixMicro(), earliestID(since)}
}

// endpoints remembers where requests go, by their kind and JSON, which takes long to decode: a service has a million of
// them, of which most are the same.
type endpoints map[string]task.Endpoint

// mostEndpoints bounds the memory of requests that are all different.
const mostEndpoints = 10_000

// of returns an empty one for a command, and for a request that cannot be read.
func (known endpoints) of(r *taskRun) (e task.Endpoint) {
	if len(r.request) == 0 {
		return e
	}
	key := string(r.kind) + " " + r.url + " " + string(r.request)
	e, found := known[key]
	if found {
		return e
	}
	target, err := task.DecodeTarget(task.Kind(r.kind), r.request)
	if err == nil {
		target, err = task.JoinTarget(target, task.Apart{URL: r.url, Body: anyBody})
	}
	if err == nil {
		e = target.Endpoint()
	}
	if len(known) >= mostEndpoints {
		clear(known)
	}
	known[key] = e
	return e
}

// anyBody stands for a body that no endpoint depends on.
var anyBody = []byte{0}

// taskRun is what the sums need of a task.
type taskRun struct {
	number                            int64
	name, argv, kind, request, status []byte
	url                               string
	attempts                          int
	began, finished                   time.Time
	waited                            time.Duration
	missing                           bool
	queued                            bool // for workers alone: no process owns it
}

// group is the tasks with one key.
type group struct {
	task.CommandStats
	argv []byte          // of the newest
	took []time.Duration // of the tasks that succeeded or failed

	missing int // of the runs: there was no such command

	newest int64   // the number of the newest task
	last   int64   // the number of the task that ended last, of those
	open   []int64 // the numbers of the unfinished tasks that a process may own
}

// tally holds the groups by name, or by what they run. A command line ends with NUL and the key of a request begins
// with it; no name contains one.
type tally map[string]*group

func (sums tally) add(r *taskRun, endpoint task.Endpoint) {
	key := string(r.argv)
	switch {
	case len(r.name) > 0:
		key = string(r.name)
	case endpoint != task.Endpoint{}:
		key = "\x00" + endpoint.Method + " " + endpoint.URL
	}
	g := sums[key]
	if g == nil {
		g = &group{CommandStats: task.CommandStats{Name: string(r.name)}}
		sums[key] = g
	}
	g.argv, g.Endpoint, g.newest = append(g.argv[:0], r.argv...), endpoint, r.number
	g.add(r)
}

func (g *group) add(r *taskRun) {
	g.Runs++
	if r.missing {
		g.missing++
	}
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
		if !r.queued {
			g.open = append(g.open, r.number)
		}
		return
	}
	took := r.finished.Sub(r.began)
	g.took = append(g.took, min(max(took, 0), conn.Longest)) // the clock may have been set back
	if task.Status(r.status) == task.Succeeded && r.finished.After(g.Last.SucceededAt) {
		g.Last.SucceededAt = r.finished
	}
	// Of two tasks that ended at the same time, the newer one counts.
	if c := r.finished.Compare(g.Last.FinishedAt); c > 0 || (c == 0 && r.number > g.last) {
		g.last, g.Last.Status, g.Last.FinishedAt = r.number, task.Status(r.status), r.finished
	}
}

func (g *group) sum() task.CommandStats {
	slices.Sort(g.took)
	s := g.CommandStats
	s.Command, s.Ended = splitStrings(g.argv), len(g.took)
	s.P50, s.P95 = task.Quantile(g.took, 0.5), task.Quantile(g.took, 0.95)
	return s
}

// sorted leaves out what was never a command: a typo.
func (sums tally) sorted() []*group {
	maps.DeleteFunc(sums, func(_ string, g *group) bool { return g.missing == g.Runs })
	return slices.SortedFunc(maps.Values(sums), func(a, b *group) int {
		switch {
		case a.Last.Broken() && !b.Last.Broken():
			return -1
		case b.Last.Broken() && !a.Last.Broken():
			return 1
		}
		return cmp.Or(
			cmp.Compare(b.Failures, a.Failures), cmp.Compare(b.Runs, a.Runs),
			strings.Compare(a.Name, b.Name), bytes.Compare(a.argv, b.argv),
			strings.Compare(a.Endpoint.Method, b.Endpoint.Method), strings.Compare(a.Endpoint.URL, b.Endpoint.URL),
		)
	})
}

const selectLast = "SELECT " + attemptColumns +
	" FROM tasks t CROSS JOIN attempts a ON a.task = t.number AND a.number = t.attempt_count WHERE t.number = ?"

// lookAtLast adds what is not a sum: the outcome of the last run, what must not be shown, and whether one runs now.
func (j *Journal) lookAtLast(ctx context.Context, groups []*group) error {
	for _, g := range groups {
		var last attemptRow
		err := j.row(ctx, selectLast, []any{g.last}, last.columns()...)
		switch {
		case err == nil:
			g.Last.Outcome = last.attempt().Outcome
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		var options []byte
		err = j.row(ctx, "SELECT options FROM tasks WHERE number = ?", []any{g.newest}, &options)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if kept := (task.Options{}); json.Unmarshal(options, &kept) == nil {
			g.Mask = kept.Mask
		}
		for _, number := range slices.Backward(g.open) { // the newest first: older ones are mostly interrupted
			pid, err := j.Owner(number)
			if err != nil {
				return err
			}
			if g.Last.Running = pid != 0; g.Last.Running {
				break
			}
		}
	}
	return nil
}
