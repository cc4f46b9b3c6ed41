package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
)

// OpenReader opens the journal in dir to be read, beside whoever writes it, and where nothing can be written. It makes
// no journal and changes none: one of an older schema is copied, and the copy migrated. It returns ErrNoJournal where
// none is.
func OpenReader(ctx context.Context, dir string) (*Journal, error) {
	if err := CheckDriver(); err != nil {
		return nil, err
	}
	j, err := openReader(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("read the journal in %s: %w", dir, diagnose(dir, err))
	}
	return j, nil
}

// Exists reports false where OpenReader would return ErrNoJournal.
func Exists(dir string) bool {
	_, err := existing(dir)
	return !errors.Is(err, state.ErrNoJournal)
}

// OpenEmpty returns a journal without tasks, in memory: it stands for one that does not exist yet.
func OpenEmpty() (*Journal, error) {
	c, err := connect(":memory:")
	if err != nil {
		return nil, err
	}
	if err := migrate(c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &Journal{conn: c}, nil
}

func openReader(ctx context.Context, dir string) (*Journal, error) {
	if _, err := existing(dir); err != nil {
		return nil, err
	}
	if unlock, err := lock.Shared(ctx, dir); err == nil { // a directory may be searched and not read
		defer unlock()
	}
	file, err := existing(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, file: file, salt: machineSalt()}
	if err := j.openForReading(ctx); err != nil {
		_ = os.RemoveAll(j.copied)
		return nil, j.diagnose(err)
	}
	if j.owners, err = lock.OpenOwnersReadOnly(dir); err != nil {
		_ = j.Close()
		return nil, err
	}
	return j, nil
}

// existing returns ErrNoJournal for what does not exist, and for an empty file, which is a journal that was never
// finished.
func existing(dir string) (os.FileInfo, error) {
	file, err := statWhole(dir)
	if err == nil && (file == nil || file.Size() == 0) {
		err = state.NewFault(state.ErrNoJournal, "the first retry -- COMMAND makes it", "no journal is there")
	}
	return file, err
}

// openForReading reads the file in place if it can.
func (j *Journal) openForReading(ctx context.Context) error {
	path := filepath.Join(j.dir, DatabaseName)
	c, file, err := openInPlace(ctx, path)
	switch {
	case errors.Is(err, state.ErrCorrupt), errors.Is(err, state.ErrForeign), errors.Is(err, state.ErrNewer), errors.Is(err, state.ErrNoFiles), errors.Is(err, state.ErrLocked):
		return err
	case err != nil: // mostly where the index of the WAL cannot be made
		return j.openCopy(ctx, func(to string) error { return copyFiles(path, to) })
	case file.version < len(migrations):
		defer func() { _ = c.close() }()
		return j.openCopy(ctx, func(to string) error {
			_, err := c.exec("VACUUM INTO ?", to)
			return err
		})
	}
	j.conn = c
	return nil
}

// openInPlace opens a database that it cannot write. SQLite may still have to make the WAL's index beside it.
func openInPlace(ctx context.Context, path string) (*conn, identity, error) {
	var c *conn
	var file identity
	err := retryBusy(ctx, func() (err error) { // another process may be writing the index of the WAL anew
		if c, err = connect(dataSource(path) + "&mode=ro"); err != nil {
			return err
		}
		if file, err = identify(c); err != nil {
			_ = c.close()
		}
		return err
	})
	if err != nil {
		return nil, file, diagnose(filepath.Dir(path), err)
	}
	if err := file.check(); err != nil {
		_ = c.close()
		return nil, file, diagnose(filepath.Dir(path), err)
	}
	return c, file, nil
}

// openCopy opens a private copy, migrated.
func (j *Journal) openCopy(ctx context.Context, copyTo func(path string) error) (err error) {
	if j.copied, err = os.MkdirTemp("", "retry-"); err != nil {
		return err
	}
	path := filepath.Join(j.copied, DatabaseName)
	if err := copyTo(path); err != nil {
		return fmt.Errorf("copy the journal to %s: %w", j.copied, err)
	}
	j.conn, err = openDatabase(ctx, path)
	return err
}

// copyTries is how often a copy begins anew since a writer was faster.
const copyTries = 5

// copyFiles copies a database and its WAL. A pair between whose halves somebody wrote is no database: it is copied
// again.
func copyFiles(from, to string) error {
	for range copyTries {
		before := fingerprint(from)
		if err := errors.Join(copyFile(from, to), copyFile(from+walSuffix, to+walSuffix)); err != nil {
			return err
		}
		if fingerprint(from) == before {
			return nil
		}
	}
	return errors.New("it changes all the time\nhint: try again")
}

// fingerprint is what a write changes: sizes and times of the two files.
func fingerprint(path string) (stamps [4]int64) {
	for i, name := range []string{path, path + walSuffix} {
		if info, err := os.Stat(name); err == nil {
			stamps[2*i], stamps[2*i+1] = info.Size(), info.ModTime().UnixNano()
		}
	}
	return stamps
}

// copyFile makes the copy private. What does not exist is removed there.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(to)
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
