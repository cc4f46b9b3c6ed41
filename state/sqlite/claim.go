package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// Claim writes a new task together with its first attempt. The task survives a power loss from its first recorded
// outcome on; from before its first attempt where that matters.
func (j *Journal) Claim(ctx context.Context, t *task.Task, now time.Time) error {
	if t.Number != 0 {
		var done *placed
		err := j.write(ctx, func(c *conn.Conn) (err error) {
			if done, err = j.cancelDone(c, t, now); done != nil || err != nil {
				return err
			}
			return j.claimNext(c, t, now)
		})
		switch {
		case err == nil && done != nil:
			j.tellCancelled(t.Number, *done, now)
			err = task.ErrNotOwner
		case err == nil && t.Unsafe(): // else a power loss takes this away, and a resume sends it again
			if err = j.diagnose(j.sync()); err != nil {
				_ = j.Unclaim(context.WithoutCancel(ctx), t)
			}
		}
		j.background.Go(j.shortenLog)
		return err
	}
	create := transition{event: task.EventCreate, to: task.InFlight, count: 1}
	free := func(*conn.Conn) error { return nil }
	attempt := func(c *conn.Conn, number int64) error { return insertAttempt(c, number, 1, now) }
	err := j.create(ctx, t, create, free, attempt)
	if err == nil {
		j.background.Go(j.shortenLog)
	}
	return err
}

// Create implements state.Writer.
func (j *Journal) Create(ctx context.Context, t, instead *task.Task) error {
	add, now := transition{event: task.EventAdd, to: task.Pending, nextAttemptAt: t.CreatedAt}, time.Now()
	var ended *placed
	free := func(c *conn.Conn) error {
		if ended = nil; instead == nil {
			return nil
		}
		stored, err := j.cancel(c, instead.Number, now)
		if errors.Is(err, state.ErrFinished) {
			return nil
		}
		ended = &stored
		return err
	}
	err := j.create(ctx, t, add, free, func(*conn.Conn, int64) error { return nil })
	if err == nil && ended != nil {
		j.tellCancelled(instead.Number, *ended, now)
	}
	if err == nil { // the note of its first attempt has room then, even where the disk is full
		j.owners.Note(t.Number, startKey(t.ID, 0), "")
	}
	return err
}

// create writes a new task, makes its name free before, and writes what else belongs to it. This process is its owner.
func (j *Journal) create(ctx context.Context, t *task.Task, s transition, free func(*conn.Conn) error,
	more func(c *conn.Conn, number int64) error) error {
	var number int64
	err := j.write(ctx, func(c *conn.Conn) (err error) {
		if err := free(c); err != nil {
			return err
		}
		if err := cmp.Or(nameFree(c, t.Name, 0), notDone(c, t), j.notSent(c, t)); err != nil {
			return err
		}
		if number, err = j.ownNewNumber(c); err != nil { // before the task is visible to other processes
			return err
		}
		conn.Step("task owned")
		if err := insertTask(c, t, number, s); err != nil {
			return err
		}
		conn.Step("task inserted")
		return more(c, number)
	})
	stored := err == nil
	if stored {
		stored, err = j.syncNew(ctx, t, number)
	}
	if stored { // in spite of an error too: who tells of that names the task, and its end may still be written
		t.Number, t.History.Phase = number, t.Options.Phase(phase(number, j.salt))
	}
	if err != nil {
		if number != 0 && !stored {
			_ = j.owners.Release(number) // the next new task gets this number
		}
		return fmt.Errorf("write the task to the journal: %w", j.diagnose(err))
	}
	return nil
}

// mustSurvive reports whether a task begins, and ends, only when the disk has that: other processes rely on a name.
func (j *Journal) mustSurvive(t *task.Task) bool {
	return j.SyncFirst || t.Name != "" || t.Once || t.Unsafe()
}

// syncNew syncs a new task, either before or during its first attempt. It reports whether the task is in the journal.
func (j *Journal) syncNew(ctx context.Context, t *task.Task, number int64) (stored bool, err error) {
	if !j.mustSurvive(t) {
		wait := sync.OnceValue(j.sync) // while the first attempt runs
		j.syncs.Store(number, wait)
		j.background.Go(func() { _ = wait() })
		return true, nil
	}
	if err = j.sync(); err == nil {
		return true, nil
	}
	failed := j.write(ctx, func(c *conn.Conn) error { // the task was never acknowledged: no resume may run it
		_, err := c.Exec("DELETE FROM tasks WHERE number = ?", number)
		return err
	})
	return failed != nil, err
}

// cancelDone cancels a task that waits to do what has been done, and returns where it stood; nil where there is work to
// do. What was cancelled while it ran may succeed all the same, and another task of its name may be stored meanwhile.
func (j *Journal) cancelDone(c *conn.Conn, t *task.Task, now time.Time) (*placed, error) {
	err := notDone(c, t)
	if !errors.Is(err, state.ErrSucceeded) {
		return nil, err
	}
	if stored, err := position(c, t.Number); err != nil || stored.id != t.ID || stored.status != task.Pending {
		return nil, nil //nolint:nilerr // the claim fails of it, and says so
	}
	stored, err := j.cancel(c, t.Number, now)
	return &stored, err
}

// claimNext refuses a task that was cancelled and requeued since it was read.
func (j *Journal) claimNext(c *conn.Conn, t *task.Task, now time.Time) error {
	if _, err := j.positionOf(c, t); err != nil {
		return err
	}
	return j.beginAttempt(c, t, now, transition{
		event: task.EventClaim, from: task.Pending, fromCount: t.AttemptCount, to: task.InFlight, count: t.AttemptCount + 1,
	})
}

// ClaimLate implements state.Writer.
func (j *Journal) ClaimLate(ctx context.Context, t *task.Task, began time.Time, process string) error {
	return j.write(ctx, func(c *conn.Conn) error {
		stored, err := j.behind(c, t)
		switch {
		case err != nil:
			return err
		case stored.count < t.AttemptCount:
			if err := j.claimLate(c, t, stored, began); err != nil {
				return err
			}
		}
		return noteProcess(c, t, process)
	})
}

func (j *Journal) claimLate(c *conn.Conn, t *task.Task, stored placed, began time.Time) error {
	if t.Last.Number > 0 {
		if err := catchUpAttempts(c, t); err != nil {
			return err
		}
	}
	return j.beginAttempt(c, t, began, transition{
		event: task.EventCatchUp, from: stored.status, fromCount: stored.count, to: task.InFlight, count: t.AttemptCount,
	})
}

// beginAttempt writes an attempt that begins, with the task's step.
func (j *Journal) beginAttempt(c *conn.Conn, t *task.Task, now time.Time, s transition) error {
	if err := j.advance(c, t.Number, t.ID, s); err != nil {
		return err
	}
	conn.Step("attempt counted")
	if s.fromCount == 0 { // it was stored before it could begin: its budget begins now
		if err := rewriteBegin(c, t); err != nil {
			return err
		}
	}
	if t.Queue != task.QueueNone { // workers leave it alone from now on
		if _, err := c.Exec("UPDATE tasks SET queue = 0 WHERE number = ?", t.Number); err != nil {
			return err
		}
	}
	return insertAttempt(c, t.Number, s.count, now)
}

// mostSkipped is how many numbers in a row may have owners. Something else holds all of the file where more have.
const mostSkipped = 1000

// rewriteBegin stores when a task was made, and its policy: a deadline does not move with that.
func rewriteBegin(c *conn.Conn, t *task.Task) error {
	policy, err := t.Policy.MarshalJSON()
	if err != nil {
		return err
	}
	const query = "UPDATE tasks SET created_at = ?, policy = ? WHERE number = ?"
	_, err = c.Exec(query, t.CreatedAt.UnixMicro(), string(policy), t.Number)
	return err
}

// ownNewNumber returns the number of a new task and makes this process its owner. A number may have an owner already if
// the database was removed while its task ran; such a number is skipped.
func (j *Journal) ownNewNumber(c *conn.Conn) (number int64, err error) {
	if err := c.Row("SELECT coalesce(max(number), 0) FROM tasks", nil, &number); err != nil {
		return 0, err
	}
	for range mostSkipped {
		number++
		if owned, err := j.owners.Acquire(number); owned || err != nil {
			return number, err
		}
	}
	return 0, state.NewFault(state.ErrLocked, "lsof "+filepath.Join(j.dir, lock.OwnersFile)+" names it",
		"another process holds all of %s", lock.OwnersFile)
}

// insertTask writes a new task, as an event makes it.
func insertTask(c *conn.Conn, t *task.Task, number int64, s transition) error {
	if !task.Allowed(s.event, "", s.to) {
		return fmt.Errorf("no transition makes a task that is %s", s.to)
	}
	policy, err := t.Policy.MarshalJSON()
	if err != nil {
		return err
	}
	options, err := marshalOptions(t.Options)
	if err != nil {
		return err
	}
	var request, url, body, tags any // NULL for a command, and where there are none
	if t.Target != nil {
		stored, apart, err := task.EncodeTarget(t.Target)
		if err != nil {
			return err
		}
		request, url = string(stored), nullable(apart.URL)
		if apart.Body != nil {
			body = apart.Body
		}
	}
	if len(t.Tags) > 0 {
		list, err := json.Marshal(t.Tags)
		if err != nil {
			return err
		}
		tags = string(list)
	}
	const query = `INSERT INTO tasks (number, id, parent, name, once, kind, status, argv, request, directory, environment,
			policy, options, idempotency_key, attempt_count, created_at, next_attempt_at, queue, partition, host, tags, payload,
			blob, url, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	_, err = c.Exec(query, number,
		t.ID, nullable(t.Parent), nullable(t.Name), t.Once, t.Kind, s.to, joinStrings(t.Command), request,
		[]byte(t.Directory), joinStrings(t.Environment), string(policy), options, t.IdempotencyKey, s.count,
		t.CreatedAt.UnixMicro(), micros(s.nextAttemptAt), int(t.Queue), t.Partition, t.Host(), tags, nullable(t.Payload),
		nullable(blobOf(t)), url, body)
	return err
}

// blobOf returns the hash of a body that is kept beside the journal; empty where there is none.
func blobOf(t *task.Task) string {
	if kept, ok := t.Target.(interface{ Blob() string }); ok {
		return kept.Blob()
	}
	return ""
}

// joinStrings ends each string with the one byte that no argument and no variable can hold.
func joinStrings(list []string) []byte {
	joined := []byte{} // not nil, which would be NULL
	for _, s := range list {
		joined = append(append(joined, s...), 0)
	}
	return joined
}

// storedOptions are options as the journal stores them: hooks and paths as bytes, because JSON would change invalid
// UTF-8.
type storedOptions struct {
	task.Options
	OnStart   []byte `json:"on_start,omitempty"`
	OnRetry   []byte `json:"on_retry,omitempty"`
	OnSuccess []byte `json:"on_success,omitempty"`
	OnFailure []byte `json:"on_failure,omitempty"`
	Report    []byte `json:"report,omitempty"`
	Path      []byte `json:"source_path,omitempty"`
}

// marshalOptions returns NULL for a plain command.
func marshalOptions(o task.Options) (any, error) {
	if o == (task.Options{}) {
		return nil, nil
	}
	path := o.Source.Path
	o.Source.Path = ""
	text, err := json.Marshal(storedOptions{
		o, []byte(o.OnStart), []byte(o.OnRetry), []byte(o.OnSuccess), []byte(o.OnFailure), []byte(o.Report), []byte(path),
	})
	return string(text), err
}

// nameFree returns ErrNamed if an unfinished task has the name, other than one; 0 is none.
func nameFree(c *conn.Conn, name string, except int64) error {
	if name == "" {
		return nil
	}
	const query = `SELECT EXISTS (SELECT 1 FROM tasks WHERE name = ? AND finished_at IS NULL AND number <> ?)`
	var taken bool
	if err := c.Row(query, []any{name, except}, &taken); err != nil || !taken {
		return err
	}
	return state.ErrNamed
}

// notDone returns ErrSucceeded if another task of the name has succeeded with --once: an older one that failed must not
// do it again.
func notDone(c *conn.Conn, t *task.Task) error {
	if !t.Once || t.Name == "" {
		return nil
	}
	const query = `SELECT EXISTS (SELECT 1 FROM tasks t WHERE t.name = ? AND t.number <> ? AND ` + hasSucceeded + `)`
	var done bool
	if err := c.Row(query, []any{t.Name, t.Number}, &done); err != nil || !done {
		return err
	}
	return state.ErrSucceeded
}

// notSent returns ErrMayBeDone for a request with --once if another one of its name may have taken effect.
func (j *Journal) notSent(c *conn.Conn, t *task.Task) error {
	if !t.Once || t.Name == "" {
		return nil
	}
	if sent, err := j.mayBeDone(c, t); err != nil || sent == nil {
		return err
	}
	return state.ErrMayBeDone
}

func insertAttempt(c *conn.Conn, number int64, attempt int, now time.Time) error {
	_, err := c.Exec("INSERT INTO attempts (task, number, started_at) VALUES (?, ?, ?)", number, attempt, now.UnixMicro())
	return err
}

// Unclaim undoes the claim of RecordAndClaim: the task waits as decided.
func (j *Journal) Unclaim(ctx context.Context, t *task.Task) error {
	return j.write(ctx, func(c *conn.Conn) error {
		err := j.advance(c, t.Number, t.ID, transition{
			event: task.EventUnclaim, from: task.InFlight, fromCount: t.AttemptCount + 1,
			to: task.Pending, count: t.AttemptCount, reason: t.Reason, nextAttemptAt: t.NextAttemptAt,
		})
		if err != nil {
			return err
		}
		_, err = c.Exec("DELETE FROM attempts WHERE task = ? AND number = ? AND decision IS NULL", t.Number, t.AttemptCount+1)
		return err
	})
}

// machineSalt lets two machines run their tasks at different moments.
func machineSalt() uint64 {
	name, _ := os.Hostname() // without it, the tasks of one machine still differ
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// phase returns a fixed number in [0, 1) for a task: multiples of the golden ratio are evenly spread, however many.
func phase(number int64, salt uint64) float64 {
	const unit = 1.0 / (1 << 53)
	_, f := math.Modf(math.Phi*float64(number) + float64(salt>>11)*unit)
	return f
}
