//go:build unix && cgo

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
)

// reader opens a journal to read it.
func reader(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := OpenReader(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

func TestAReaderMakesNoJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := OpenReader(t.Context(), dir); !errors.Is(err, state.ErrNoJournal) {
		t.Errorf("without a directory: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made")
	}
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600)) // whoever made it died
	if _, err := OpenReader(t.Context(), dir); !errors.Is(err, state.ErrNoJournal) {
		t.Errorf("with an empty file: %v", err)
	}
	if got := testkit.Names(t, dir); !slices.Equal(got, []string{DatabaseName}) {
		t.Errorf("made were %q", got)
	}
}

func TestAnEmptyJournalHasNoTasks(t *testing.T) {
	j, err := OpenEmpty()
	must(t, err)
	defer func() { must(t, j.Close()) }()
	if list, err := j.List(t.Context(), state.Filter{}); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := j.Find(t.Context(), "x"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A reader sees what a living writer has committed, and who owns it, and cannot write.
func TestAReaderBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	p := startPuppet(t)
	p.ask("open", dir)
	_, id := p.create()
	j := reader(t, dir)
	tk := stored(t, j, id)
	if interrupted, err := j.Interrupted(t.Context(), tk); interrupted || err != nil {
		t.Errorf("interrupted %v, %v", interrupted, err)
	}
	if err := j.Cancel(t.Context(), tk.Number, epoch); !errors.Is(err, state.ErrReadOnly) {
		t.Errorf("a reader wrote: %v", err)
	}
	_, id = p.create()
	stored(t, j, id)
	p.kill()
	if interrupted, err := j.Interrupted(t.Context(), tk); !interrupted || err != nil {
		t.Errorf("interrupted %v, %v after its owner's death", interrupted, err)
	}
}

// What cannot be read in place is read from a copy with its WAL; the copy is private, and goes.
func TestAReaderOfACopy(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	p := startPuppet(t)
	p.ask("open", dir)
	_, id := p.create()
	path := filepath.Join(dir, DatabaseName)
	j := &Journal{dir: dir}
	must(t, j.openCopy(t.Context(), func(to string) error { return copyFiles(path, to) }))
	stored(t, j, id)
	if mode := modes(t, j.copied); mode["."] != 0o700 || mode[DatabaseName] != 0o600 {
		t.Errorf("others may read the copy: %v", mode)
	}
	must(t, j.Close())
	if left := testkit.Names(t, os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("the copy is left: %q", left)
	}
}

// A journal of an older retry is read, and stays one.
func TestAReaderOfAnOlderSchema(t *testing.T) {
	dir := closedJournal(t)
	withStep(t, "ALTER TABLE tasks ADD COLUMN later TEXT")
	before := contents(t, dir)
	j := reader(t, dir)
	if got := version(t, j); got != len(migrations) || j.copied == "" {
		t.Errorf("schema %d, copied to %q", got, j.copied)
	}
	if list, err := j.List(t.Context(), state.Filter{}); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if !slices.Equal(contents(t, dir), before) {
		t.Error("the journal was changed")
	}
}

func TestAReaderRefuses(t *testing.T) {
	tests := []struct {
		name, statements string
		want             error
	}{
		{"a newer journal", "PRAGMA user_version = 99", state.ErrNewer},
		{"another program's database", "PRAGMA application_id = 7", state.ErrForeign},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := closedJournal(t)
			execute(t, dir, test.statements)
			if _, err := OpenReader(t.Context(), dir); !errors.Is(err, test.want) || !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	dir := t.TempDir()
	damagedIn(t, dir)
	if _, err := OpenReader(t.Context(), dir); !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// A database that changes while it is copied is no database.
func TestACopyOfWhatChangesIsMadeAnew(t *testing.T) {
	dir := closedJournal(t)
	path := filepath.Join(dir, DatabaseName)
	before := fingerprint(path)
	must(t, os.WriteFile(path+walSuffix, []byte("more"), 0o600))
	if fingerprint(path) == before {
		t.Error("a WAL that has come is not noticed")
	}
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.WriteFile(to+walSuffix, []byte("old"), 0o600))
	must(t, os.Remove(path+walSuffix))
	must(t, copyFiles(path, to))
	if _, err := os.Stat(to + walSuffix); err == nil {
		t.Error("the WAL of an earlier try is left")
	}
}

// A process that opens the journal, or that closes it as the last one, has it for itself for a moment. A reader waits.
func TestAReaderWaitsForAnExclusiveLock(t *testing.T) {
	dir := t.TempDir()
	writer, err := Open(t.Context(), dir)
	must(t, err)
	must(t, writer.Close())
	holder, err := connect(dataSource(filepath.Join(dir, DatabaseName)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT"); err != nil {
		t.Fatal(err)
	}
	if c, err := connect(dataSource(filepath.Join(dir, DatabaseName)) + "&mode=ro"); err == nil {
		_, err = identify(c)
		_ = c.close()
		if !isBusy(err) {
			t.Fatalf("got %v while the database is locked, want busy", err)
		}
	}
	opened := make(chan error)
	go func() {
		reader, err := OpenReader(t.Context(), dir)
		if err == nil {
			err = reader.Close()
		}
		opened <- err
	}()
	time.Sleep(20 * time.Millisecond) // the reader meets the lock; where it does not yet, the test passes for another reason
	if err := holder.close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("got %v, want the reader to wait", err)
	}
}
