package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

// Every connection has its settings; a misspelt one would be ignored in silence.
func TestSettings(t *testing.T) {
	for _, name := range []string{
		"plain", "with space", "what?", "a#b", "100%", "%41", "a&_txlock=deferred", "a=b+c;d", "?_busy_timeout=1", "ü", "'quoted\"", "new\nline", "file:x",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			j := openIn(t, dir)
			for pragma, want := range map[string]string{
				"journal_mode": "wal", "synchronous": "1", "foreign_keys": "1", "busy_timeout": "0",
				"application_id": fmt.Sprint(0x72747279), "user_version": fmt.Sprint(len(migrations)),
			} {
				var got string
				if err := j.row(context.Background(), "PRAGMA "+pragma, nil, &got); err != nil || got != want {
					t.Errorf("%s is %q (%v), not %q", pragma, got, err, want)
				}
			}
			inFlight(t, j)
			var file string
			must(t, j.row(context.Background(), "SELECT file FROM pragma_database_list WHERE name = 'main'", nil, &file))
			if want := filepath.Join(dir, DatabaseName); file != want {
				t.Errorf("SQLite wrote to %q, not %q", file, want)
			}
			if info, err := os.Stat(filepath.Join(dir, DatabaseName)); err != nil || info.Size() == 0 {
				t.Errorf("nothing was written: %v", err)
			}
		})
	}
}

// The file says what it is, to file(1) as well: the offsets are those of SQLite's file format.
func TestTheFileIsMarkedAsOurs(t *testing.T) {
	dir := closedJournal(t)
	header := contents(t, dir)[:100]
	if id := header[68:72]; string(id) != "rtry" {
		t.Errorf("application id %q", id)
	}
	if version := binary.BigEndian.Uint32(header[60:64]); int(version) != len(migrations) {
		t.Errorf("user version %d", version)
	}
}

// closedJournal returns the directory of a journal that holds a task and that nobody has open.
func closedJournal(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j, err := Open(t.Context(), dir)
	must(t, err)
	inFlight(t, j)
	must(t, j.Close())
	return dir
}

func contents(t *testing.T, dir string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, DatabaseName))
	must(t, err)
	return data
}

func TestWhatWasWrittenIsThereAfterReopening(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(t.Context(), dir)
	must(t, err)
	tk := waiting(t, j)
	before := dump(t, j)
	must(t, j.Close())
	j = openIn(t, dir)
	if after := dump(t, j); after != before {
		t.Errorf("got\n%s\nwant\n%s", after, before)
	}
	apply(t, j, tk, claiming(), recording(succeeded))
}

// What a process that died between two steps leaves behind.
func TestAnEmptyFileBecomesAJournal(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600))
	j := openIn(t, dir)
	inFlight(t, j)
	integrity(t, j)
}

// An attempt without its task cannot be written.
func TestReferencesAreKept(t *testing.T) {
	j := open(t)
	if _, err := rawExec(j, "INSERT INTO attempts (task, number, started_at) VALUES (99, 1, 0)"); err == nil {
		t.Error("an attempt of no task was written")
	}
}

// execute runs SQL on the database of a directory, as another program would.
func execute(t *testing.T, dir, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, DatabaseName))
	must(t, err)
	defer func() { must(t, db.Close()) }()
	_, err = db.Exec(statements)
	must(t, err)
}

// What is not ours is refused, and stays as it is to the byte.
func TestAnotherProgramsDatabaseIsRefused(t *testing.T) {
	for name, statements := range map[string]string{
		"with tables":                "CREATE TABLE notes (text); INSERT INTO notes VALUES ('dear diary')",
		"with tables and a version":  "CREATE TABLE notes (text); PRAGMA user_version = 1",
		"marked, with tables":        "CREATE TABLE notes (text); PRAGMA application_id = 0x0f055112",
		"marked, without tables":     "PRAGMA application_id = 0x0f055112",
		"a version, without tables":  "PRAGMA user_version = 1",
		"a version that none can be": "PRAGMA application_id = 0x72747279; PRAGMA user_version = -1",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			execute(t, dir, statements)
			checkUntouched(t, dir, "journal.db is a database of another program\nhint: use another directory with --state")
		})
	}
}

func checkUntouched(t *testing.T, dir string, wants ...string) {
	t.Helper()
	before := contents(t, dir)
	j, err := Open(t.Context(), dir)
	if err == nil {
		_ = j.Close()
		t.Fatal("opened")
	}
	for _, want := range append(wants, dir) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwithout %q", err, want)
		}
	}
	if !bytes.Equal(contents(t, dir), before) {
		t.Error("the file was changed")
	}
}

func TestANewerJournalIsRefused(t *testing.T) {
	dir := closedJournal(t)
	newer := len(migrations) + 1
	execute(t, dir, fmt.Sprintf("PRAGMA user_version = %d", newer))
	checkUntouched(t, dir, fmt.Sprintf("written by a newer retry (schema %d, this one knows %d)\nhint: upgrade retry", newer, newer-1))
}

func TestWhatIsNoDatabaseIsAnError(t *testing.T) {
	journal := contents(t, closedJournal(t))
	for name, data := range map[string][]byte{
		"text":                bytes.Repeat([]byte("dear diary\n"), 1000),
		"zeros":               make([]byte, 8192),
		"half a header":       journal[:50],
		"a header, then text": append(bytes.Clone(journal[:16]), bytes.Repeat([]byte("x"), 8192)...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, DatabaseName), data, 0o600))
			checkUntouched(t, dir)
		})
	}
}

// Damage further in shows at the first use, as an error.
func TestADamagedJournalIsAnError(t *testing.T) {
	journal := contents(t, closedJournal(t))
	damaged := bytes.Clone(journal)
	for i := 4096; i < len(damaged); i++ {
		damaged[i] = 0xa5
	}
	for name, data := range map[string][]byte{"cut after a page": journal[:4096], "overwritten after a page": damaged} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, DatabaseName), data, 0o600))
			j, err := Open(t.Context(), dir)
			if err != nil {
				return // better still
			}
			defer func() { _ = j.Close() }()
			if err := claimed(j, newTask(), epoch); err == nil {
				t.Error("written to")
			}
		})
	}
}

// withStep adds a migration for the time of a test.
func withStep(t *testing.T, step string) {
	t.Helper()
	known := migrations
	migrations = slices.Concat(known, []string{step})
	t.Cleanup(func() { migrations = known })
}

const nextStep = "ALTER TABLE tasks ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'"

func version(t *testing.T, j *Journal) (version int) {
	t.Helper()
	must(t, j.row(context.Background(), "PRAGMA user_version", nil, &version))
	return version
}

func TestAMigrationKeepsWhatIsThere(t *testing.T) {
	dir := closedJournal(t)
	released := len(migrations)
	withStep(t, nextStep)
	j := openIn(t, dir)
	if got := version(t, j); got != released+1 {
		t.Errorf("version %d", got)
	}
	var colour string
	must(t, j.row(context.Background(), "SELECT colour FROM tasks WHERE number = 1", nil, &colour))
	if n := count(t, j, "tasks"); n != 1 || colour != "blue" {
		t.Errorf("got %d tasks of colour %q, want 1 of blue", n, colour)
	}
	inFlight(t, openIn(t, dir)) // a second opening has nothing left to do
}

// Where a later step fails the earlier ones are undone, so that the next retry finds what the last one left.
func TestAFailedMigrationChangesNothing(t *testing.T) {
	dir := closedJournal(t)
	t.Run("fails", func(t *testing.T) {
		withStep(t, nextStep)
		withStep(t, "ALTER TABLE nowhere ADD COLUMN x")
		checkUntouched(t, dir, "migrate the journal: ")
	})
	j := openIn(t, dir)
	inFlight(t, j)
	if got := version(t, j); got != len(migrations) {
		t.Errorf("version %d", got)
	}
}

// A journal that came back by way of VACUUM INTO has lost its mode, and gets it again.
func TestAJournalGetsItsModeAgain(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	inFlight(t, j)
	restored := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(restored, 0o700))
	_, err := rawExec(j, "VACUUM INTO ?", filepath.Join(restored, DatabaseName))
	must(t, err)
	must(t, os.Chmod(filepath.Join(restored, DatabaseName), 0o600))
	again := openIn(t, restored)
	inFlight(t, again)
	var mode string
	must(t, again.row(context.Background(), "PRAGMA journal_mode", nil, &mode))
	if mode != "wal" {
		t.Errorf("the mode is %q", mode)
	}
}

// oldPolicy is a policy as the first schema's retry wrote it.
const oldPolicy = `{"name":"default","attempts":5,"backoff":"exp:1s..1m","jitter":"phase","timeout_ms":null,"kill_after_ms":5000,` +
	`"budget_ms":null,"reset_after_ms":null,"consecutive":1,"retry_on":[],"stop_on":[],"success_on":[]}`

// oldRows are what a journal of the first schema can hold: a task of each status, an attempt of each kind of end, each
// column filled at least once, bytes that are no UTF-8.
const oldRows = `
	INSERT INTO tasks (number, id, parent, name, kind, status, reason, argv, directory, policy, idempotency_key, attempt_count, created_at, finished_at, next_attempt_at) VALUES
		(1, 'waits', NULL, NULL, 'command', 'PENDING', NULL, x'66616C736500', x'2F746D70', :policy, 'k1', 2, 1767323045678901, NULL, 1767323105678901),
		(2, 'runs', 'waits', 'nightly', 'command', 'IN_FLIGHT', NULL, x'6100FF0000', x'2FFF', :policy, 'k2', 1, 1767323045678902, NULL, NULL),
		(3, 'succeeded', NULL, '', 'command', 'SUCCEEDED', NULL, x'', x'', :policy, '', 2, -1, 1767323045678903, NULL),
		(5, 'exhausted', NULL, NULL, 'command', 'EXHAUSTED', 'attempts', x'00', x'2F', :policy, 'k5', 1, 0, 1, NULL),
		(6, 'failed', NULL, NULL, 'command', 'FAILED', 'not eligible', x'6E6F00', x'2F', :policy, 'k6', 1, 0, 1, NULL),
		(7, 'cancelled', NULL, NULL, 'command', 'CANCELLED', 'cancelled', x'6100', x'2F', :policy, 'k7', 1, 0, 1, NULL),
		(9, 'stopped', NULL, NULL, 'command', 'PENDING', NULL, x'6100', x'2F', :policy, 'k9', 1, 0, NULL, 5);
	INSERT INTO attempts (task, number, started_at, duration, exit, signal, error, message, decision, delay, shortened) VALUES
		(1, 1, 1767323045678901, NULL, NULL, NULL, NULL, 'retry itself was killed', 'interrupted', NULL, 0),
		(1, 2, 1767323045678902, 1500000, 143, 'SIGTERM', 'timeout', CAST(x'FF1B' AS TEXT), 'retry', 60000000, 1),
		(2, 1, 1767323045678903, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0),
		(3, 1, 0, 1, 1, NULL, NULL, NULL, 'retry', 0, 0), (3, 2, 0, 1, 0, NULL, NULL, NULL, 'succeeded', NULL, 0),
		(5, 1, 0, 1, 1, NULL, NULL, NULL, 'exhausted', NULL, 0),
		(6, 1, 0, 1, 127, NULL, 'not found', 'no: command not found', 'failed', NULL, 0),
		(7, 1, 0, NULL, NULL, NULL, NULL, NULL, 'cancelled', NULL, 0),
		(9, 1, 0, 9, 143, 'SIGTERM', NULL, NULL, 'interrupted', NULL, 0);`

// The columns that the first schema had.
const (
	oldTaskColumns    = "number, id, parent, name, kind, status, reason, argv, directory, policy, idempotency_key, attempt_count, created_at, finished_at, next_attempt_at"
	oldAttemptColumns = "task, number, started_at, duration, exit, signal, error, message, decision, delay, shortened"
)

// makeOldJournal makes a journal as the first schema's retry left it, by the first migration alone.
func makeOldJournal(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600))
	execute(t, dir, migrations[0]+fmt.Sprintf(";PRAGMA journal_mode = WAL; PRAGMA application_id = %d; PRAGMA user_version = 1;", applicationID)+
		strings.ReplaceAll(oldRows, ":policy", "'"+oldPolicy+"'"))
	return dir
}

// oldDump is all that stands in the columns of the first schema.
func oldDump(t *testing.T, j *Journal) string {
	t.Helper()
	lines := slices.Concat(dumpColumns(t, j, "tasks", oldTaskColumns), dumpColumns(t, j, "attempts", oldAttemptColumns))
	return strings.Join(lines, "\n")
}

// dumpOldJournal reads a journal that nobody has migrated yet.
func dumpOldJournal(t *testing.T, dir string) string {
	t.Helper()
	c, err := conn.Open(dataSource(filepath.Join(dir, DatabaseName)))
	must(t, err)
	defer func() { must(t, c.Close()) }()
	return oldDump(t, &Journal{conn: c})
}

// A released migration is never edited: journals have taken it already.
func TestReleasedMigrationsAreAsTheyWere(t *testing.T) {
	for i, want := range []string{"d155a063", "b811bcd7", "e12652c0", "f2c2e278", "09cdec22", "b8d915cb"} {
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(migrations[i])))[:8]; got != want {
			t.Errorf("migration %d is now %s, was %s", i+1, got, want)
		}
	}
}

func TestASchema1JournalIsMigratedWithNothingLost(t *testing.T) {
	dir := makeOldJournal(t)
	before := dumpOldJournal(t, dir)
	if n := strings.Count(before, "\n") + 1; n != 16 {
		t.Fatalf("the old journal has %d rows", n)
	}
	j := openIn(t, dir)
	if after := oldDump(t, j); after != before {
		t.Errorf("got\n%s\nwant\n%s", after, before)
	}
	if got := version(t, j); got != len(migrations) {
		t.Errorf("schema %d", got)
	}
	integrity(t, j)
	if tails := dumpColumns(t, j, "tails", "*"); len(tails) > 0 {
		t.Errorf("tails out of nothing: %q", tails)
	}
	again := openIn(t, dir) // a second opening has nothing left to do
	if after := oldDump(t, again); after != before {
		t.Errorf("after another opening\n%s\nwant\n%s", after, before)
	}
}

// What was read from an old journal is what its retry would have read.
func TestASchema1JournalIsRead(t *testing.T) {
	j := openIn(t, makeOldJournal(t))
	tasks, err := storetest.List(j, state.Filter{})
	must(t, err)
	var seen []string
	for _, tk := range tasks {
		seen = append(seen, fmt.Sprint(tk.ID, " ", tk.Status, " ", tk.Reason, " ", tk.AttemptCount))
		if tk.Options != (task.Options{}) || tk.Last.Process != "" {
			t.Errorf("%s has the options %+v and the process %q", tk.ID, tk.Options, tk.Last.Process)
		}
		for _, a := range attempts(t, j, tk.Number) {
			if a.Outcome.Stdout+a.Outcome.Stderr+a.Process != "" {
				t.Errorf("%s: %+v", tk.ID, a)
			}
		}
	}
	want := []string{
		"stopped PENDING  1", "cancelled CANCELLED cancelled 1", "failed FAILED not eligible 1", "exhausted EXHAUSTED attempts 1",
		"succeeded SUCCEEDED  2", "runs IN_FLIGHT  1", "waits PENDING  2",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q\nwant %q", seen, want)
	}
	runs := stored(t, j, "runs")
	if runs.Parent != "waits" || runs.Name != "nightly" || !slices.Equal(runs.Command, []string{"a", "\xff", ""}) || runs.Directory != "/\xff" {
		t.Errorf("read as %s, parent %q", showTask(runs), runs.Parent)
	}
	if last := stored(t, j, "waits").Last; last.Outcome.Message != "\xff\x1b" || !last.Decision.Shortened || last.Decision.Delay != time.Minute {
		t.Errorf("read as %s", showAttempt(last))
	}
}

// What an old retry left unfinished goes on in the new one, whatever that adds to it.
func TestASchema1TaskGoesOn(t *testing.T) {
	j := openIn(t, makeOldJournal(t))
	for id, number := range map[string]int64{"waits": 1, "runs": 2, "stopped": 9} {
		tk, err := j.Adopt(t.Context(), number)
		must(t, err)
		if tk.Status == task.InFlight {
			must(t, recorded(j, tk, task.Crashed(), interrupted, epoch))
		}
		must(t, claimed(j, tk, epoch))
		must(t, j.NoteProcess(t.Context(), tk, "token"))
		must(t, recorded(j, tk, task.Outcome{Stdout: "out", Stderr: "err"}, succeeded, epoch))
		list := attempts(t, j, number)
		last := list[len(list)-1]
		if end := stored(t, j, id); end.Status != task.Succeeded || last.Process != "token" || last.Outcome.Stdout != "out" || last.Outcome.Stderr != "err" {
			t.Errorf("%s, %+v", showTask(end), last)
		}
	}
	for _, id := range []string{"succeeded", "exhausted", "failed", "cancelled"} {
		if _, err := j.Adopt(t.Context(), stored(t, j, id).Number); !errors.Is(err, state.ErrFinished) {
			t.Errorf("adopt %s: %v", id, err)
		}
	}
}

// A retry of the first schema that still runs goes on writing to the journal that a newer one has migrated under it:
// its statements name their columns.
func TestASchema1WriterGoesOnInAMigratedJournal(t *testing.T) {
	dir := makeOldJournal(t)
	old, err := sql.Open("sqlite3", dataSource(filepath.Join(dir, DatabaseName)))
	must(t, err)
	defer func() { must(t, old.Close()) }()
	old.SetMaxOpenConns(1)
	must(t, old.Ping()) // it has read the old schema
	j := openIn(t, dir)
	for _, statement := range []string{
		`UPDATE attempts SET duration = 1, exit = 0, decision = 'succeeded' WHERE task = 2 AND number = 1 AND decision IS NULL`,
		`UPDATE tasks SET status = 'SUCCEEDED', finished_at = 1 WHERE number = 2 AND status = 'IN_FLIGHT' AND attempt_count = 1`,
		`INSERT INTO tasks (id, parent, name, kind, status, argv, directory, policy, idempotency_key, attempt_count, created_at)
			VALUES ('late', NULL, NULL, 'command', 'PENDING', x'6100', x'2F', '` + oldPolicy + `', 'k', 0, 0)`,
		`UPDATE tasks SET status = 'IN_FLIGHT', attempt_count = 1 WHERE id = 'late'`,
		`INSERT INTO attempts (task, number, started_at) VALUES (10, 1, 0)`,
	} {
		if _, err := old.Exec(statement); err != nil {
			t.Errorf("%s\n%v", statement, err)
		}
	}
	if tk := stored(t, j, "runs"); tk.Status != task.Succeeded {
		t.Error(showTask(tk))
	}
	if tk := stored(t, j, "late"); tk.Number != 10 || tk.Status != task.InFlight || tk.Options != (task.Options{}) {
		t.Error(showTask(tk))
	}
	integrity(t, j)
}

// A journal of the schema before HTTP is migrated with nothing lost; its commands have no request, their attempts no
// exchange.
func TestASchema4JournalIsMigrated(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600))
	execute(t, dir, strings.Join(migrations[:4], ";")+fmt.Sprintf(";PRAGMA journal_mode = WAL; PRAGMA application_id = %d; PRAGMA user_version = 4;", applicationID)+
		strings.ReplaceAll(oldRows, ":policy", "'"+oldPolicy+"'"))
	before := dumpOldJournal(t, dir)
	j := openIn(t, dir)
	if after := oldDump(t, j); after != before {
		t.Errorf("got\n%s\nwant\n%s", after, before)
	}
	integrity(t, j)
	for _, id := range []string{"waits", "failed"} {
		tk := stored(t, j, id)
		if tk.Damage != nil || tk.Target != nil || tk.Last.Outcome.Reply != nil {
			t.Errorf("read as %s, %+v, %+v, %v", showTask(tk), tk.Target, tk.Last.Outcome.Reply, tk.Damage)
		}
	}
	tk := sending(requests()["least"])
	must(t, claimed(j, tk, epoch))
	must(t, recorded(j, tk, refused(404), failed, epoch))
	if got := stored(t, j, tk.ID); got.Last.Outcome.Reply == nil || got.Target == nil {
		t.Errorf("written and read as %+v", got)
	}
}

// A journal of any earlier schema takes a task of a kind that it did not know, and finds the waiting ones by time. It
// still refuses a status that there is not.
func TestEarlierSchemasTakeAnyKind(t *testing.T) {
	for version := range migrations {
		t.Run(fmt.Sprint("schema ", version), func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600))
			if version > 0 {
				execute(t, dir, strings.Join(migrations[:version], ";")+fmt.Sprintf(
					";PRAGMA journal_mode = WAL; PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, version))
			}
			j := openIn(t, dir)
			tk := newTask()
			tk.Kind = "grpc"
			must(t, claimed(j, tk, epoch))
			if got := stored(t, j, tk.ID).Kind; got != tk.Kind {
				t.Errorf("got the kind %q, want %q", got, tk.Kind)
			}
			lost := j.write(t.Context(), func(c *conn.Conn) error {
				return j.advance(c, tk.Number, tk.ID, transition{event: task.EventClaim, from: task.InFlight, fromCount: 1, to: "LOST"})
			})
			if lost == nil {
				t.Error("got a status that there is not, want a refusal")
			}
			const due = "SELECT number, host " + inQueue + " AND next_attempt_at <= ? ORDER BY next_attempt_at, number"
			const want = "SEARCH tasks USING COVERING INDEX tasks_due (next_attempt_at<?)"
			if got := planOf(t, j, due, 1); !slices.Equal(got, []string{want}) {
				t.Errorf("got the plan %q, want %q", got, want)
			}
			integrity(t, j)
		})
	}
}

// SQLite answers with the mode that holds, and not with an error, where it can have no WAL.
func TestAJournalWithoutAWALIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), DatabaseName)
	c, err := conn.Open(dataSource(path) + "&vfs=unix-none")
	must(t, err)
	defer func() { must(t, c.Close()) }()
	if err := migrate(c, path+walSuffix); err == nil || !strings.Contains(err.Error(), "(journal mode delete)") {
		t.Errorf("got %v, want an error that names the mode", err)
	}
}
