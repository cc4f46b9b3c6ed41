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
)

// sweepLimit bounds how many of the kept inputs one step looks at.
const sweepLimit = 256

// sweepInputs removes what was kept of the stdin of tasks that have finished or are gone: whoever ended them may have died before
// it could. It comes before a prune, so that what is kept goes no later than its task.
func (j *Journal) sweepInputs(ctx context.Context) error {
	names, err := keptInputs(filepath.Join(j.dir, inputsName))
	if err != nil || len(names) == 0 {
		return err
	}
	var stale []string
	err = j.read(ctx, func(c *conn) (err error) {
		stale, err = withoutTask(c, names)
		return err
	})
	if err != nil || len(stale) == 0 {
		return err
	}
	return j.write(ctx, func(c *conn) error {
		stale, err := withoutTask(c, stale) // asked again, now that nothing changes
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
