package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

// One more attempt that follows at once.
func BenchmarkRecordAndClaim(b *testing.B) {
	j := openTimed(b)
	tk := inFlight(b, j)
	b.ReportAllocs()
	for b.Loop() {
		must(b, chained(j, tk, exit(1), epoch))
	}
}

// openTimed opens a journal in a new directory, as a run does.
func openTimed(b *testing.B) *Journal {
	b.Helper()
	j, err := Open(b.Context(), b.TempDir())
	must(b, err)
	b.Cleanup(func() { must(b, j.Close()) })
	return j
}

// Each run opens the journal once.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		j, err := Open(b.Context(), dir)
		must(b, err)
		must(b, j.Close())
	}
}

// A run that succeeds at once: its task and attempt are claimed, and synced; its end is recorded.
func BenchmarkRunOfOneAttempt(b *testing.B) {
	j := openTimed(b)
	b.ReportAllocs()
	for b.Loop() {
		tk := inFlight(b, j)
		must(b, recorded(j, tk, exit(0), task.Decision{Verdict: task.VerdictSucceeded}, epoch))
	}
}

// One more attempt, where something lies between it and the one before.
func BenchmarkRecordThenClaim(b *testing.B) {
	j := openTimed(b)
	tk := inFlight(b, j)
	b.ReportAllocs()
	for b.Loop() {
		must(b, recorded(j, tk, exit(1), retryIn(0), epoch))
		must(b, claimed(j, tk, epoch))
	}
}

// open opens the journal in a new directory.
func open(t *testing.T) *Journal {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

// dump is all that stands in the tables, column by column, whatever the queries of the package make of it.
func dump(t tester, j *Journal) string {
	t.Helper()
	var lines []string
	for _, table := range []string{"tasks", "attempts", "tails"} {
		lines = append(lines, dumpColumns(t, j, table, "*")...)
	}
	return strings.Join(lines, "\n")
}

func dumpColumns(t tester, j *Journal, table, names string) []string {
	t.Helper()
	var lines []string
	for _, row := range rawRows(t, j, "SELECT "+names+" FROM "+table+" ORDER BY 1, 2") {
		lines = append(lines, fmt.Sprintf("%s %#v", table, row))
	}
	return lines
}

// integrity fails the test where SQLite finds the file damaged or a reference broken.
func integrity(t tester, j *Journal) {
	t.Helper()
	var verdict string
	must(t, j.row(context.Background(), "PRAGMA integrity_check", nil, &verdict))
	if verdict != "ok" {
		t.Fatalf("integrity_check: %s", verdict)
	}
	var broken int
	must(t, j.row(context.Background(), "SELECT count(*) FROM pragma_foreign_key_check", nil, &broken))
	if broken > 0 {
		t.Fatalf("%d attempts without a task", broken)
	}
}

// fail makes every such write fail within its transaction, as a full disk would, until the journal is closed.
func fail(t tester, j *Journal, event string) {
	t.Helper()
	_, err := rawExec(j, "CREATE TEMP TRIGGER failure BEFORE "+event+" BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
	must(t, err)
}

// parsePolicy returns the default policy with another backoff.
func parsePolicy(t tester, curve, jitter string) task.Policy {
	t.Helper()
	spec, err := backoff.Parse(curve, jitter)
	must(t, err)
	p := task.DefaultPolicy()
	p.Name, p.Backoff = cmp.Or(curve, "default"), spec
	return p
}

// rawExec runs SQL on the journal's own connection.
func rawExec(j *Journal, query string, args ...any) (changed int64, err error) {
	err = j.conn.Use(func() (err error) {
		changed, err = j.conn.Exec(query, args...)
		return err
	})
	return changed, err
}

// rawDB opens the database of a journal once more.
func rawDB(t *testing.T, j *Journal) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", dataSource(filepath.Join(j.dir, DatabaseName))+"&_txlock=immediate")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rawRows returns all rows of a query, each column as SQLite has it.
func rawRows(t tester, j *Journal, query string, args ...any) (list [][]driver.Value) {
	t.Helper()
	must(t, j.conn.Use(func() error {
		found, err := j.conn.Query(context.Background(), query, args)
		if err != nil {
			return err
		}
		defer func() { _ = found.Close() }()
		for {
			row := make([]driver.Value, len(found.Columns()))
			if err := found.Next(row); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			list = append(list, row)
		}
	}))
	return list
}

// bigVariable names a directory in which a test leaves a journal of a million attempts; bench asks for it.
const bigVariable = "RETRY_BIG_JOURNAL"

// fillBig writes tasks of so many attempts each, as if over a month: of five commands, one of them named, one that
// failed in a hundred, the last one unfinished.
func fillBig(t tester, j *Journal, tasks, attempts int, end time.Time) {
	t.Helper()
	policy, err := task.DefaultPolicy().MarshalJSON()
	must(t, err)
	step := (30 * 24 * time.Hour).Microseconds() / int64(tasks)
	from := end.UnixMicro() - int64(tasks)*step
	_, err = rawExec(j, fmt.Sprintf(`BEGIN IMMEDIATE;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d)
		INSERT INTO tasks (number, id, name, kind, status, reason, argv, directory, policy, idempotency_key, attempt_count, created_at, finished_at)
			SELECT i, format('%%08x-0000-7000-8000-%%012x', i, i), iif(i %% 5 = 0, 'nightly', NULL), 'command',
				iif(i = %[1]d, 'PENDING', iif(i %% 100 = 0, 'EXHAUSTED', 'SUCCEEDED')), NULL, CAST('job' || char(0) || (i %% 5) || char(0) AS BLOB),
				x'2F746D70', '%[3]s', 'key', %[2]d, %[4]d + i * %[5]d, iif(i = %[1]d, NULL, %[4]d + i * %[5]d + 1000 * (i %% 1000))
			FROM n;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[2]d)
		INSERT INTO attempts (task, number, started_at, duration, exit, decision, delay)
			SELECT t.number, i, t.created_at + i * 1000, 1000, i < %[2]d, iif(i < %[2]d, 'retry', 'succeeded'), iif(i < %[2]d, 1000000, NULL)
			FROM tasks t CROSS JOIN n;
		COMMIT`, tasks, attempts, policy, from, step))
	must(t, err)
}

// Not a test of anything: it makes a journal for bench, and to try things by hand.
func TestMakeABigJournal(t *testing.T) {
	dir := os.Getenv(bigVariable)
	if dir == "" {
		t.Skip(bigVariable + " names no directory")
	}
	fillBig(t, openIn(t, dir), 200_000, 5, time.Now())
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() (state.Store, error) {
		dir := t.TempDir()
		return func() (state.Store, error) {
			j, err := Open(context.Background(), dir)
			if err != nil {
				return nil, err
			}
			return checked{j, t}, nil
		}
	})
}

// checked is a journal whose file is checked before it is closed.
type checked struct {
	*Journal
	t *testing.T
}

func (c checked) Close() error {
	integrity(c.t, c.Journal)
	return c.Journal.Close()
}

// What the suite has for stores serves the tests of this one, too.
type (
	tester = storetest.Tester
	write  = storetest.Write
)

var (
	epoch       = storetest.Epoch
	interrupted = storetest.Interrupted
	succeeded   = storetest.Succeeded
	failed      = storetest.Failed
	exhausted   = storetest.Exhausted
	cancelled   = storetest.Cancelled
	newTask     = storetest.NewTask
	claimed     = storetest.Claimed
	recorded    = storetest.Recorded
	settled     = storetest.Settled
	must        = storetest.Must
	inFlight    = storetest.InFlight
	waiting     = storetest.Waiting
	exit        = storetest.Exit
	retryIn     = storetest.RetryIn
	stored      = storetest.Stored
	attempts    = storetest.Attempts
	showTask    = storetest.ShowTask
	showAttempt = storetest.ShowAttempt
	show        = storetest.Show
	showTime    = storetest.ShowTime
	refuses     = storetest.Refuses
	claiming    = storetest.Claiming
	recording   = storetest.Recording
	chained     = storetest.Chained
	chaining    = storetest.Chaining
	settling    = storetest.Settling
	cancelling  = storetest.Cancelling
	catchingUp  = storetest.CatchingUp
	apply       = storetest.Apply
)
