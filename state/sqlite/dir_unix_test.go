//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

// modes returns the permissions of a directory, as ".", and of what is in it.
func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		name, _ := filepath.Rel(dir, path)
		found[name] = info.Mode().Perm()
		return err
	}))
	return found
}

func checkPrivate(t *testing.T, dir string, names ...string) {
	t.Helper()
	found := modes(t, dir)
	if len(found) != len(names)+1 || found["."] != 0o700 {
		t.Errorf("the directory is %04o and holds %v, not %v", found["."], found, names)
	}
	for _, name := range names {
		if found[name] != 0o600 {
			t.Errorf("%s is %04o", name, found[name])
		}
	}
}

// Everything is private from the moment it exists, whatever the umask.
func TestFilesArePrivateFromTheFirst(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	dir := filepath.Join(above, "state")
	p := startPuppet(t)
	p.ask("umask")
	p.ask("prepare", dir) // before SQLite has seen them
	checkPrivate(t, dir, DatabaseName, lock.OwnersFile)
	if mode := modes(t, above)["."]; mode != 0o700 {
		t.Errorf("the directory above is %04o", mode)
	}
	p.ask("open", dir)
	p.create()
	checkPrivate(t, dir, DatabaseName, DatabaseName+"-shm", DatabaseName+"-wal", lock.OwnersFile, reserveName)
	p.ask("close")
	checkPrivate(t, dir, DatabaseName, lock.OwnersFile, reserveName)
}

// What a command reads may be secret: it is as private as the rest, while it comes and when it is whole.
func TestInputsArePrivateFromTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	p := startPuppet(t)
	p.ask("umask")
	p.ask("open", dir)
	var names []string
	for _, order := range []string{"part", "keep"} {
		number, id := p.create()
		p.ask(order, number)
		names = append(names, inputName(number, id))
	}
	checkPrivate(t, filepath.Join(dir, inputsName), names[0]+partSuffix, names[1])
}

// A directory that others may read is a choice of its owner.
func TestAReadableDirectoryIsAccepted(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	inFlight(t, openIn(t, dir))
}

func TestWhatOthersCouldHavePutThereIsRefused(t *testing.T) {
	touch := func(t *testing.T, path string, mode fs.FileMode) {
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Chmod(path, mode))
	}
	tests := []struct {
		name string
		make func(t *testing.T, dir string)
		want string // DIR stands for the directory
	}{
		{"directory 0777", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o777)) }, "mode 0777)\nhint: chmod go-w DIR"},
		{"directory 0770", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o770)) }, "hint: chmod go-w DIR"},
		{"directory 1777", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o777|fs.ModeSticky)) }, "hint: chmod go-w DIR"},
		{"database 0666", func(t *testing.T, dir string) { touch(t, dir+"/journal.db", 0o666) }, "hint: chmod go-w DIR/journal.db"},
		{"locks 0620", func(t *testing.T, dir string) { touch(t, dir+"/owners.lock", 0o620) }, "hint: chmod go-w DIR/owners.lock"},
		{"database a symlink", func(t *testing.T, dir string) {
			touch(t, dir+"/elsewhere", 0o600)
			must(t, os.Symlink("elsewhere", dir+"/journal.db"))
		}, "DIR/journal.db is not a regular file\nhint: move it away, or use another directory with --state"},
		{"locks a symlink", func(t *testing.T, dir string) {
			touch(t, dir+"/elsewhere", 0o600)
			must(t, os.Symlink("elsewhere", dir+"/owners.lock"))
		}, "DIR/owners.lock is not a regular file"},
		{"database a symlink to nothing", func(t *testing.T, dir string) {
			must(t, os.Symlink("nothing", dir+"/journal.db"))
		}, "DIR/journal.db is not a regular file"},
		{"database a directory", func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/journal.db", 0o700)) }, "not a regular file"},
		{"database a pipe", func(t *testing.T, dir string) { must(t, syscall.Mkfifo(dir+"/journal.db", 0o600)) }, "not a regular file"},
		{"directory a file", func(t *testing.T, dir string) {
			must(t, os.Remove(dir))
			touch(t, dir, 0o600)
		}, "DIR: not a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			must(t, os.Mkdir(dir, 0o700))
			test.make(t, dir)
			checkRefused(t, dir, test.want)
		})
	}
}

// checkRefused checks the message, and that nothing was written to what was refused.
func checkRefused(t *testing.T, dir, want string) {
	t.Helper()
	j, err := Open(t.Context(), dir)
	if err == nil {
		_ = j.Close()
		t.Fatal("not refused")
	}
	if want = strings.ReplaceAll(want, "DIR", dir); !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "open the journal") {
		t.Errorf("got %v\nwant %s", err, want)
	}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err != nil || (info.Mode().IsRegular() && info.Size() > 0) {
			t.Errorf("%s was written: %v", path, err)
		}
		return nil
	}))
}

// The fix that the message names is one.
func TestTheHintedFixHelps(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777))
	checkRefused(t, dir, "hint: chmod go-w DIR")
	must(t, os.Chmod(dir, 0o755))
	inFlight(t, openIn(t, dir))
}

func TestWhatBelongsToAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const nobody = 65534
	for _, name := range []string{"", DatabaseName, lock.OwnersFile} {
		t.Run("the directory "+name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if name != "" {
				must(t, os.WriteFile(path, nil, 0o600))
			}
			must(t, os.Chown(path, nobody, nobody))
			checkRefused(t, dir, path+" belongs to user 65534, not to you (0)\nhint: chown it, or use a directory of your own with --state")
		})
	}
}

// Sixteen processes meet on a directory that does not exist yet.
func TestManyProcessesOpenAFreshJournal(t *testing.T) {
	const processes, rounds = 16, 24
	puppets := make([]*puppet, processes)
	for i := range puppets {
		puppets[i] = startPuppet(t)
	}
	for round := range rounds {
		dir := fmt.Sprint(t.TempDir(), "/", round, "/journal")
		tasks := meet(puppets, dir, round)
		j := openIn(t, dir)
		if found := checkTasks(t, j); !slices.Equal(found, tasks) {
			t.Errorf("round %d: the journal holds %d tasks\n%q\nthe processes made\n%q", round, len(found), found, tasks)
		}
	}
}

// A new version of retry meets an old journal in many processes at once: it is migrated once.
func TestManyProcessesMigrate(t *testing.T) {
	puppets := make([]*puppet, 8)
	for i := range puppets {
		puppets[i] = startPuppet(t)
		puppets[i].ask("upgrade")
	}
	for range 10 {
		dir := closedJournal(t)
		crowd(puppets, "open", dir)
		j, err := Open(t.Context(), dir)
		if err == nil {
			_ = j.Close()
			t.Error("the old version still opens it")
		}
		for _, p := range puppets {
			p.create()
		}
		crowd(puppets, "close", "")
		checkMigrated(t, dir, 1+len(puppets))
	}
}

func checkMigrated(t *testing.T, dir string, tasks int) {
	t.Helper()
	known := migrations
	defer func() { migrations = known }()
	migrations = slices.Concat(known, []string{nextStep})
	if found := checkTasks(t, openIn(t, dir)); len(found) != tasks {
		t.Errorf("%d tasks of %d", len(found), tasks)
	}
}

// The first new retry after an upgrade is often several: those of a cron minute, or of a parallel build.
func TestManyProcessesMigrateASchema1Journal(t *testing.T) {
	puppets := make([]*puppet, 8)
	for i := range puppets {
		puppets[i] = startPuppet(t)
	}
	for range 10 {
		dir := makeOldJournal(t)
		before := dumpOldJournal(t, dir)
		crowd(puppets, "open", dir)
		made := crowd(puppets, "create", "")
		crowd(puppets, "close", "")
		j := openIn(t, dir)
		if found := checkTasks(t, j); len(found) != 7+len(made) || !containsAll(found, made) {
			t.Errorf("the journal holds %q, the processes made %q", found, made)
		}
		if after := oldDump(t, j); !containsAll(strings.Split(after, "\n"), strings.Split(before, "\n")) {
			t.Errorf("got\n%s\nwant all of\n%s", after, before)
		}
	}
}

func containsAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(want string) bool { return !slices.Contains(list, want) })
}

// meet has all puppets open the journal at once and make a task each, which it returns. In each fourth round they make
// theirs at once too, and close it, so that the last one's checkpoint meets the others' writes; that takes longer.
func meet(puppets []*puppet, dir string, round int) (tasks []string) {
	if round%4 == 0 {
		return crowd(puppets, "visit", dir)
	}
	crowd(puppets, "open", dir)
	for _, p := range puppets {
		tasks = append(tasks, p.ask("create"))
	}
	crowd(puppets, "close", "")
	slices.Sort(tasks)
	return tasks
}

// crowd gives all puppets an order at once, and returns their answers in alphabetical order.
func crowd(puppets []*puppet, order, arg string) (answers []string) {
	for _, p := range puppets {
		p.tell(order, arg)
	}
	for _, p := range puppets {
		answers = append(answers, p.answer(order))
	}
	slices.Sort(answers)
	return answers
}

// checkTasks checks what holds for every journal, whoever died over it, and returns the tasks as a puppet names them.
func checkTasks(t *testing.T, j *Journal) (names []string) {
	t.Helper()
	integrity(t, j)
	tasks, err := j.List(t.Context(), state.Filter{})
	must(t, err)
	for _, tk := range tasks {
		names = append(names, fmt.Sprint(tk.Number, " ", tk.ID))
		for i, a := range attempts(t, j, tk.Number) {
			open := a.Decision.Verdict == ""
			if a.Number != i+1 || a.Number > tk.AttemptCount || open != (tk.Status == task.InFlight && a.Number == tk.AttemptCount) {
				t.Errorf("%s\nhas the attempt %s", showTask(tk), showAttempt(a))
			}
		}
		if tk.Last.Number != tk.AttemptCount {
			t.Errorf("%s\nhas no attempt %d", showTask(tk), tk.AttemptCount)
		}
	}
	slices.Sort(names)
	return names
}

// writes is how many of the puppet's commits the journal has of a task: two for each attempt that has ended.
func writes(t *testing.T, j *Journal, tk *task.Task) (n int) {
	t.Helper()
	for _, a := range attempts(t, j, tk.Number) {
		if n++; a.Decision.Verdict != "" {
			n++
		}
	}
	return n
}

// What was acknowledged before a kill -9 is there afterwards, and at most one commit more.
func TestKilledWritersLoseNothing(t *testing.T) {
	const rounds = 40
	dir := t.TempDir()
	acknowledged, last := map[string]int{}, ""
	acknowledge := func(line string) {
		var n int
		if _, err := fmt.Sscan(line, &last, &n); err != nil {
			t.Fatalf("the writer said %q", line)
		}
		acknowledged[last] = n
	}
	for round := range rounds {
		p := startOn(t, dir) // on what the last round left, its WAL included
		p.tell("write")
		for range 1 + round {
			acknowledge(p.hear())
		}
		for _, line := range p.kill() {
			acknowledge(line)
		}
		if round%4 == 3 {
			checkAcknowledged(t, dir, acknowledged)
		}
	}
}

func checkAcknowledged(t *testing.T, dir string, acknowledged map[string]int) {
	t.Helper()
	j := openIn(t, dir)
	checkTasks(t, j)
	tasks, err := j.List(t.Context(), state.Filter{})
	must(t, err)
	found := map[string]bool{}
	for _, tk := range tasks {
		found[tk.ID] = true
		if got, want := writes(t, j, tk), acknowledged[tk.ID]; got < want || got > want+1 {
			t.Errorf("%d commits were acknowledged, %d are there: %s", want, got, showTask(tk))
		}
		if lost, err := j.Interrupted(t.Context(), tk); err != nil || lost == tk.Status.Finished() {
			t.Errorf("interrupted: %v, %v: %s", lost, err, showTask(tk))
		}
	}
	for id := range acknowledged {
		if !found[id] {
			t.Errorf("task %s is lost", id)
		}
	}
}

// Killed at any moment of its first opening, a process leaves a journal, or what becomes one.
func TestKilledWhileOpening(t *testing.T) {
	there := func(name string, size int64) func(string) bool {
		return func(dir string) bool {
			info, err := os.Stat(filepath.Join(dir, name))
			return err == nil && info.Size() >= size
		}
	}
	moments := map[string]func(dir string) bool{
		"before anything":         func(string) bool { return true },
		"its directory is there":  there("", 0),
		"its database is there":   there(DatabaseName, 0),
		"its lock file is there":  there(lock.OwnersFile, 0),
		"its database has a page": there(DatabaseName, 512),
		"its log is there":        there(DatabaseName+"-wal", 0),
		"its log has a page":      there(DatabaseName+"-wal", 512),
		"its index is there":      there(DatabaseName+"-shm", 0),
	}
	for name, reached := range moments {
		t.Run(name, func(t *testing.T) {
			for range 4 {
				dir := filepath.Join(t.TempDir(), "journal")
				p := startPuppet(t)
				p.tell("open", dir)
				waitFor(t, func() bool { return reached(dir) })
				p.kill()
				j := openIn(t, dir)
				inFlight(t, j)
				checkTasks(t, j)
			}
		})
	}
}

// patience bounds the wait for an event; a sound run needs a fraction of it.
const patience = 30 * time.Second

func waitFor(t *testing.T, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !reached(); {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}
