package sqlite

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

const (
	inputsName = "stdin"
	partSuffix = ".part" // of a file that does not hold all of the input yet
)

// inputName contains the task's id because a new journal in the same directory gives the same numbers to other tasks.
func inputName(number int64, id string) string {
	return strconv.FormatInt(number, 10) + "." + id
}

func (j *Journal) inputPath(name string) string {
	return filepath.Join(j.dir, inputsName, name)
}

func (j *Journal) inputOf(t *task.Task) string {
	return j.inputPath(inputName(t.Number, t.ID))
}

// KeepInput creates the file for the task's stdin. The first bytes may arrive after the end of the task: ErrFinished.
func (j *Journal) KeepInput(t *task.Task) (*os.File, error) {
	path := j.inputOf(t) + partSuffix
	err := os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil {
		err = files.SyncDir(j.dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	conn.Step("input made")
	// The status is read after the file exists: a process that ends the task later finds the file and removes it.
	status, err := j.status(context.Background(), t.Number)
	if err == nil && status.Finished() {
		err = state.ErrFinished
	}
	if err != nil {
		_ = file.Close()
		j.DropInput(t)
		return nil, err
	}
	return file, nil
}

// CompleteInput marks the file as complete. From then on a resume can use it, even after a power loss.
func (j *Journal) CompleteInput(t *task.Task, file *os.File) error {
	path := j.inputOf(t)
	if _, err := os.Lstat(path + partSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil // the task has ended, so that a sync would be a waste of time
	}
	if err := file.Sync(); err != nil {
		return err
	}
	conn.Step("input synced")
	err := os.Rename(path+partSuffix, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the task ended during the sync
	}
	return cmp.Or(err, files.SyncDir(filepath.Dir(path)))
}

// Input opens the stdin that was kept for a task. It returns ErrInputLost if the file is incomplete or missing.
func (j *Journal) Input(t *task.Task) (*os.File, error) {
	file, err := os.Open(j.inputOf(t))
	if errors.Is(err, fs.ErrNotExist) {
		err = state.ErrInputLost
	}
	return file, err
}

// DropInput removes the stdin that was kept for a task.
func (j *Journal) DropInput(t *task.Task) {
	j.dropInput(inputName(t.Number, t.ID))
}

// dropInput removes the incomplete file first, so that CompleteInput cannot rename it between the two removals.
func (j *Journal) dropInput(name string) {
	path := j.inputPath(name)
	_ = os.Remove(path + partSuffix)
	_ = os.Remove(path)
}

// sweepInputs removes the kept stdin of tasks that are finished or gone: the process that ended a task may have died
// before it removed the file.
func (j *Journal) sweepInputs(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(j.dir, inputsName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	const query = `SELECT EXISTS (SELECT 1 FROM tasks WHERE number = ? AND id = ? AND status IN ('PENDING', 'IN_FLIGHT'))`
	return j.write(ctx, func(c *conn.Conn) error { // a write: no task may change between the query and the removal
		for _, entry := range entries {
			name := strings.TrimSuffix(entry.Name(), partSuffix)
			number, id, _ := strings.Cut(name, ".")
			if _, err := strconv.ParseInt(number, 10, 64); err != nil {
				continue // retry did not create this file
			}
			var unfinished bool
			if err := c.Row(query, []any{number, id}, &unfinished); err != nil {
				return err
			}
			if !unfinished {
				j.dropInput(name)
			}
		}
		return nil
	})
}
