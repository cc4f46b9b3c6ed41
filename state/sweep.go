package state

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
	numbers, err := keptInputs(filepath.Join(j.dir, inputsName))
	if err != nil || len(numbers) == 0 {
		return err
	}
	stale, err := withoutTask(ctx, j.db, numbers)
	if err != nil || len(stale) == 0 {
		return err
	}
	return j.write(ctx, func(tx *sql.Tx) error {
		// Asked again: nobody can make a task of such a number now.
		stale, err := withoutTask(ctx, tx, stale)
		for _, number := range stale {
			j.dropInput(number)
		}
		return err
	})
}

// withoutTask returns those of the numbers that no unfinished task has.
func withoutTask(ctx context.Context, q querier, numbers []int64) (stale []int64, err error) {
	for _, number := range numbers {
		var unfinished bool
		const query = `SELECT status IN ('PENDING', 'IN_FLIGHT') FROM tasks WHERE number = ?`
		switch err := q.QueryRowContext(ctx, query, number).Scan(&unfinished); {
		case errors.Is(err, sql.ErrNoRows), err == nil && !unfinished:
			stale = append(stale, number)
		case err != nil:
			return nil, err
		}
	}
	return stale, nil
}

// keptInputs are the numbers of the tasks of which something is kept, some of them where they are many.
func keptInputs(dir string) ([]int64, error) {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(sweepLimit) // io.EOF where it is empty
	var numbers []int64
	for _, name := range names {
		number, err := strconv.ParseInt(strings.TrimSuffix(name, partSuffix), 10, 64)
		if err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}
