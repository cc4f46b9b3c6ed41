package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/state"
)

// Size looks at the journal's files.
func (j *Journal) Size() (s state.Size, err error) {
	if j.dir == "" {
		return s, nil // a journal that does not exist yet
	}
	if s.Database, err = fileSize(filepath.Join(j.dir, DatabaseName)); err != nil {
		return s, err
	}
	s.WAL, err = fileSize(filepath.Join(j.dir, DatabaseName+walSuffix))
	return s, err
}

// fileSize of a file that is not there is 0.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return info.Size(), nil
}

// Compact gives the room of what was removed back to the disk. It writes the whole journal anew, and others have to wait for it
// meanwhile.
func (j *Journal) Compact(ctx context.Context) error {
	return j.read(ctx, func(c *conn) error {
		if _, err := c.exec("VACUUM"); err != nil {
			return err
		}
		// Where somebody still reads the old pages, the next checkpoint does it.
		_, err := c.exec("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
}
