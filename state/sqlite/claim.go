package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Claim writes the intent of the task's next attempt, in one transaction with the task itself where this is its first.
// What it wrote survives the death of the process at once. A new task survives a power loss, too, from the moment that
// its first outcome is recorded; where that matters, from before the first attempt. It returns ErrNamed where an
// unfinished task has the new one's name.
func (j *Journal) Claim(ctx context.Context, t *task.Task, now time.Time) error {
	if t.Number != 0 {
		err := j.write(ctx, func(c *conn) error { return j.claimNext(c, t, now) })
		j.background.Go(j.prepareEnd)
		return err
	}
	var number int64
	err := j.write(ctx, func(c *conn) (err error) {
		if number, err = insertTask(c, t); err != nil {
			return err
		}
		step("task inserted")
		if number, err = j.own(c, number); err != nil { // before anybody else can see the task
			return err
		}
		step("task owned")
		return insertAttempt(c, number, 1, now)
	})
	if err == nil {
		err = j.syncNew(ctx, t, number)
	}
	if err != nil {
		if number != 0 {
			_ = j.owners.Release(number) // it goes to the next task, whoever makes that
		}
		return fmt.Errorf("write the task to the journal: %w", j.diagnose(err))
	}
	j.background.Go(j.prepareEnd)
	t.Number, t.History.Phase = number, t.Options.Phase(phase(number, j.salt))
	return nil
}

// syncNew syncs a new task: where it matters before its first attempt, else while that runs.
func (j *Journal) syncNew(ctx context.Context, t *task.Task, number int64) error {
	// Others rely on a name, and a request that is not safe must not be sent twice.
	if !j.SyncFirst && t.Name == "" && !t.Once && (t.Target == nil || t.Target.Safe()) {
		j.syncBeside(number)
		return nil
	}
	err := j.sync()
	if err != nil { // the task was never acknowledged, so that no resume may run it
		_ = j.write(ctx, func(c *conn) error {
			_, err := c.exec("DELETE FROM tasks WHERE number = ?", number)
			return err
		})
	}
	return err
}

func (j *Journal) claimNext(c *conn, t *task.Task, now time.Time) error {
	err := j.advance(c, t.Number, t.ID, transition{
		event: task.EventClaim, from: task.Pending, fromCount: t.AttemptCount, to: task.InFlight, count: t.AttemptCount + 1,
	})
	if err != nil {
		return err
	}
	step("attempt counted")
	return insertAttempt(c, t.Number, t.AttemptCount+1, now)
}

// own makes this process the owner of a task that nobody has seen yet. Where the database was removed under a living
// owner, that one's number is skipped.
func (j *Journal) own(c *conn, number int64) (int64, error) {
	free := number
	for {
		owned, err := j.owners.Acquire(free)
		if err != nil {
			return 0, err
		}
		if owned {
			break
		}
		free++
	}
	if free == number {
		return number, nil
	}
	_, err := c.exec("UPDATE tasks SET number = ? WHERE number = ?", free, number)
	return free, err
}

// insertTask writes a task whose first attempt is claimed with it.
func insertTask(c *conn, t *task.Task) (int64, error) {
	if !task.Allowed(task.EventCreate, "", task.InFlight) {
		return 0, fmt.Errorf("no transition makes a task that is %s", task.InFlight)
	}
	if err := nameFree(c, t.Name); err != nil {
		return 0, err
	}
	policy, err := t.Policy.MarshalJSON()
	if err != nil {
		return 0, err
	}
	options, err := marshalOptions(t.Options)
	if err != nil {
		return 0, err
	}
	var request any // NULL for a command
	if t.Target != nil {
		stored, err := json.Marshal(t.Target)
		if err != nil {
			return 0, err
		}
		request = string(stored)
	}
	const query = `INSERT INTO tasks (id, parent, name, once, kind, status, argv, request, directory, environment, policy, options,
			idempotency_key, attempt_count, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`
	result, err := c.run(query, []any{
		t.ID, nullable(t.Parent), nullable(t.Name), t.Once, t.Kind, task.InFlight, joinStrings(t.Command), request,
		[]byte(t.Directory), joinStrings(t.Environment), string(policy), options, t.IdempotencyKey, t.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// joinStrings ends each string with the one byte that no argument and no variable can hold.
func joinStrings(list []string) []byte {
	joined := []byte{} // not nil, which would be NULL
	for _, s := range list {
		joined = append(append(joined, s...), 0)
	}
	return joined
}

// storedOptions are options as the journal holds them. JSON would change a hook that is no UTF-8, which it may be like
// an argument, so hooks are stored as bytes.
type storedOptions struct {
	task.Options
	OnRetry   []byte `json:"on_retry,omitempty"`
	OnSuccess []byte `json:"on_success,omitempty"`
	OnFailure []byte `json:"on_failure,omitempty"`
}

// marshalOptions returns NULL for a plain command.
func marshalOptions(o task.Options) (any, error) {
	if o == (task.Options{}) {
		return nil, nil
	}
	text, err := json.Marshal(storedOptions{o, []byte(o.OnRetry), []byte(o.OnSuccess), []byte(o.OnFailure)})
	return string(text), err
}

// nameFree returns ErrNamed where an unfinished task has the name: of those only one may.
func nameFree(c *conn, name string) error {
	if name == "" {
		return nil
	}
	const query = `SELECT EXISTS (SELECT 1 FROM tasks WHERE name = ? AND status IN ('PENDING', 'IN_FLIGHT'))`
	var taken bool
	if err := c.row(query, []any{name}, &taken); err != nil || !taken {
		return err
	}
	return state.ErrNamed
}

func insertAttempt(c *conn, number int64, attempt int, now time.Time) error {
	_, err := c.exec("INSERT INTO attempts (task, number, started_at) VALUES (?, ?, ?)", number, attempt, now.UnixMicro())
	return err
}

// Unclaim takes back the claim of RecordAndClaim, before its attempt began: the task waits, as the decision had it. A
// task that was cancelled meanwhile stays so, and gives task.ErrNotOwner.
func (j *Journal) Unclaim(ctx context.Context, t *task.Task) error {
	return j.write(ctx, func(c *conn) error {
		err := j.advance(c, t.Number, t.ID, transition{
			event: task.EventUnclaim, from: task.InFlight, fromCount: t.AttemptCount + 1, to: task.Pending, count: t.AttemptCount,
			reason: t.Reason, nextAttemptAt: t.NextAttemptAt,
		})
		if err != nil {
			return err
		}
		_, err = c.exec("DELETE FROM attempts WHERE task = ? AND number = ? AND decision IS NULL", t.Number, t.AttemptCount+1)
		return err
	})
}

// machineSalt keeps the tasks of two machines out of step.
func machineSalt() uint64 {
	name, err := os.Hostname()
	if err != nil {
		return 0 // the tasks of one machine are still spread
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// phase returns the task's fixed place in [0, 1): multiples of the golden ratio stay evenly apart, however many there
// are.
func phase(number int64, salt uint64) float64 {
	const unit = 1.0 / (1 << 53)
	_, f := math.Modf(math.Phi*float64(number) + float64(salt>>11)*unit)
	return f
}
