//go:build cgo

package state

import "testing"

// What the end of an attempt takes is compiled while its command runs.
func TestTheEndIsReadyBeforeItComes(t *testing.T) {
	j := open(t)
	task := inFlight(t, j)
	j.ready.Wait()
	before := len(j.line.compiled)
	must(t, recorded(j, task, exit(0), succeeded, epoch))
	if after := len(j.line.compiled); after != before {
		t.Errorf("%d statements were compiled for the end", after-before)
	}
}

// Each run is the first to open the journal, and reads the whole log. While its command runs it copies back what is long.
func TestTheLogStaysShort(t *testing.T) {
	j := open(t)
	longest := int64(0)
	for range walPages {
		task := inFlight(t, j)
		j.ready.Wait()
		must(t, recorded(j, task, exit(0), succeeded, epoch))
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
	reader, err := other.db.Query("SELECT number FROM tasks")
	must(t, err)
	if !reader.Next() {
		t.Fatal(reader.Err())
	}
	for range longLog / 4 {
		inFlight(t, j)
	}
	j.ready.Wait()
	must(t, j.line.use(j.db, func(l *line) error {
		left, err := l.copyBack()
		if left < longLog {
			t.Errorf("%d pages are left", left)
		}
		return err
	}))
	must(t, reader.Close()) //nolint:sqlclosecheck // what follows is about the log without it
	must(t, j.copyAlone())
	if pages := logPages(t, j); pages != 0 {
		t.Errorf("%d pages are left after the reader", pages)
	}
	must(t, j.line.use(j.db, func(l *line) error {
		left, err := l.copyBack()
		if left != 0 {
			t.Errorf("%d pages are left of none", left)
		}
		return err
	}))
}

// logPages is how many pages are in the log and not in the database.
func logPages(t *testing.T, j *Journal) int64 {
	t.Helper()
	var busy, pages, copied integer
	must(t, j.first(t.Context(), "PRAGMA wal_checkpoint(NOOP)", nil, &busy, &pages, &copied))
	return pages.Int64 - copied.Int64
}
