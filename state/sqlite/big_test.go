package sqlite

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

// bigVariable names a directory in which a test leaves a journal of a million attempts; bench asks for it.
const bigVariable = "RETRY_BIG_JOURNAL"

// fillBig writes tasks of so many attempts each, as if over a month: of five commands, one of them named, one that failed in a
// hundred, the last one unfinished.
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
