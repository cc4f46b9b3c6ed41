package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	if n, err := j.Count(t.Context()); n != 1 || err != nil || colour != "blue" {
		t.Errorf("%d tasks, %v, colour %q", n, err, colour)
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
