package sqlite

import (
	"context"

	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

// OwnName makes this process the owner of a name until it exits or releases the name: it alone may start the task of the name, or
// resume it. OwnName reports false, and the owner's pid, where another process owns the name.
func (j *Journal) OwnName(name string) (owned bool, pid int, err error) {
	for {
		if owned, err = j.owners.Acquire(lock.Name(name)); err != nil {
			return false, 0, err
		}
		if owned {
			if pid = ownerAside(j.dir, name); pid != 0 {
				_ = j.ReleaseName(name)
			}
			return pid == 0, pid, nil
		}
		if pid, err = j.owners.Owner(lock.Name(name)); pid != 0 || err != nil {
			return false, pid, err
		}
	}
}

// ReleaseName gives up a name that this process owns.
func (j *Journal) ReleaseName(name string) error {
	return j.owners.Release(lock.Name(name))
}

// ownerAside returns the process that runs a task of the name in a journal that was set aside since; 0 where none does.
func ownerAside(dir, name string) (pid int) {
	for _, aside := range Asides(dir) {
		o, err := lock.OpenOwnersReadOnly(aside)
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

// Named returns the unfinished task of a name; nil where there is none.
func (j *Journal) Named(ctx context.Context, name string) (*task.Task, error) {
	return j.newest(ctx, "WHERE t.name = ? AND t.status IN ('PENDING', 'IN_FLIGHT')", name)
}

// Newest returns the newest task of a name; nil where there is none.
func (j *Journal) Newest(ctx context.Context, name string) (*task.Task, error) {
	return j.newest(ctx, "WHERE t.name = ?", name)
}

// Success returns the newest task of a name that succeeded; nil where none did.
func (j *Journal) Success(ctx context.Context, name string) (*task.Task, error) {
	return j.newest(ctx, "WHERE t.name = ? AND t.status = 'SUCCEEDED'", name)
}

// Remember keeps a success from being pruned: --once relies on it.
func (j *Journal) Remember(ctx context.Context, t *task.Task) error {
	if t.Once {
		return nil
	}
	return j.write(ctx, func(c *conn) error {
		_, err := c.exec("UPDATE tasks SET once = 1 WHERE number = ? AND id = ?", t.Number, t.ID)
		return err
	})
}

func (j *Journal) newest(ctx context.Context, where string, args ...any) (*task.Task, error) {
	found, err := j.tasks(ctx, selectTasks+where+" ORDER BY t.number DESC LIMIT 1", args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}
