package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

const (
	inputsName = "stdin"
	partSuffix = ".part" // until the end of the input is in the file
)

// inputName has the task's id, too: in a directory whose journal was set aside or removed, other tasks get the same
// numbers.
func inputName(number int64, id string) string {
	return strconv.FormatInt(number, 10) + "." + id
}

func (j *Journal) inputPath(name string) string {
	return filepath.Join(j.dir, inputsName, name)
}

func (j *Journal) inputOf(t *task.Task) string {
	return j.inputPath(inputName(t.Number, t.ID))
}

// KeepInput makes the file for the task's stdin. It goes with the task: when that ends, the file does. It returns
// ErrFinished where the task has ended already: the first bytes may come as late as that.
func (j *Journal) KeepInput(t *task.Task) (*os.File, error) {
	path := j.inputOf(t) + partSuffix
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	step("input made")
	// Asked only now that the file is there: whoever ends the task after the answer finds it, and removes it.
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

// CompleteInput says that the file holds the stdin to its end. From then on a resume can use it, also after a power
// loss. Where the task ends meanwhile it gives up soon.
func (j *Journal) CompleteInput(t *task.Task, file *os.File) error {
	path := j.inputOf(t)
	dropped := func() bool {
		_, err := os.Lstat(path + partSuffix)
		return errors.Is(err, fs.ErrNotExist)
	}
	if !writeOut(file, dropped) {
		return nil
	}
	if err := file.Sync(); err != nil {
		return err
	}
	step("input synced")
	err := os.Rename(path+partSuffix, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the task has ended meanwhile
	}
	return err
}

// Input opens the stdin that was kept for a task. It returns ErrInputLost where that is not whole.
func (j *Journal) Input(t *task.Task) (*os.File, error) {
	file, err := os.Open(j.inputOf(t))
	if errors.Is(err, fs.ErrNotExist) {
		err = state.ErrInputLost
	}
	return file, err
}

// DropInput removes what was kept for a task that has ended. A write that was under way then may have made the file
// anew.
func (j *Journal) DropInput(t *task.Task) {
	j.dropInput(inputName(t.Number, t.ID))
}

// dropInput removes what was kept. The part goes first, so that it cannot be completed in between.
func (j *Journal) dropInput(name string) {
	path := j.inputPath(name)
	_ = os.Remove(path + partSuffix)
	_ = os.Remove(path)
}

// sweepLimit bounds how many of the kept inputs one step looks at.
const sweepLimit = 256

// sweepInputs removes what was kept of the stdin of tasks that have finished or are gone: whoever ended them may have
// died before it could. It comes before a prune, so that what is kept goes no later than its task.
func (j *Journal) sweepInputs(ctx context.Context) error {
	names, err := keptInputs(filepath.Join(j.dir, inputsName))
	if err != nil || len(names) == 0 {
		return err
	}
	return j.write(ctx, func(c *conn) error { // a write: nothing may change between the question and the removal
		stale, err := withoutTask(c, names)
		for _, name := range stale {
			j.dropInput(name)
		}
		return err
	})
}

// withoutTask returns those of the names that belong to no unfinished task.
func withoutTask(c *conn, names []string) (stale []string, err error) {
	for _, name := range names {
		number, id, _ := strings.Cut(name, ".")
		var unfinished bool
		const query = `SELECT status IN ('PENDING', 'IN_FLIGHT') FROM tasks WHERE number = ? AND id = ?`
		switch err := c.row(query, []any{number, id}, &unfinished); {
		case errors.Is(err, sql.ErrNoRows), err == nil && !unfinished:
			stale = append(stale, name)
		case err != nil:
			return nil, err
		}
	}
	return stale, nil
}

// keptInputs are the names of what is kept, some of them where they are many.
func keptInputs(dir string) ([]string, error) {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	entries, _ := folder.Readdirnames(sweepLimit) // io.EOF where it is empty
	var names []string
	for _, entry := range entries {
		name := strings.TrimSuffix(entry, partSuffix)
		number, _, _ := strings.Cut(name, ".")
		if _, err := strconv.ParseInt(number, 10, 64); err == nil { // else it is not ours
			names = append(names, name)
		}
	}
	return names, nil
}
