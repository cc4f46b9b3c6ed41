//go:build unix && cgo

package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// interrupted returns the directory of a journal whose only task, 5b9a39db, has lost its owner.
func interrupted(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	testkit.Must(t, os.Chmod(dir, 0o700))
	j, err := sqlite.Open(t.Context(), dir)
	testkit.Must(t, err)
	tk := &task.Task{
		ID: "01a1fb79-5735-7565-b3a1-977a5b9a39db", Kind: task.KindCommand, Command: []string{"true"}, Directory: "/",
		Policy: task.DefaultPolicy(), Status: task.Pending, CreatedAt: time.Now(),
	}
	testkit.Must(t, j.Claim(context.Background(), tk, time.Now()))
	testkit.Must(t, j.Close())
	return dir
}

// execute changes a journal that nobody has open.
func execute(t *testing.T, dir, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, sqlite.DatabaseName))
	testkit.Must(t, err)
	defer func() { testkit.Must(t, db.Close()) }()
	_, err = db.Exec(statements)
	testkit.Must(t, err)
}

func examine(t *testing.T, dir string) []state.Finding {
	t.Helper()
	_, checks := Examine(t.Context(), dir, func(string) string { return "" }, time.Now())
	return checks
}

func finding(name, level, text, fix string) state.Finding {
	return state.Finding{Name: name, Level: level, Text: text, Fix: fix}
}

// expect asserts that one of the findings has this name, this level, and these parts of its text and its fix.
func expect(t *testing.T, checks []state.Finding, want state.Finding) {
	t.Helper()
	for _, got := range checks {
		if got.Name == want.Name && got.Level == want.Level &&
			strings.Contains(got.Text, want.Text) && strings.Contains(got.Fix, want.Fix) {
			return
		}
	}
	t.Errorf("got %+v, want %+v", checks, want)
}

func TestFileSystem(t *testing.T) {
	const plenty = 1 << 30
	tests := []struct {
		name   string
		system lock.FileSystem
		want   state.Finding
	}{
		{name: "sound", system: lock.FileSystem{Free: plenty}, want: finding("file system", LevelOK, "writable", "")},
		{name: "space", system: lock.FileSystem{Free: plenty}, want: finding("space", LevelOK, "1 GiB free", "")},
		{
			name: "network", system: lock.FileSystem{Remote: true, Name: "nfs", Free: plenty},
			want: finding("file system", LevelProblem, "network file system (nfs)", "use a directory on a local disk"),
		},
		{
			name: "read-only", system: lock.FileSystem{ReadOnly: true, Free: plenty},
			want: finding("file system", LevelProblem, "mounted read-only", "mount it writable"),
		},
		{
			name: "FUSE", system: lock.FileSystem{FUSE: true, Free: plenty},
			want: finding("file system", LevelWarning, "in user space (FUSE)", "on a local disk"),
		},
		{
			name: "little space", system: lock.FileSystem{Free: 5 << 20},
			want: finding("space", LevelWarning, "5 MiB free", "make room"),
		},
		{
			name: "no space", system: lock.FileSystem{Free: 1000},
			want: finding("space", LevelProblem, "1000 B free", "make room"),
		},
		{
			name: "no inodes", system: lock.FileSystem{NoInodes: true, Free: plenty},
			want: finding("space", LevelProblem, "no inodes", "make room"),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := &examiner{ctx: t.Context(), dir: t.TempDir()}
			e.mounted(e.dir, test.system)
			e.space(test.system)
			expect(t, e.findings, test.want)
		})
	}
}

func TestDatabase(t *testing.T) {
	tests := []struct {
		name, statements string
		want             state.Finding
	}{
		{
			name: "newer", statements: "PRAGMA user_version = 99",
			want: finding("database", LevelProblem, "written by a newer retry", "upgrade retry"),
		},
		{
			name: "foreign", statements: "PRAGMA application_id = 1",
			want: finding("database", LevelProblem, "another program", "another directory"),
		},
		{
			name:       "orphan",
			statements: "PRAGMA foreign_keys = OFF; INSERT INTO attempts (task, number, started_at) VALUES (77, 1, 1)",
			want:       finding("integrity", LevelProblem, "1 row without a task", "begins a new one"),
		},
		{
			name: "no table", statements: "DROP TABLE tasks",
			want: finding("database", LevelProblem, "no such table: tasks", "begins a new one"),
		},
		{
			name: "no column", statements: "ALTER TABLE tasks DROP COLUMN environment",
			want: finding("tasks", LevelProblem, "no such column", "begins a new one"),
		},
		{
			name: "interrupted",
			want: finding("tasks", LevelWarning, "1 interrupted: 5b9a39db", "retry resume --all"),
		},
		{
			name:       "deferred",
			statements: "UPDATE tasks SET status = 'PENDING', reason = 'deferred', next_attempt_at = 4102444800000000",
			want:       finding("tasks", LevelOK, "1 unfinished, none interrupted", ""),
		},
		{
			name:       "deferred until now",
			statements: "UPDATE tasks SET status = 'PENDING', reason = 'deferred', next_attempt_at = 1",
			want:       finding("tasks", LevelWarning, "1 interrupted: 5b9a39db", "retry resume --all"),
		},
		{
			name:       "from the future",
			statements: "UPDATE tasks SET created_at = created_at + 1000000000000000",
			want:       finding("clock", LevelWarning, "1 task from the future", "set the clock right"),
		},
		{
			name: "a time out of this world", statements: "UPDATE tasks SET created_at = 9223372036854775807",
			want: finding("clock", LevelWarning, "1 task from the future", "set the clock right"),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := interrupted(t)
			execute(t, dir, test.statements)
			expect(t, examine(t, dir), test.want)
		})
	}
}

// A page is missing in the middle: the journal opens, and only an examination of all pages finds it.
func TestDamageThatOpens(t *testing.T) {
	dir := interrupted(t)
	f, err := os.OpenFile(filepath.Join(dir, sqlite.DatabaseName), os.O_RDWR, 0)
	testkit.Must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("x", 4096)), 3*4096)
	testkit.Must(t, err)
	testkit.Must(t, f.Close())
	expect(t, examine(t, dir), finding("integrity", LevelProblem, "the journal is damaged", "mkdir"))
}

func TestLongWAL(t *testing.T) {
	dir := interrupted(t)
	j, err := sqlite.Open(t.Context(), dir)
	testkit.Must(t, err)
	defer func() { testkit.Must(t, j.Close()) }()
	testkit.Must(t, j.SetPolicy(t.Context(), task.DefaultPolicy(), time.Now())) // a WAL has a header from its first write on
	testkit.Must(t, os.Truncate(filepath.Join(dir, sqlite.DatabaseName+"-wal"), 65<<20))
	expect(t, examine(t, dir), finding("wal", LevelWarning, "65 MiB wait in the WAL", "see who reads"))
}

// Opening a pipe in place of a file would never return.
func TestAPipeIsNotOpened(t *testing.T) {
	for _, name := range []string{"journal.db", "journal.db-wal", "journal.db-shm", lock.OwnersFile} {
		t.Run(name, func(t *testing.T) {
			dir := interrupted(t)
			path := filepath.Join(dir, name)
			testkit.Must(t, os.RemoveAll(path))
			testkit.Must(t, unix.Mkfifo(path, 0o600))
			expect(t, examine(t, dir), finding("files", LevelProblem, name+" is not a regular file", "move it away"))
		})
	}
}

func TestLockedDirectory(t *testing.T) {
	testkit.Slow(t, "it waits five seconds for a lock")
	dir := interrupted(t)
	unlock, err := lock.Exclusive(t.Context(), dir)
	testkit.Must(t, err)
	defer unlock()
	expect(t, examine(t, dir), finding("lock", LevelProblem, "another process holds the lock", "wait for its end"))
}

// An examination looks, and no more.
func TestNothingIsMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	expect(t, examine(t, dir), finding("directory", LevelOK, "is not there yet", ""))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("got %v, want no directory", err)
	}
	testkit.Must(t, os.Mkdir(dir, 0o700))
	expect(t, examine(t, dir), finding("database", LevelOK, "none yet", ""))
	if got, err := os.ReadDir(dir); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v; want an empty directory", got, err)
	}
}

func TestManyInterrupted(t *testing.T) {
	dir := interrupted(t)
	for n := range 4 {
		execute(t, dir, fmt.Sprintf(`CREATE TEMP TABLE copy AS SELECT * FROM tasks WHERE number = 1;
			UPDATE copy SET number = %[1]d, id = 'id-%[1]d'; INSERT INTO tasks SELECT * FROM copy`, n+2))
	}
	expect(t, examine(t, dir), finding("tasks", LevelWarning, ", …", "retry resume --all"))
}
