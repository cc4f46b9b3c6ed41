//go:build unix && cgo

package sqlite

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

// finds asserts that the doctor has a finding.
func finds(t *testing.T, dir, name string, level Level, text, fix string) {
	t.Helper()
	_, checks := Examine(t.Context(), dir, func(string) string { return "" }, time.Now())
	contains(t, checks, name, level, text, fix)
}

func contains(t *testing.T, checks []Check, name string, level Level, text, fix string) {
	t.Helper()
	for _, c := range checks {
		if c.Name == name && c.Level == level && strings.Contains(c.Text, text) && strings.Contains(c.Fix, fix) {
			return
		}
	}
	t.Errorf("no %s of %q with %q and %q in %+v", level, name, text, fix, checks)
}

func TestExamineTheFileSystem(t *testing.T) {
	room := lock.FileSystem{Free: 1 << 30, Inodes: 9, Counted: true}
	with := func(change func(*lock.FileSystem)) lock.FileSystem {
		system := room
		change(&system)
		return system
	}
	tests := []struct {
		name       string
		system     lock.FileSystem
		check      string
		level      Level
		text, hint string
	}{
		{"sound", room, "file system", LevelOK, "writable", ""},
		{"room", room, "space", LevelOK, "1 GiB free", ""},
		{"read-only", with(func(f *lock.FileSystem) { f.ReadOnly = true }), "file system", LevelProblem, "mounted read-only", "mount the file system"},
		{"unsure", with(func(f *lock.FileSystem) { f.Unsure, f.Name = true, "fuse.x" }), "file system", LevelWarning, "on fuse.x", "use a directory on a local disk"},
		{"in memory", with(func(f *lock.FileSystem) { f.Memory = true }), "file system", LevelWarning, "empty after a reboot", "--state"},
		{"little room", with(func(f *lock.FileSystem) { f.Free = 5 << 20 }), "space", LevelWarning, "5 MiB free", "make room"},
		{"no room", with(func(f *lock.FileSystem) { f.Free = 1000 }), "space", LevelProblem, "1000 B free", "make room"},
		{"no inodes", with(func(f *lock.FileSystem) { f.Inodes = 0 }), "space", LevelProblem, "no inodes", "make room"},
		{"no count of inodes", with(func(f *lock.FileSystem) { f.Inodes, f.Counted = 0, false }), "space", LevelOK, "1 GiB free", ""},
	}
	dir := t.TempDir()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := &examiner{ctx: t.Context(), dir: dir}
			e.system(dir, test.system, nil)
			contains(t, e.checks, test.check, test.level, test.text, test.hint)
		})
	}
}

func TestExamineTheDatabase(t *testing.T) {
	tests := []struct {
		name, statements  string
		level             Level
		check, text, hint string
	}{
		{"newer", "PRAGMA user_version = 99", LevelProblem, "database", "written by a newer retry", "upgrade retry"},
		{"foreign", "PRAGMA application_id = 1", LevelProblem, "database", "another program", "another directory"},
		{"orphans", "PRAGMA foreign_keys = OFF; INSERT INTO attempts (task, number, started_at) VALUES (77, 1, 1)", LevelProblem, "integrity", "1 row belongs to no task", "begins a new one"},
		{"a status that is none", "PRAGMA ignore_check_constraints = ON; UPDATE tasks SET status = 'ODD'", LevelWarning, "tasks", "1 finished task", "WHERE number IN (1)"},
		{"no table", "DROP TABLE tails", LevelProblem, "schema", "the table tails is missing", "mkdir"},
		{"no index", "DROP INDEX tasks_name", LevelProblem, "schema", "the index tasks_name is missing", "mkdir"},
		{"no column", "ALTER TABLE tasks DROP COLUMN environment", LevelProblem, "schema", "the table tasks is not as retry makes it", "mkdir"},
		{"a trigger", `CREATE TRIGGER "it's" BEFORE INSERT ON tasks BEGIN SELECT RAISE(ABORT, 'no'); END`, LevelProblem, "schema", "the trigger it's is not retry's", `'DROP TRIGGER "it'\''s"'`},
		{"an index", "CREATE UNIQUE INDEX odd ON tasks (status)", LevelProblem, "schema", "the index odd is not retry's", `'DROP INDEX "odd"'`},
		{"a view", "CREATE VIEW recent AS SELECT * FROM tasks", LevelWarning, "schema", "the view recent is not retry's", `'DROP VIEW "recent"'`},
		{"an unreadable task", "UPDATE tasks SET policy = '{'", LevelWarning, "tasks", "1 task cannot be read whole", "retry cancel "},
		{"an unreadable task that has finished", "UPDATE tasks SET policy = '{', status = 'FAILED', finished_at = 1", LevelWarning, "tasks", "1 finished task cannot be read whole", "retry prune --older-than 0"},
		{"one that a prune keeps", "UPDATE tasks SET policy = '{', status = 'SUCCEEDED', finished_at = 1, once = 1", LevelWarning, "tasks", "1 finished task", "WHERE number IN (1)"},
		{"a time out of this world", "UPDATE tasks SET created_at = 9223372036854775807", LevelWarning, "clock", "1 task was made in the future", "set the clock right"},
		{"from the future", "UPDATE tasks SET created_at = created_at + 1000000000000000", LevelWarning, "clock", "1 task was made in the future", "set the clock right"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := closedJournal(t)
			execute(t, dir, test.statements)
			finds(t, dir, test.check, test.level, test.text, test.hint)
		})
	}
}

// A page is missing in the middle: that opens, and only an examination of all pages finds it.
func TestExamineFindsDamageThatOpens(t *testing.T) {
	dir := closedJournal(t)
	f, err := os.OpenFile(filepath.Join(dir, databaseName), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("x", 4096)), 3*4096)
	must(t, err)
	must(t, f.Close())
	finds(t, dir, "integrity", LevelProblem, "the journal is damaged", "mkdir")
}

// What the fixes say helps.
func TestTheFixesOfADamagedSchemaHelp(t *testing.T) {
	for name, statements := range map[string]string{
		"a table": "DROP TABLE tails", "a trigger": `CREATE TRIGGER "it's" AFTER INSERT ON tasks BEGIN SELECT 1; END`,
		"an orphan":  "PRAGMA foreign_keys = OFF; INSERT INTO attempts (task, number, started_at) VALUES (77, 1, 1)",
		"remembered": "UPDATE tasks SET policy = '{', status = 'SUCCEEDED', finished_at = 1, once = 1",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("sqlite3"); err != nil {
				t.Skip(err)
			}
			dir := closedJournal(t)
			execute(t, dir, statements)
			for _, c := range amiss(t, dir) {
				run := strings.TrimPrefix(c.Fix, "while no retry runs: ")
				run, _, _ = strings.Cut(run, "; the next run")
				run = strings.TrimPrefix(run, "retry prune --older-than 0 removes what has finished; and ")
				run = strings.TrimSuffix(run, " what it keeps")
				if out, err := exec.Command("sh", "-c", run).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v, %s", run, err, out)
				}
			}
			j := openIn(t, dir)
			inFlight(t, j)
			if found := amiss(t, dir); len(found) > 0 {
				t.Errorf("still %+v", found)
			}
		})
	}
}

// amiss are the findings that have a fix, but for an interrupted task.
func amiss(t *testing.T, dir string) (found []Check) {
	t.Helper()
	_, checks := Examine(t.Context(), dir, func(string) string { return "" }, epoch)
	for _, c := range checks {
		if c.Fix != "" && !strings.Contains(c.Text, "interrupted") {
			found = append(found, c)
		}
	}
	return found
}

// A pipe in place of a file never answers whoever opens it.
func TestExamineDoesNotWaitForAPipe(t *testing.T) {
	for _, name := range []string{databaseName, databaseName + walSuffix, databaseName + shmSuffix, lock.OwnersFile, inputsName} {
		t.Run(name, func(t *testing.T) {
			dir := closedJournal(t)
			path := filepath.Join(dir, name)
			must(t, os.RemoveAll(path))
			must(t, unix.Mkfifo(path, 0o600))
			if name == inputsName {
				finds(t, dir, "stdin", LevelWarning, "is no directory", "move "+path+" away")
			} else {
				finds(t, dir, "files", LevelProblem, name+" is not a regular file", "move it away")
			}
			must(t, os.Rename(path, filepath.Join(t.TempDir(), "away")))
			openIn(t, dir)
		})
	}
}

func TestExamineTheInputs(t *testing.T) {
	dir := closedJournal(t)
	path := filepath.Join(dir, inputsName)
	must(t, os.Symlink("nowhere", path))
	finds(t, dir, "stdin", LevelWarning, "is no directory", "move "+path+" away")
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o500))
	if os.Geteuid() != 0 { // who may write everywhere
		finds(t, dir, "stdin", LevelWarning, "you may not write in", "chmod u+wx "+path)
	}
}

func TestExamineFindsWhoLocksTheDirectory(t *testing.T) {
	dir := closedJournal(t)
	unlock, err := lock.Exclusive(t.Context(), dir)
	must(t, err)
	defer unlock()
	finds(t, dir, "lock", LevelProblem, "holds the lock of the directory", "wait for its end")
}

// An examination looks, and no more.
func TestExamineMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	finds(t, dir, "directory", LevelOK, "is not there yet", "")
	if _, err := os.Stat(dir); err == nil {
		t.Error("it made the directory")
	}
	must(t, os.Mkdir(dir, 0o700))
	finds(t, dir, "database", LevelOK, "none yet", "")
	if found := names(t, dir); len(found) > 0 {
		t.Errorf("it made %q", found)
	}
}

func TestListNamesThree(t *testing.T) {
	for want, ids := range map[string][]string{"a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b, c and 2 more": {"a", "b", "c", "d", "e"}} {
		if got := list(ids); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 300 << 20: "300 MiB", 1 << 62: "4 EiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

// A task whose server named a time waits for that, and is nothing to worry about before. Then nobody has gone on with it.
func TestExamineDeferredTasks(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	tk := sending(requests()["least"])
	must(t, claimed(j, tk, epoch))
	must(t, recorded(j, tk, refused(429), task.Decision{Verdict: task.VerdictRetry, Delay: time.Hour, Reason: task.ReasonDeferred}, time.Now()))
	must(t, j.Release(tk.Number))
	finds(t, dir, "tasks", LevelOK, "1 waits for the time that a server named: "+shortID(tk), "")
	finds(t, dir, "tasks", LevelOK, "1 unfinished, none interrupted", "")
	spoil(t, j, tk, "next_attempt_at = 1")
	finds(t, dir, "tasks", LevelWarning, "1 was interrupted: "+shortID(tk), "retry resume --all")
}
