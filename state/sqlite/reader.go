package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
)

// OpenReader opens the journal in dir for reading, also in a read-only directory. It creates no journal, and changes
// none but for the ends that are kept beside it: one of an older schema is copied, and the copy migrated. It returns
// ErrNoJournal if there is none.
func OpenReader(ctx context.Context, dir string) (*Journal, error) {
	if err := CheckDriver(); err != nil {
		return nil, err
	}
	writeKept(ctx, dir)
	j, err := openReader(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("read the journal in %s: %w", dir, diagnose(dir, err))
	}
	return j, nil
}

// keptPatience is how long a reader waits to write the ends that are kept beside the journal.
const keptPatience = 100 * time.Millisecond

// writeKept writes the ends that are kept beside the journal, if there are any and it can be written by now: a reader
// would show those tasks as interrupted.
func writeKept(ctx context.Context, dir string) {
	kept, _ := filepath.Glob(filepath.Join(dir, endPrefix+"*"))
	if len(kept) == 0 || !Exists(dir) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keptPatience)
	defer cancel()
	if j, err := OpenWritable(ctx, dir); err == nil {
		_ = j.Close()
	}
}

// Exists reports false where OpenReader would return ErrNoJournal.
func Exists(dir string) bool {
	_, err := existing(dir)
	return !errors.Is(err, state.ErrNoJournal)
}

// OpenEmpty returns a journal without tasks, in memory, in place of one that does not exist yet.
func OpenEmpty() (*Journal, error) {
	c, err := conn.Open(":memory:")
	if err != nil {
		return nil, err
	}
	if err := migrate(c, ""); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Journal{conn: c}, nil
}

func openReader(ctx context.Context, dir string) (*Journal, error) {
	if _, err := existing(dir); err != nil {
		return nil, err
	}
	if unlock, err := lock.Shared(ctx, dir); err == nil { // without the right to list the directory there is no lock
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

// existing returns ErrNoJournal if there is no database or an empty one, which is a journal that was never completed.
func existing(dir string) (os.FileInfo, error) {
	file, err := statDatabase(dir)
	if err == nil && (file == nil || file.Size() == 0) {
		err = state.NewFault(state.ErrNoJournal, "the first retry -- COMMAND makes it", "no journal is there")
	}
	return file, err
}

// openForReading opens the file in place if possible, else a private copy, which is migrated.
func (j *Journal) openForReading(ctx context.Context) error {
	path := filepath.Join(j.dir, DatabaseName)
	c, version, err := openInPlace(ctx, path)
	err = diagnose(j.dir, err)
	for _, kind := range []error{state.ErrCorrupt, state.ErrForeign, state.ErrNewer, state.ErrNoFiles, state.ErrLocked} {
		if errors.Is(err, kind) {
			return err
		}
	}
	if err == nil && version == len(migrations) {
		j.conn = c
		return nil
	}
	if err == nil {
		_ = c.Close() // before the copy: closing another descriptor of the file would drop SQLite's locks
	}
	if j.copied, err = os.MkdirTemp("", "retry-"); err != nil {
		return err
	}
	to := filepath.Join(j.copied, DatabaseName)
	if err := copyFiles(path, to); err != nil {
		return fmt.Errorf("copy the journal to %s: %w", j.copied, err)
	}
	j.conn, err = openDatabase(ctx, to)
	return err
}

// openInPlace opens a database that is only read. It fails if SQLite cannot create the index of the WAL beside it.
func openInPlace(ctx context.Context, path string) (c *conn.Conn, version int, err error) {
	err = conn.RetryBusy(ctx, func() error {
		if c, err = conn.Open(dataSource(path) + "&mode=ro"); err != nil {
			return err
		}
		file, err := identify(c)
		if err != nil {
			_ = c.Close()
		}
		version = file.version
		return err
	})
	return c, version, err
}

// copyTries is how often a copy is made again because a writer changed the files meanwhile.
const copyTries = 5

// copyFiles copies a database and its WAL. If a process wrote to them meanwhile, the two do not fit, and are copied
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

// fingerprint is what a write changes: the sizes and times of the two files.
func fingerprint(path string) (stamps [4]int64) {
	for i, name := range []string{path, path + walSuffix} {
		if info, err := os.Stat(name); err == nil {
			stamps[2*i], stamps[2*i+1] = info.Size(), info.ModTime().UnixNano()
		}
	}
	return stamps
}

// copyFile makes a private copy. If there is nothing to copy, it removes an earlier copy.
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
