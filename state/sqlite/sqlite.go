// Package sqlite is the journal: it stores tasks and attempts in a SQLite file, so that a killed run can be resumed.
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
	"sync/atomic"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
)

// CheckDriver returns an error if the binary was built without SQLite.
func CheckDriver() error { return conn.CheckDriver() }

// Version returns the version of SQLite.
func Version() string { return conn.Version() }

var _ state.Store = (*Journal)(nil)

// Journal holds tasks and their attempts in a SQLite file. It is safe for concurrent use.
type Journal struct {
	dir    string
	file   os.FileInfo // of the database
	log    os.FileInfo // of its WAL; nil: not known
	conn   *conn.Conn
	owners *lock.Owners
	salt   uint64  // differs between machines; part of a task's phase
	copied string  // the directory of a private copy, which Close removes; empty without one
	known  decoded // what rows have in common

	// SyncFirst has every new task synced before its first attempt; otherwise only tasks that need it are.
	SyncFirst   bool
	sync        func() error   // waits until what was committed survives a power loss
	syncs       sync.Map       // from task number to the func() error that waits for its sync
	background  sync.WaitGroup // of what is done while a command runs
	syncsCancel atomic.Bool    // a sync is about to begin
}

// Open opens the journal in dir. It creates both if they do not exist.
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
	j.log, _ = stat(filepath.Join(dir, DatabaseName+walSuffix))
	conn.Step("journal opened")
	j.keepReserve()
	return j, nil
}

// OpenWritable is Open for who has to write: SQLite opens a file that it may only read without an error. A run leaves
// that to its first claim, which writes in any case.
func OpenWritable(ctx context.Context, dir string) (*Journal, error) {
	j, err := Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	err = j.write(ctx, func(c *conn.Conn) error {
		_, err := c.Exec("DELETE FROM tasks WHERE false")
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the journal in %s: %w", dir, err), j.Close())
	}
	_, _ = j.writeKeptEnds(ctx, 0) // who adopts a task tries again, and fails where that does
	_ = j.shareDead(ctx)
	return j, nil
}

// enter creates the directory, and keeps other processes from setting the journal aside.
func enter(ctx context.Context, dir string) (unlock func(), err error) {
	if err := lock.CheckDescriptors(); err != nil {
		return nil, err
	}
	if err := lock.CreateDir(dir); err != nil {
		return nil, err
	}
	return lock.Shared(ctx, dir)
}

// newJournal prepares everything but the database.
func newJournal(dir string) (*Journal, error) {
	if database, err := stat(filepath.Join(dir, DatabaseName)); database == nil && err == nil {
		_ = os.Remove(filepath.Join(dir, reserveName)) // of a journal that was removed: it tells of one that is lost
	}
	if err := lock.CreateFiles(dir, DatabaseName, lock.OwnersFile); err != nil {
		return nil, err
	}
	file, err := statDatabase(dir)
	if err != nil {
		return nil, err
	}
	// The locks are opened before the database: Linux closes the files of a dead process in this order. The number of a
	// task that was not committed must be unlocked before the next writer can use it.
	conn.Step("directory prepared")
	owners, err := lock.OpenOwners(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, file: file, owners: owners, salt: machineSalt()}
	j.sync = j.syncLog
	return j, nil
}

// stat returns nil if the file does not exist.
func stat(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// statDatabase returns nil if there is no database. It refuses a WAL that SQLite would take for a leftover and
// delete: one whose database is empty, and one whose header is cut or damaged. It refuses a database without tables
// whose WAL is gone, too: there was a journal, which has left its reserve. It looks for the WAL first, since a new
// journal gets its first page before its WAL, and its reserve after that.
func statDatabase(dir string) (os.FileInfo, error) {
	path := filepath.Join(dir, DatabaseName)
	wal, err := stat(path + walSuffix)
	if err != nil {
		return nil, err
	}
	database, err := stat(path)
	if err != nil {
		return nil, err
	}
	damage := ""
	switch {
	case wal == nil || wal.Size() == 0:
		lost, err := hasLostWAL(dir)
		if err != nil || !lost {
			return database, err
		}
		damage = DatabaseName + " is empty, and its WAL is gone"
	case database == nil || database.Size() <= 1: // SQLite takes one byte for none; what is longer it reads from the WAL
		damage = DatabaseName + " is empty, and its WAL is not"
	case wal.Size() < walHeaderSize:
		damage = "the header of its WAL is cut"
	case wal.Size() > walHeaderSize && !soundWAL(path+walSuffix):
		damage = "the header of its WAL is damaged"
	default:
		return database, nil
	}
	return nil, &state.Fault{
		Kind: state.ErrCorrupt, Err: errors.New(damage), Hint: hintFor(state.ErrCorrupt, dir), Dir: dir, File: database,
	}
}

// hasLostWAL reports whether there was a journal whose WAL is gone with all of its tables. Another process may be
// making one: its WAL is there before its reserve, and its tables are in the database before its WAL is removed.
func hasLostWAL(dir string) (bool, error) {
	path := filepath.Join(dir, DatabaseName)
	reserve, err := stat(filepath.Join(dir, reserveName))
	if reserve == nil || err != nil {
		return false, err
	}
	wal, err := stat(path + walSuffix)
	if err != nil || wal != nil && wal.Size() > 0 {
		return false, err
	}
	database, err := stat(path)
	return err == nil && database != nil && hasNoTables(path, database.Size()), err
}

// diagnose also notes which file is damaged.
func (j *Journal) diagnose(err error) error {
	err = diagnose(j.dir, err)
	if f, ok := errors.AsType[*state.Fault](err); ok && f.File == nil {
		f.File = j.file
	}
	return err
}

// write runs do in a transaction. It waits for other processes' writes, for conn.BusyTimeout or until the context
// ends. On a full disk it makes room and tries again.
func (j *Journal) write(ctx context.Context, do func(*conn.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, conn.BusyTimeout)
	defer cancel()
	defer j.owners.Queue(ctx)()
	err := j.diagnose(j.conn.Transaction(ctx, do))
	if (errors.Is(err, state.ErrFull) || errors.Is(err, state.ErrFileLimit)) && j.makeRoom() {
		err = j.diagnose(j.conn.Transaction(ctx, do))
	}
	return err
}

// read runs do outside of a transaction. It waits while another process rebuilds the index of the WAL.
func (j *Journal) read(ctx context.Context, do func(*conn.Conn) error) error {
	return j.diagnose(conn.RetryBusy(ctx, func() error {
		return j.conn.Use(func() error { return do(j.conn) })
	}))
}

// row reads the first row that a query finds, or returns sql.ErrNoRows.
func (j *Journal) row(ctx context.Context, query string, args []any, to ...any) error {
	return j.read(ctx, func(c *conn.Conn) error { return c.Row(query, args, to...) })
}

// collect returns what scan makes of each row of a query.
func collect[T any](ctx context.Context, j *Journal, query string, args []any,
	scan func(conn.Scanner) (T, error)) (list []T, err error) {
	err = j.read(ctx, func(c *conn.Conn) error {
		list = nil
		return c.Each(ctx, query, args, func(row conn.Scanner) (bool, error) {
			item, err := scan(row)
			list = append(list, item)
			return true, err
		})
	})
	return list, err
}

// Dir returns the directory of the journal.
func (j *Journal) Dir() string { return j.dir }

// Close closes the journal and releases every task that this process owns.
func (j *Journal) Close() error {
	j.background.Wait()
	err := j.conn.Close()
	if j.owners != nil {
		err = errors.Join(err, j.owners.Close())
	}
	if j.copied != "" {
		err = errors.Join(err, os.RemoveAll(j.copied))
	}
	return err
}

// dataSource has the settings of a connection. SQLite itself does not wait for locks: conn.RetryBusy does.
func dataSource(path string) string {
	settings := url.Values{"_busy_timeout": {"0"}, "_synchronous": {"NORMAL"}, "_foreign_keys": {"on"}}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: settings.Encode()}
	return u.String()
}

// DatabaseName is the file in the directory that holds tasks and attempts.
const DatabaseName = "journal.db"

// diagnose gives an error of SQLite or the system its kind and hint. It returns other errors unchanged.
func diagnose(dir string, err error) error {
	if err == nil || errors.As(err, new(*state.Fault)) {
		return err
	}
	kind := conn.Kind(err)
	if kind == nil && errors.Is(err, errUnreadWAL) {
		kind = state.ErrCorrupt
	}
	if kind == nil {
		return err
	}
	return &state.Fault{Kind: kind, Err: err, Hint: hintFor(kind, dir), Dir: dir}
}

// hintFor says what to do about a fault of the journal in dir.
func hintFor(kind error, dir string) string {
	switch {
	case errors.Is(kind, state.ErrCorrupt):
		return "retry doctor --state " + dir + " says what is wrong; " +
			"retry -- COMMAND, without --require-state, sets the journal aside and begins a new one"
	case errors.Is(kind, state.ErrFull):
		return "make room on the file system of " + dir + ", or use another directory with --state"
	case errors.Is(kind, state.ErrFileLimit):
		return "raise the limit with ulimit -f, or keep no journal with --no-state"
	case errors.Is(kind, state.ErrReadOnly):
		return lock.ReadOnlyHint(dir)
	case errors.Is(kind, state.ErrLocked):
		return "retry doctor --state " + dir + " names the process that holds it"
	case errors.Is(kind, state.ErrForbidden):
		return "see who may read and write " + dir + ", or use a directory of your own with --state"
	case errors.Is(kind, state.ErrNoFiles):
		return "raise the limit with ulimit -n, or keep no journal with --no-state"
	}
	return "retry doctor --state " + dir + " tells more"
}
