// Package sqlite keeps the journal: tasks and attempts in a SQLite file, written so that a killed run can be resumed. It decides which
// transitions of a task can be written.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
)

// ErrNoCgo says that this binary can keep no journal.
var ErrNoCgo = errors.New("this retry was built with CGO_ENABLED=0 and so without SQLite, which keeps its journal\nhint: build it with CGO_ENABLED=1 and a C compiler")

// Journal holds tasks and their attempts. It implements runner.Journal. It is safe for concurrent use.
type Journal struct {
	dir      string
	file     os.FileInfo    // of the database
	line     *line          // nil where the journal is only read
	ready    sync.WaitGroup // for the end of a command
	db       *sql.DB
	owners   *lock.Owners
	salt     uint64 // of the machine, for the phases of tasks
	policies policyTexts
	copied   string // the directory of a private copy, which goes at the end; empty for most
}

// Open opens the journal in dir, and makes both where they do not exist.
func Open(ctx context.Context, dir string) (*Journal, error) {
	if err := CheckDriver(); err != nil {
		return nil, err
	}
	if err := checkSpare(); err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
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
	if j.line, j.db, err = openDatabase(ctx, filepath.Join(dir, databaseName)); err != nil {
		_ = j.owners.Close()
		return nil, fmt.Errorf("open the journal in %s: %w", dir, j.diagnose(err))
	}
	step("journal opened")
	j.keepReserve()
	return j, nil
}

// enter makes the directory, and keeps others from setting aside what is in it.
func enter(ctx context.Context, dir string) (unlock func(), err error) {
	if err := lock.CreateDir(dir); err != nil {
		return nil, err
	}
	return lock.Shared(ctx, dir)
}

// newJournal has all of a journal but the database.
func newJournal(dir string) (*Journal, error) {
	if err := lock.CreateFiles(dir, databaseName, lock.OwnersFile); err != nil {
		return nil, err
	}
	file, err := statWhole(dir)
	if err != nil {
		return nil, err
	}
	// Before the database: Linux closes the files of a process that dies in this order, and the number of a task that was
	// never committed must be free again when the next writer comes to it.
	step("directory prepared")
	owners, err := lock.OpenOwners(dir)
	if err != nil {
		return nil, err
	}
	return &Journal{dir: dir, file: file, owners: owners, salt: machineSalt()}, nil
}

// diagnose is diagnose, and remembers which file is damaged.
func (j *Journal) diagnose(err error) error {
	err = diagnose(j.dir, err)
	var f *state.Fault
	if errors.As(err, &f) && f.File == nil {
		f.File = j.file
	}
	return err
}

// Dir returns the directory of the journal.
func (j *Journal) Dir() string {
	return j.dir
}

// Close closes the journal and lets go of every task that this process owns.
func (j *Journal) Close() error {
	j.ready.Wait()
	var err error
	if j.line != nil {
		err = j.line.close(j.db)
	} else {
		err = j.db.Close()
	}
	if j.owners != nil {
		err = errors.Join(err, j.owners.Close())
	}
	if j.copied != "" {
		err = errors.Join(err, os.RemoveAll(j.copied))
	}
	return err
}

// openDatabase waits while another process that opens the same fresh file, or closes it as the last one, is in the way.
func openDatabase(ctx context.Context, path string) (l *line, db *sql.DB, err error) {
	err = patiently(ctx, func() error {
		l, db, err = openOnce(ctx, path)
		return err
	})
	return l, db, err
}

func openOnce(ctx context.Context, path string) (*line, *sql.DB, error) {
	l, err := openLine(dataSource(path))
	if err != nil {
		return nil, nil, err
	}
	db := l.database()
	done, err := l.migrated()
	if err == nil && (!done || !inWALMode(path)) {
		err = migrate(ctx, db)
	}
	if err != nil {
		_ = l.close(db)
		return nil, nil, err
	}
	return l, db, nil
}

// dataSource is the one place for the connection's settings; the file's journal mode is migrate's. A deferred transaction
// would fail at once where it has to wait for its upgrade to a write, so every one begins immediate. SQLite's own waiting sleeps
// for up to 100 ms between two looks, and lets nobody interrupt it: patiently does it instead.
func dataSource(path string) string {
	settings := url.Values{
		"_txlock":       {"immediate"},
		"_busy_timeout": {"0"},
		"_synchronous":  {"NORMAL"},
		"_foreign_keys": {"on"},
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: settings.Encode()}
	return u.String()
}

const databaseName = "journal.db"
