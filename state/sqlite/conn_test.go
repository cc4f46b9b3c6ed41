//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// All goroutines of a process use one connection, one after the other.
func TestOneConnectionForAll(t *testing.T) {
	j := open(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { inFlight(t, j) })
		group.Go(func() {
			if _, err := j.Unfinished(t.Context()); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if _, _, err := j.Prune(t.Context(), state.Retention{Rows: 10}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := count(t, j, "tasks"); n != 8 {
		t.Errorf("got %d tasks, want 8", n)
	}
}

// What cannot be committed is rolled back, and the next write finds no transaction open.
func TestNoTransactionIsLeftOpen(t *testing.T) {
	for name, statements := range map[string][]string{
		"a statement fails": {"INSERT INTO policies VALUES ('p', '{}', 1)", "INSERT INTO policies VALUES ('p', '{}', 1)"},
		"the commit fails":  {"PRAGMA defer_foreign_keys = on", "INSERT INTO attempts (task, number, started_at) VALUES (99, 1, 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			err := j.write(t.Context(), func(c *conn.Conn) error {
				for _, s := range statements {
					if _, err := c.Exec(s); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil {
				t.Fatal("it was committed")
			}
			inFlight(t, j)
			if p, err := j.Policy(t.Context(), "p"); p != nil || err != nil {
				t.Errorf("%v was left, %v", p, err)
			}
		})
	}
}

// A statement that is left, or one that is being compiled, would keep the files open, and the log would stay.
func TestNothingOutlivesClose(t *testing.T) {
	dir := t.TempDir()
	for range 20 {
		j, err := Open(t.Context(), dir)
		must(t, err)
		inFlight(t, j)
		must(t, j.Close())
		if _, err := os.Stat(filepath.Join(dir, DatabaseName+walSuffix)); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the log after the last one has closed: %v", err)
		}
		if err := j.write(context.Background(), func(*conn.Conn) error { return nil }); err == nil {
			t.Fatal("a closed journal was written to")
		}
	}
}

// Each run is the first to open the journal, and reads the whole log. While its command runs it copies back what is
// long.
func TestTheLogStaysShort(t *testing.T) {
	j := open(t)
	longest := 0
	for range walPages {
		tk := inFlight(t, j)
		j.background.Wait()
		must(t, recorded(j, tk, exit(0), succeeded, epoch))
		longest = max(longest, logPages(t, j))
	}
	if longest < walPages/2 || longest > 2*walPages {
		t.Errorf("the log had up to %d pages", longest)
	}
}

// A reader keeps the WAL from being copied. The next call of shortenLog after the reader copies it.
func TestALogThatCannotBeCopiedIsLeft(t *testing.T) {
	dir := t.TempDir()
	j, other := openIn(t, dir), openIn(t, dir)
	inFlight(t, j)
	reader, err := rawDB(t, other).Query("SELECT number FROM tasks")
	must(t, err)
	if !reader.Next() {
		t.Fatal(reader.Err())
	}
	for range longLog / 4 {
		inFlight(t, j)
	}
	j.background.Wait()
	j.shortenLog()
	if got := logPages(t, j); got < longLog {
		t.Errorf("got %d pages left beside a reader, want at least %d", got, longLog)
	}
	must(t, reader.Close()) //nolint:sqlclosecheck // what follows is about the log without it
	j.shortenLog()
	if got := logPages(t, j); got != 0 {
		t.Errorf("got %d pages left after the reader, want 0", got)
	}
}

// logPages is how many pages are in the log and not in the database. Where the disk is full, what has a place in the
// log already is enough for a write, once it was copied. Where somebody reads it, it was not.
func TestAFullDiskShortensTheLog(t *testing.T) {
	for _, read := range []bool{false, true} {
		dir := t.TempDir()
		j, other := openIn(t, dir), openIn(t, dir)
		reader, err := rawDB(t, other).Query("SELECT number FROM (SELECT 1 AS number UNION SELECT number FROM tasks) WHERE ?", read)
		must(t, err)
		if reader.Next() != read {
			t.Fatal(reader.Err())
		}
		inFlight(t, j)
		j.background.Wait()
		calls := 0
		err = j.write(t.Context(), func(*conn.Conn) error {
			if calls++; calls > 1 {
				return nil
			}
			return sqlite3.Error{Code: sqlite3.ErrFull}
		})
		if read && (!errors.Is(err, state.ErrFull) || calls != 1) || !read && (err != nil || calls != 2) {
			t.Errorf("read by others: %t: %v after %d tries", read, err, calls)
		}
		must(t, reader.Close()) //nolint:sqlclosecheck // the journals close first otherwise
	}
}

func logPages(t *testing.T, j *Journal) (left int) {
	t.Helper()
	must(t, j.conn.Use(func() error {
		pages, copied, err := j.conn.Checkpoint("NOOP")
		left = pages - copied
		return err
	}))
	return left
}

func TestDiagnose(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error
		hint string
	}{
		{"malformed", sqlite3.Error{Code: sqlite3.ErrCorrupt}, state.ErrCorrupt, "retry doctor --state /j"},
		{"no database", sqlite3.Error{Code: sqlite3.ErrNotADB}, state.ErrCorrupt, "retry doctor --state /j"},
		{"cut off", sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrShortRead}, state.ErrCorrupt, "retry doctor --state /j"},
		{"full", sqlite3.Error{Code: sqlite3.ErrFull}, state.ErrFull, "make room on the file system of /j"},
		{"no room for the index", sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrSHMSize}, state.ErrFull, "make room"},
		{"no room, says the system", sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, state.ErrFull, "make room"},
		{"no larger file", sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EFBIG}, state.ErrFileLimit, "raise the limit with ulimit -f"},
		{"read-only", sqlite3.Error{Code: sqlite3.ErrReadonly}, state.ErrReadOnly, "mount the file system of /j writable"},
		{"busy", sqlite3.Error{Code: sqlite3.ErrBusy}, state.ErrLocked, "retry doctor --state /j names the process"},
		{"no descriptors", sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EMFILE}, state.ErrNoFiles, "raise the limit with ulimit -n"},
		{"forbidden", sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EACCES}, state.ErrForbidden, "see who may read and write /j"},
		{"quota", &os.PathError{Op: "mkdir", Err: syscall.EDQUOT}, state.ErrFull, "make room"},
		{"read-only directory", &os.PathError{Op: "mkdir", Err: syscall.EROFS}, state.ErrReadOnly, "mount the file system"},
		{"no descriptors in all", &os.PathError{Op: "open", Err: syscall.ENFILE}, state.ErrNoFiles, "raise the limit"},
		{"forbidden file", &os.PathError{Op: "open", Err: syscall.EPERM}, state.ErrForbidden, "see who may"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := diagnose("/j", fmt.Errorf("open: %w", test.err))
			if !errors.Is(got, test.want) || !errors.Is(got, test.err) {
				t.Errorf("got %v; want %v and what it came from", got, test.want)
			}
			if text, hint, _ := strings.Cut(got.Error(), "\nhint: "); text != "open: "+test.err.Error() || !strings.HasPrefix(hint, test.hint) {
				t.Errorf("got %q; want the hint %q", got, test.hint)
			}
			if again := diagnose("/other", got); again != got { //nolint:errorlint // the very same
				t.Errorf("a second diagnosis made %v", again)
			}
		})
	}
}

// What is no fault of the journal stays as it is.
func TestDiagnoseLeavesTheRest(t *testing.T) {
	for _, err := range []error{nil, task.ErrNotOwner, state.ErrNamed, sqlite3.Error{Code: sqlite3.ErrConstraint}, errors.New("other")} {
		if got := diagnose("/j", err); got != err { //nolint:errorlint // the very same
			t.Errorf("%v became %v", err, got)
		}
	}
}

// What a worker asks for is read beside two lists, which is how many a server reads at a time.
func TestAWorkerReadsBesideLists(t *testing.T) {
	q := openQueue(t)
	begun, end := make(chan struct{}), make(chan struct{})
	var lists sync.WaitGroup
	for range 2 {
		lists.Go(func() {
			err := q.reading(t.Context(), func(*conn.Conn) error {
				begun <- struct{}{}
				<-end
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a test that waits in vain fails
	defer cancel()
	_, err := q.Waiting(ctx, state.Position{}, time.Now(), nil, 1)
	close(end)
	lists.Wait()
	must(t, err)
}

// A lock that another process holds for long is seen, without a write of one's own, and so is its end.
func TestWritable(t *testing.T) {
	q := openQueue(t)
	must(t, q.Writable(t.Context()))
	other, err := OpenWritable(t.Context(), q.Dir())
	must(t, err)
	held, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- other.write(context.Background(), func(*conn.Conn) error {
			close(held)
			<-end
			return nil
		})
	}()
	<-held
	var transactions atomic.Int32
	q.Observe = func(time.Duration, time.Duration) { transactions.Add(1) }
	testkit.Eventually(t, "the lock is seen", func() bool { // the first look holds for a second
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		return errors.Is(q.Writable(ctx), state.ErrLocked)
	})
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := q.Writable(ctx); !errors.Is(err, state.ErrLocked) {
			t.Errorf("got %v, want %v", err, state.ErrLocked)
		}
		cancel()
	}
	close(end)
	must(t, <-ended)
	must(t, other.Close())
	testkit.Eventually(t, "it is writable again", func() bool { return q.Writable(t.Context()) == nil })
	if n := transactions.Load(); n > 5 {
		t.Errorf("got %d transactions for a hundred who asked, want those of a look", n)
	}
}
