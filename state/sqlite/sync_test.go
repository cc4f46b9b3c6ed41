//go:build cgo

package sqlite

import (
	"errors"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/10f93571/retry/state"
)

// What the end of an attempt takes is compiled while its command runs.
func TestTheEndIsReadyBeforeItComes(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	j.background.Wait()
	before := len(j.conn.compiled)
	must(t, recorded(j, tk, exit(0), succeeded, epoch))
	if after := len(j.conn.compiled); after != before {
		t.Errorf("%d statements were compiled for the end", after-before)
	}
}

// Each run is the first to open the journal, and reads the whole log. While its command runs it copies back what is long.
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

// What somebody still reads cannot be copied. It stays for whoever comes later.
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
	must(t, j.read(t.Context(), func(c *conn) error {
		left, err := c.shortenLog()
		if left < longLog {
			t.Errorf("%d pages are left", left)
		}
		return err
	}))
	must(t, reader.Close()) //nolint:sqlclosecheck // what follows is about the log without it
	must(t, j.shortenLogAlone())
	if pages := logPages(t, j); pages != 0 {
		t.Errorf("%d pages are left after the reader", pages)
	}
	must(t, j.read(t.Context(), func(c *conn) error {
		left, err := c.shortenLog()
		if left != 0 {
			t.Errorf("%d pages are left of none", left)
		}
		return err
	}))
}

// logPages is how many pages are in the log and not in the database.
// Where the disk is full, what has a place in the log already is enough for a write, once it was copied. Where somebody reads it, it
// was not.
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
		err = j.write(t.Context(), func(*conn) error {
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
	must(t, j.conn.use(func() error {
		pages, copied, err := j.conn.checkpoint("NOOP")
		left = pages - copied
		return err
	}))
	return left
}
