// Package sqlite keeps the journal: tasks and attempts in a SQLite file, written so that a killed run can be resumed.
// It decides which transitions of a task can be written.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
)

// ErrNoCgo says that this binary can keep no journal.
var ErrNoCgo = errors.New("this retry was built with CGO_ENABLED=0 and so without SQLite, which keeps its journal\nhint: build it with CGO_ENABLED=1 and a C compiler")

var _ state.Store = (*Journal)(nil)

// Journal holds tasks and their attempts in a SQLite file. It is safe for concurrent use.
type Journal struct {
	dir      string
	file     os.FileInfo // of the database
	conn     *conn
	owners   *lock.Owners
	salt     uint64 // of the machine, for the phases of tasks
	policies policyTexts
	copied   string // the directory of a private copy, which goes at the end; empty for most

	// SyncFirst has every new task synced before its first attempt starts; else only those are for which it matters.
	SyncFirst  bool
	sync       func() error   // waits until what was committed survives a power loss
	syncs      sync.Map       // task number to the chan error of its sync
	background sync.WaitGroup // what is done while a command runs
}

// Open opens the journal in dir, and makes both where they do not exist.
func Open(ctx context.Context, dir string) (*Journal, error) {
	if err := CheckDriver(); err != nil {
		return nil, err
	}
	unlock, err := enter(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", diagnose(dir, err))
	}
	defer unlock()
	j, err := newJournal(dir)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", diagnose(dir, err))
	}
	if j.conn, err = openDatabase(ctx, filepath.Join(dir, DatabaseName)); err != nil {
		_ = j.owners.Close()
		return nil, fmt.Errorf("open the journal in %s: %w", dir, j.diagnose(err))
	}
	step("journal opened")
	j.keepReserve()
	return j, nil
}

// enter makes the directory, and keeps others from setting aside what is in it.
func enter(ctx context.Context, dir string) (unlock func(), err error) {
	if err := lock.CheckDescriptors(); err != nil {
		return nil, err
	}
	if err := lock.CreateDir(dir); err != nil {
		return nil, err
	}
	return lock.Shared(ctx, dir)
}

// newJournal has all of a journal but the database.
func newJournal(dir string) (*Journal, error) {
	if err := lock.CreateFiles(dir, DatabaseName, lock.OwnersFile); err != nil {
		return nil, err
	}
	file, err := statWhole(dir)
	if err != nil {
		return nil, err
	}
	// Before the database: Linux closes the files of a process that dies in this order, and the number of a task that
	// was never committed must be free again when the next writer comes to it.
	step("directory prepared")
	owners, err := lock.OpenOwners(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, file: file, owners: owners, salt: machineSalt()}
	j.sync = j.syncLog
	return j, nil
}

// statDatabase returns nil where there is none.
func statDatabase(dir string) (os.FileInfo, error) { return statIn(dir, DatabaseName) }

func statIn(dir, name string) (os.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// statWhole is statDatabase, and refuses a WAL whose database is empty: SQLite would take it for a leftover and delete
// it. It asks for the WAL first, since a fresh journal gets its first page before its WAL.
func statWhole(dir string) (os.FileInfo, error) {
	wal, err := statIn(dir, DatabaseName+walSuffix)
	if err != nil {
		return nil, err
	}
	database, err := statDatabase(dir)
	if err != nil || wal == nil || wal.Size() == 0 || database != nil && database.Size() > 0 {
		return database, err
	}
	return database, &state.Fault{
		Kind: state.ErrCorrupt, Err: fmt.Errorf("%s is empty, and its WAL is not", DatabaseName),
		Hint: hintFor(state.ErrCorrupt, dir), Dir: dir, File: database,
	}
}

// diagnose calls the function diagnose and also stores which file is damaged.
func (j *Journal) diagnose(err error) error {
	err = diagnose(j.dir, err)
	var f *state.Fault
	if errors.As(err, &f) && f.File == nil {
		f.File = j.file
	}
	return err
}

// write runs do in a transaction. It waits for the other processes' writes, for busyTimeout or until the context ends.
// Where the disk is full it tries once more after it has made room.
func (j *Journal) write(ctx context.Context, do func(*conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	defer j.owners.Queue(ctx)()
	err := j.diagnose(j.conn.transaction(ctx, do))
	if (errors.Is(err, state.ErrFull) || errors.Is(err, state.ErrFileLimit)) && j.makeRoom() {
		err = j.diagnose(j.conn.transaction(ctx, do))
	}
	return err
}

// read runs do outside of a transaction. It waits while another process writes the index of the WAL anew.
func (j *Journal) read(ctx context.Context, do func(*conn) error) error {
	return j.diagnose(retryBusy(ctx, func() error {
		return j.conn.use(func() error { return do(j.conn) })
	}))
}

// row reads the first row that a query finds, or returns sql.ErrNoRows.
func (j *Journal) row(ctx context.Context, query string, args []any, to ...any) error {
	return j.read(ctx, func(c *conn) error { return c.row(query, args, to...) })
}

// collect returns what scan makes of each row of a query.
func collect[T any](ctx context.Context, j *Journal, query string, args []any, scan func(scanner) (T, error)) (list []T, err error) {
	err = j.read(ctx, func(c *conn) error {
		list = nil
		return c.each(ctx, query, args, func(row scanner) (bool, error) {
			item, err := scan(row)
			list = append(list, item)
			return true, err
		})
	})
	return list, err
}

// Dir returns the directory of the journal.
func (j *Journal) Dir() string {
	return j.dir
}

// Close closes the journal and gives up every task that this process owns.
func (j *Journal) Close() error {
	j.background.Wait()
	err := j.conn.close()
	if j.owners != nil {
		err = errors.Join(err, j.owners.Close())
	}
	if j.copied != "" {
		err = errors.Join(err, os.RemoveAll(j.copied))
	}
	return err
}

// dataSource is the one place for a connection's settings; migrate sets the file's journal mode. SQLite's own waiting
// is off, since retryBusy waits.
func dataSource(path string) string {
	settings := url.Values{
		"_busy_timeout": {"0"},
		"_synchronous":  {"NORMAL"},
		"_foreign_keys": {"on"},
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: settings.Encode()}
	return u.String()
}

// DatabaseName is the file in the directory that holds tasks and attempts.
const DatabaseName = "journal.db"
