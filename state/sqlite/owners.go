package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// Owner returns the process that owns the task: 0 without an owner, lock.UnknownPID if the system does not tell which.
func (j *Journal) Owner(number int64) (pid int, err error) {
	if j.owners == nil { // a journal without a file of locks has no owners
		return 0, nil
	}
	return j.owners.Owner(number)
}

// HookOwner implements state.Owners.
func (j *Journal) HookOwner(number int64) (pid int, err error) { return j.Owner(lock.Hook(number)) }

// Interrupted reports whether an unfinished task has lost its owner.
func (j *Journal) Interrupted(ctx context.Context, t *task.Task) (bool, error) {
	switch {
	case t.Status.Finished():
		return false, nil
	case t.Queue == task.QueueWorker && t.Worker == 0: // it waits for any worker
		return false, nil
	case t.Queue == task.QueueWorker:
		pid, err := j.Owner(lock.Worker(t.Worker))
		return pid == 0, err
	}
	if pid, err := j.Owner(t.Number); pid != 0 || err != nil {
		return false, err
	}
	// Since t was read, its owner may have finished it and exited, and it may have been pruned.
	status, err := j.status(ctx, t.Number)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil && !status.Finished(), err
}

func (j *Journal) status(ctx context.Context, number int64) (status task.Status, err error) {
	err = j.row(ctx, "SELECT status FROM tasks WHERE number = ?", []any{number}, (*string)(&status))
	return status, err
}

// Adopt makes this process the owner of an interrupted task, and returns the task with the history of its attempts.
func (j *Journal) Adopt(ctx context.Context, number int64) (*task.Task, error) {
	owned, err := j.owners.Acquire(number)
	if err != nil {
		return nil, err
	}
	if !owned {
		return nil, state.ErrOwned
	}
	conn.Step("task adopted")
	t, err := j.adopted(ctx, number)
	if err != nil {
		_ = j.owners.Release(number)
	}
	return t, err
}

// Release ends this process's ownership of a task.
func (j *Journal) Release(number int64) error {
	return j.owners.Release(number)
}

// adopted reads the task again: it may have changed before this process got its lock. What its owner could not write to
// the journal is written first.
func (j *Journal) adopted(ctx context.Context, number int64) (*task.Task, error) {
	if err := j.writeKept(ctx, number); err != nil {
		return nil, err
	}
	if err := j.shareDead(ctx); err != nil {
		return nil, err
	}
	found, err := j.tasks(ctx, selectTasks+"WHERE t.number = ?", number)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, state.ErrNotFound
	case found[0].Status.Finished():
		return nil, state.ErrFinished
	case found[0].Queue == task.QueueWorker:
		return nil, state.ErrQueued
	case found[0].Damage != nil:
		return nil, fmt.Errorf("%w: %w", state.ErrDamaged, found[0].Damage)
	}
	attempts, err := j.History(ctx, number)
	replay(found[0], attempts)
	return found[0], err
}

// writeKept writes what is kept beside the journal of a task: its end, or the attempt that a note alone tells of. Where
// that attempt cannot be written, the note goes on to tell of it.
func (j *Journal) writeKept(ctx context.Context, number int64) error {
	if _, err := j.writeKeptEnds(ctx, number); err != nil {
		return err
	}
	t, err := j.one(ctx, selectTasks+"WHERE t.number = ?", number)
	if err != nil || t == nil || t.Last.Later == 0 || t.Status.Finished() {
		return err
	}
	began := t.CreatedAt // it was not earlier than the latest of these
	for _, at := range []time.Time{t.RequeuedAt, t.Last.StartedAt.Add(t.Last.Outcome.Duration), t.NextAttemptAt} {
		if at.After(began) && at.Before(time.Now()) {
			began = at
		}
	}
	t.AttemptCount = t.Last.Later
	_ = j.ClaimLate(ctx, t, began, t.Last.Process)
	return nil
}

// writeKeptIn does so for all kept ends, and for the attempts of what ran in a task.
func (j *Journal) writeKeptIn(ctx context.Context, number int64) error {
	if _, err := j.writeKeptEnds(ctx, 0); err != nil {
		return err
	}
	t, err := j.one(ctx, selectTasks+"WHERE t.number = ?", number)
	if err != nil || t == nil {
		return err
	}
	nested, err := j.Nested(ctx, t)
	for _, n := range nested {
		if n.Last.Later > 0 && err == nil {
			err = j.writeKept(ctx, n.Number)
		}
	}
	return err
}

// behind is positionOf for an owner that could not write for a while. It returns ErrNotOwner, too, where another
// process has ended the task or begun an attempt.
func (j *Journal) behind(c *conn.Conn, t *task.Task) (stored placed, err error) {
	stored, err = j.positionOf(c, t)
	if err == nil && (stored.status.Finished() || stored.count > t.AttemptCount) {
		err = task.ErrNotOwner
	}
	return stored, err
}

// replay gives a task the history that its attempts make. Its Last stays: scanTask has looked up the process for that.
func replay(t *task.Task, attempts []task.Attempt) {
	for _, a := range attempts {
		if a.Number > t.RequeuedAfter && a.Decision.Verdict != "" {
			t.History = t.History.After(&t.Policy, a.Outcome, a.Decision)
		}
	}
}

// OwnName makes this process the owner of a name. An owner in a journal that was set aside counts as well, and so does
// one in the new journal if it is this process's that was set aside.
func (j *Journal) OwnName(name string) (owned bool, pid int, err error) {
	for {
		if owned, err = j.owners.Acquire(lock.Name(name)); err != nil {
			return false, 0, err
		}
		if owned {
			if pid = j.ownerElsewhere(name); pid != 0 {
				_ = j.ReleaseName(name)
			}
			return pid == 0, pid, nil
		}
		if pid, err = j.owners.Owner(lock.Name(name)); pid != 0 || err != nil {
			return false, pid, err
		}
	}
}

// NameOwner returns the process that has the name; 0 if no other one has.
func (j *Journal) NameOwner(name string) (pid int, err error) {
	if pid, err = j.owners.Owner(lock.Name(name)); pid == 0 && err == nil {
		pid = j.ownerElsewhere(name)
	}
	return pid, err
}

// ReleaseName ends this process's ownership of a name.
func (j *Journal) ReleaseName(name string) error {
	return j.owners.Release(lock.Name(name))
}

// ownerElsewhere returns the process that runs a task with the name in another journal of the directory, be it one that
// was set aside or a new one; 0 if none does.
func (j *Journal) ownerElsewhere(name string) (pid int) {
	for _, dir := range append(Asides(j.dir), j.dir) {
		if j.owners.In(dir) {
			continue
		}
		o, err := lock.OpenOwnersReadOnly(dir)
		if err != nil || o == nil {
			continue
		}
		pid, _ = o.Owner(lock.Name(name))
		_ = o.Close()
		if pid != 0 {
			return pid
		}
	}
	return 0
}
