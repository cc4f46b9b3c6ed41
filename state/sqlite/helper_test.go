package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/task"
)

// epoch has nanoseconds, which the journal drops.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// tester is what a test, a fuzz target and a rapid check have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Fatal(args ...any)
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

// Ids are unique among the processes of a test, which process ids are not for long.
var (
	thisProcess = rand.Uint32()
	lastID      atomic.Int64
)

// newTask returns a task that no journal knows yet.
func newTask() *task.Task {
	id := fmt.Sprintf("%08x-0000-7000-8000-%012x", thisProcess, lastID.Add(1))
	return &task.Task{
		ID: id, Kind: task.KindCommand, Command: []string{"false"}, Directory: "/tmp", Policy: task.DefaultPolicy(),
		IdempotencyKey: "key of " + id, CreatedAt: epoch, Status: task.Pending, History: task.History{Began: epoch},
	}
}

// claimed does what the runner does: it claims the next attempt, and moves the task where that succeeds.
func claimed(j *Journal, t *task.Task, now time.Time) error {
	if err := j.Claim(context.Background(), t, now); err != nil {
		return err
	}
	t.Status, t.Reason, t.NextAttemptAt = task.InFlight, "", time.Time{}
	t.AttemptCount++
	return nil
}

// atOnce is the decision that the next attempt follows at once.
var atOnce = task.Decision{Verdict: task.VerdictRetry}

// chained ends the attempt in flight and begins the next one, in one write.
func chained(j *Journal, t *task.Task, o task.Outcome, now time.Time) error {
	moved, a := *t, task.Attempt{Number: t.AttemptCount, StartedAt: epoch, Outcome: o, Decision: atOnce}
	moved.ApplyDecision(a, now)
	if err := j.RecordAndClaim(context.Background(), &moved, a, now); err != nil {
		return err
	}
	moved.Status, moved.Reason, moved.NextAttemptAt = task.InFlight, "", time.Time{}
	moved.AttemptCount++
	*t = moved
	return nil
}

// recorded ends the attempt in flight. A writer that is refused goes on with a task that never moved.
func recorded(j *Journal, t *task.Task, o task.Outcome, d task.Decision, now time.Time) error {
	moved, a := *t, task.Attempt{Number: t.AttemptCount, StartedAt: epoch, Outcome: o, Decision: d}
	moved.ApplyDecision(a, now)
	if err := j.Record(context.Background(), &moved, a); err != nil {
		return err
	}
	*t = moved
	return nil
}

func settled(j *Journal, t *task.Task, d task.Decision, now time.Time) error {
	moved := *t
	moved.Move(d, now)
	if err := j.Settle(context.Background(), &moved, d); err != nil {
		return err
	}
	*t = moved
	return nil
}

// must fails the test on an error.
func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inFlight returns a new task with its first attempt in flight.
func inFlight(t tester, j *Journal) *task.Task {
	t.Helper()
	tk := newTask()
	must(t, claimed(j, tk, epoch))
	return tk
}

// waiting returns a new task that waits for its second attempt.
func waiting(t tester, j *Journal) *task.Task {
	t.Helper()
	tk := inFlight(t, j)
	must(t, recorded(j, tk, exit(1), retryIn(time.Minute), epoch))
	return tk
}

func exit(code int) task.Outcome { return task.Outcome{Exit: code, Duration: time.Second} }

func retryIn(d time.Duration) task.Decision {
	return task.Decision{Verdict: task.VerdictRetry, Delay: d}
}

// stored reads a task back by its id.
func stored(t tester, j *Journal, id string) *task.Task {
	t.Helper()
	tk, err := j.Find(context.Background(), id)
	must(t, err)
	return tk
}

func attempts(t tester, j *Journal, number int64) []task.Attempt {
	t.Helper()
	list, err := j.Attempts(context.Background(), number)
	must(t, err)
	return list
}

// showTask writes what the journal has to remember of a task, so that two can be compared and told apart by eye.
func showTask(t *task.Task) string {
	return fmt.Sprintf("%d %s name=%q env=%q %s %q in %q key=%q created %s requeued %s after %d | %s %q attempt %d, finished %s, next %s",
		t.Number, t.ID, t.Name, t.Environment, t.Kind, t.Command, t.Directory, t.IdempotencyKey, showTime(t.CreatedAt), showTime(t.RequeuedAt), t.RequeuedAfter,
		t.Status, t.Reason, t.AttemptCount, showTime(t.FinishedAt), showTime(t.NextAttemptAt))
}

func showAttempt(a task.Attempt) string {
	o, d := a.Outcome, a.Decision
	return fmt.Sprintf("#%d at %s: exit %d signal %q error %q message %q took %s | %q delay %s shortened %v",
		a.Number, showTime(a.StartedAt), o.Exit, o.Signal, o.Error, o.Message, o.Duration.Truncate(time.Microsecond),
		d.Verdict, d.Delay.Truncate(time.Microsecond), d.Shortened)
}

func showTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000")
}

func show(tk *task.Task, attempts []task.Attempt) string {
	lines := []string{showTask(tk)}
	for _, a := range attempts {
		lines = append(lines, showAttempt(a))
	}
	return strings.Join(lines, "\n")
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
	err = j.conn.use(func() (err error) {
		changed, err = j.conn.exec(query, args...)
		return err
	})
	return changed, err
}

// rawDB opens the database of a journal once more.
func rawDB(t *testing.T, j *Journal) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", dataSource(filepath.Join(j.dir, databaseName))+"&_txlock=immediate")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rawRows returns all rows of a query, each column as SQLite has it.
func rawRows(t tester, j *Journal, query string, args ...any) (list [][]driver.Value) {
	t.Helper()
	must(t, j.conn.use(func() error {
		found, err := j.conn.query(context.Background(), query, args)
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
