//go:build unix && cgo

package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// finds asserts that the doctor has a finding.
func finds(t *testing.T, dir, name string, level Level, text, fix string) {
	t.Helper()
	_, checks := Examine(t.Context(), dir, func(string) string { return "" }, time.Now())
	for _, c := range checks {
		if c.Name == name && c.Level == level && strings.Contains(c.Text, text) && strings.Contains(c.Fix, fix) {
			return
		}
	}
	t.Errorf("no %s of %q with %q and %q in %+v", level, name, text, fix, checks)
}

func TestExamineTheFileSystem(t *testing.T) {
	room := fileSystem{free: 1 << 30, inodes: 9, counted: true}
	with := func(change func(*fileSystem)) fileSystem {
		system := room
		change(&system)
		return system
	}
	tests := []struct {
		name       string
		system     fileSystem
		check      string
		level      Level
		text, hint string
	}{
		{"sound", room, "file system", LevelOK, "writable", ""},
		{"room", room, "space", LevelOK, "1 GiB free", ""},
		{"read-only", with(func(f *fileSystem) { f.readOnly = true }), "file system", LevelProblem, "mounted read-only", "mount the file system"},
		{"unsure", with(func(f *fileSystem) { f.unsure, f.name = true, "fuse.x" }), "file system", LevelWarning, "on fuse.x", "use a directory on a local disk"},
		{"in memory", with(func(f *fileSystem) { f.memory = true }), "file system", LevelWarning, "empty after a reboot", "--state"},
		{"little room", with(func(f *fileSystem) { f.free = 5 << 20 }), "space", LevelWarning, "5 MiB free", "make room"},
		{"no room", with(func(f *fileSystem) { f.free = 1000 }), "space", LevelProblem, "1000 B free", "make room"},
		{"no inodes", with(func(f *fileSystem) { f.inodes = 0 }), "space", LevelProblem, "no inodes", "make room"},
		{"no count of inodes", with(func(f *fileSystem) { f.inodes, f.counted = 0, false }), "space", LevelOK, "1 GiB free", ""},
	}
	dir := t.TempDir()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			replaceStatfs(t, test.system)
			finds(t, dir, test.check, test.level, test.text, test.hint)
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
	finds(t, dir, "integrity", LevelProblem, "", "sets it aside")
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
