//go:build unix

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

// checkOwned checks what this process sees of a task that another one owns.
func checkOwned(t *testing.T, j *Journal, number int64, pid int) {
	t.Helper()
	if got, err := j.Owner(number); got != pid || err != nil {
		t.Errorf("the owner of task %d is %d (%v), not %d", number, got, err, pid)
	}
	tk, err := j.tasks(t.Context(), selectTasks+"WHERE t.number = ?", number)
	must(t, err)
	if lost, err := j.Interrupted(t.Context(), tk[0]); lost != (pid == 0) || err != nil {
		t.Errorf("task %d with owner %d is interrupted: %v (%v)", number, pid, lost, err)
	}
}

// The kernel lets go of a task whose owner was killed, and of no other.
func TestAKilledOwnerLosesItsTasks(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	victim, bystander := startOn(t, dir), startOn(t, dir)
	first, id := victim.create()
	second, _ := victim.create()
	other, _ := bystander.create()

	checkOwned(t, j, first, victim.pid())
	checkOwned(t, j, second, victim.pid())
	checkOwned(t, j, other, bystander.pid())
	if pid, err := j.Owner(other + 1); pid != 0 || err != nil {
		t.Errorf("a task that does not exist has the owner %d (%v)", pid, err)
	}
	for _, number := range []int64{first, second, other} {
		if _, err := j.Adopt(t.Context(), number); !errors.Is(err, state.ErrOwned) {
			t.Errorf("adopt task %d: %v", number, err)
		}
	}

	victim.kill()
	checkOwned(t, j, first, 0)
	checkOwned(t, j, second, 0)
	checkOwned(t, j, other, bystander.pid())
	tk, err := j.Adopt(t.Context(), first)
	must(t, err)
	if tk.ID != id || tk.Status != task.InFlight || tk.AttemptCount != 1 || tk.Last.Number != 1 || tk.Last.Decision.Verdict != "" {
		t.Errorf("adopted %s\nlast %s", showTask(tk), showAttempt(tk.Last))
	}
	if answer := bystander.ask("adopt", first); answer != "owned" {
		t.Errorf("a second process: %s", answer)
	}
	if answer := bystander.ask("adopt", second); answer != "adopted IN_FLIGHT 1" {
		t.Errorf("the other task: %s", answer)
	}
}

// What a killed owner had of its task's stdin is lost where it is a part, and there where it is whole.
func TestAKilledOwnersInput(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	victim := startOn(t, dir)
	half, _ := victim.create()
	whole, _ := victim.create()
	victim.ask("part", half)
	victim.ask("keep", whole)
	victim.kill()
	for number, want := range map[int64]string{half: "", whole: "part"} {
		tk, err := j.Adopt(t.Context(), number)
		must(t, err)
		checkInput(t, j, tk, want)
	}
}

// Letting go without dying: of one task, or of all of them with the journal.
func TestReleaseAndClose(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	p := startOn(t, dir)
	first, _ := p.create()
	second, _ := p.create()
	p.ask("release", first)
	checkOwned(t, j, first, 0)
	checkOwned(t, j, second, p.pid())
	p.ask("close")
	checkOwned(t, j, second, 0)
}

// A finished task has no owner to miss.
func TestAFinishedTaskIsNeverInterrupted(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	must(t, recorded(j, tk, exit(0), succeeded, epoch))
	must(t, j.Release(tk.Number))
	if lost, err := j.Interrupted(t.Context(), tk); lost || err != nil {
		t.Errorf("interrupted: %v, %v", lost, err)
	}
}

// However many processes want one task, one of them gets it.
func TestOneOfTwoAdopts(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	racers := []*puppet{startOn(t, dir), startOn(t, dir)}
	tk := inFlight(t, j)
	must(t, j.Release(tk.Number))
	for round := range 300 {
		// Each of them has the first word in turn.
		first, second := racers[round%2], racers[(round+1)%2]
		first.tell("adopt", tk.Number)
		second.tell("adopt", tk.Number)
		answers := map[string]*puppet{first.hear(): first, second.hear(): second}
		winner := answers["adopted IN_FLIGHT 1"]
		if winner == nil || answers["owned"] == nil {
			t.Fatalf("round %d: %v", round, answers)
		}
		checkOwned(t, j, tk.Number, winner.pid())
		winner.ask("release", tk.Number)
	}
}

// A refused adoption leaves the task to whoever comes next.
func TestARefusedAdoptionKeepsNoLock(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	p := startOn(t, dir)
	tk := inFlight(t, j)
	must(t, recorded(j, tk, exit(0), succeeded, epoch))
	must(t, j.Release(tk.Number))
	for number, want := range map[int64]error{tk.Number: state.ErrFinished, 99: state.ErrNotFound} {
		if _, err := j.Adopt(t.Context(), number); !errors.Is(err, want) {
			t.Errorf("adopt task %d: %v", number, err)
		}
		if pid := p.ask("owner", number); pid != "0" {
			t.Errorf("task %d has the owner %s", number, pid)
		}
	}
}

// A number whose task was never written goes to the next task, whoever makes it.
func TestAFailedCreationKeepsNoLock(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	p := startOn(t, dir)
	fail(t, j, "INSERT ON attempts")
	if err := claimed(j, newTask(), epoch); err == nil {
		t.Fatal("the claim did not fail")
	}
	if number, _ := p.create(); number != 1 {
		t.Errorf("the next task has number %d", number)
	}
}

// A task is its creator's before others can see it.
func TestANewTaskIsOwnedFromTheFirst(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	p := startOn(t, dir)
	tk := inFlight(t, j)
	if pid := p.ask("owner", tk.Number); pid != fmt.Sprint(os.Getpid()) {
		t.Errorf("the owner is %s", pid)
	}
	if answer := p.ask("adopt", tk.Number); answer != "owned" {
		t.Errorf("adopt: %s", answer)
	}
}

// Where somebody holds numbers already, as after the database was removed under its owners, no second owner is made.
func TestNumbersThatAreHeldArePassedOver(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	p := startOn(t, dir)
	for _, held := range []int64{1, 2} {
		if owned, err := j.owners.Acquire(held); !owned || err != nil {
			t.Fatal(owned, err)
		}
	}
	number, id := p.create()
	if number != 3 || stored(t, j, id).Number != 3 || stored(t, j, id).Last.Number != 1 {
		t.Errorf("the task has number %d", number)
	}
	checkOwned(t, j, 3, p.pid())
	integrity(t, j)
}

// Cancelling needs no ownership; the owner learns of it at its next write.
func TestCancelUnderItsOwner(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	p := startOn(t, dir)
	number, _ := p.create()
	must(t, j.Cancel(t.Context(), number, time.Now()))
	if pid, err := j.Owner(number); pid != p.pid() || err != nil {
		t.Errorf("the owner is %d, %v", pid, err)
	}
	p.kill()
	if answer := startOn(t, dir).ask("adopt", number); answer != "finished" {
		t.Errorf("adopt: %s", answer)
	}
}

// An owner may finish its task and die between the moment that a reader saw the row and the moment that it asks for the
// owner.
func TestATaskThatEndedMeanwhileIsNotInterrupted(t *testing.T) {
	j, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ended := newTask()
	if err := j.Claim(t.Context(), ended, time.Now()); err != nil {
		t.Fatal(err)
	}
	seen := *ended
	seen.Status = task.InFlight
	if err := j.Cancel(t.Context(), ended.Number, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := j.Release(ended.Number); err != nil {
		t.Fatal(err)
	}
	if lost, err := j.Interrupted(t.Context(), &seen); lost || err != nil {
		t.Errorf("interrupted: %v, %v", lost, err)
	}
}

// Whoever is dead leaves what it ran open, and what it ran does not run.
func TestStatsTellWhatRunsFromWhatWasCutOff(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	victim, bystander := startOn(t, dir), startOn(t, dir)
	bystander.create()
	victim.create()
	nobody := func() []string { return nil }
	for _, owners := range []struct {
		kill func() []string
		want bool
	}{{nobody, true}, {victim.kill, true}, {bystander.kill, false}} {
		owners.kill()
		list, _, err := j.Stats(t.Context(), time.Time{}, 0)
		must(t, err)
		if list[0].Last.Running != owners.want || list[0].Unfinished != 2 {
			t.Errorf("got %+v, want %v", list[0], owners.want)
		}
	}
}

// A name belongs to one process, until that is gone.
func TestANameBelongsToOneProcess(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	p := startOn(t, dir)
	if answer := p.ask("name", "nightly"); answer != "true 0" {
		t.Fatalf("the first: %s", answer)
	}
	if owned, pid, err := j.OwnName("nightly"); owned || pid != p.pid() || err != nil {
		t.Errorf("the second: %v, %d, %v", owned, pid, err)
	}
	if owned, _, err := j.OwnName("hourly"); !owned || err != nil {
		t.Errorf("another name: %v, %v", owned, err)
	}
	if answer := p.ask("name", "hourly"); answer != fmt.Sprint("false ", os.Getpid()) {
		t.Errorf("the other way round: %s", answer)
	}
	p.kill()
	if owned, _, err := j.OwnName("nightly"); !owned || err != nil {
		t.Errorf("after its death: %v, %v", owned, err)
	}
}

// Whichever way two processes race for a name, one task is made.
func TestTwoProcessesRaceForAName(t *testing.T) {
	dir := t.TempDir()
	puppets := []*puppet{startOn(t, dir), startOn(t, dir), startOn(t, dir)}
	for round := range 50 {
		name := fmt.Sprint("round-", round)
		for _, p := range puppets {
			p.tell("create", name)
		}
		made := 0
		for _, p := range puppets {
			switch answer := p.hear(); {
			case !strings.HasPrefix(answer, "error"):
				made++
			case !strings.Contains(answer, state.ErrNamed.Error()):
				t.Fatal(answer)
			}
		}
		if made != 1 {
			t.Fatalf("%s: %d tasks were made", name, made)
		}
	}
}

// Nested tasks that lost their owners end with the attempt that made them, however deep.
func TestCancelNested(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	nest := func(parent *task.Task, name string) *task.Task {
		tk := newTask()
		tk.Parent, tk.Name = parent.ID, name
		must(t, claimed(j, tk, epoch))
		must(t, j.Release(tk.Number))
		return tk
	}
	outer := inFlight(t, j)
	lost := nest(outer, "")
	deeper := nest(lost, "")
	kept := nest(outer, "step")
	ended := nest(outer, "")
	within := nest(ended, "")
	must(t, recorded(j, ended, exit(0), succeeded, epoch))
	failing := nest(outer, "")
	stopped := exit(task.ExitSignalBase)
	stopped.Signal = "SIGTERM"
	must(t, recorded(j, failing, stopped, failed, time.Now()))
	stranger := inFlight(t, j)
	living := nest(outer, "")
	if answer := startOn(t, dir).ask("adopt", living.Number); !strings.HasPrefix(answer, "adopted") {
		t.Fatal(answer)
	}
	later := newTask()
	later.Parent, later.CreatedAt = outer.ID, lost.CreatedAt.Add(time.Hour)
	must(t, claimed(j, later, epoch))
	must(t, j.Release(later.Number))
	must(t, j.CancelNested(t.Context(), outer, later.CreatedAt, epoch))
	for tk, want := range map[*task.Task]task.Status{
		outer: task.InFlight, lost: task.Cancelled, deeper: task.Cancelled, kept: task.InFlight,
		ended: task.Succeeded, within: task.Cancelled, stranger: task.InFlight, living: task.InFlight, later: task.InFlight,
	} {
		if got := stored(t, j, tk.ID).Status; got != want {
			t.Errorf("task %d is %s, not %s", tk.Number, got, want)
		}
	}
	left, err := j.Nested(t.Context(), stored(t, j, outer.ID))
	must(t, err)
	for _, tk := range []*task.Task{lost, deeper, within, failing, living} {
		if !slices.ContainsFunc(left, func(n *task.Task) bool { return n.ID == tk.ID }) {
			t.Errorf("task %d is not among what may have left something", tk.Number)
		}
	}
	must(t, j.CancelNested(t.Context(), outer, time.Time{}, epoch))
	if got := stored(t, j, later.ID).Status; got != task.Cancelled {
		t.Errorf("made at any time: got %s, want it cancelled", got)
	}
	if err := recorded(j, lost, exit(0), succeeded, epoch); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("a late owner: %v", err)
	}
}

// Who runs a task of a name on a journal that was set aside still runs it.
func TestANameThatRunsOnAJournalSetAsideIsTaken(t *testing.T) {
	dir := t.TempDir()
	p := startOn(t, dir)
	p.ask("name", "nightly")
	aside := filepath.Join(dir, asidePrefix+"then")
	must(t, os.Mkdir(aside, 0o700))
	must(t, os.Rename(filepath.Join(dir, lock.OwnersFile), filepath.Join(aside, lock.OwnersFile)))
	j := openIn(t, dir)
	if owned, pid, err := j.OwnName("nightly"); owned || pid != p.pid() || err != nil {
		t.Errorf("got %v, %d, %v", owned, pid, err)
	}
	if owned, _, err := j.OwnName("hourly"); !owned || err != nil {
		t.Errorf("another name: %v, %v", owned, err)
	}
	p.kill()
	// From another process: who was refused has kept nothing of the name.
	if answer := startOn(t, dir).ask("name", "nightly"); answer != "true 0" {
		t.Errorf("after its death: %s", answer)
	}
}

// A process whose journal is set aside between its opening and its run keeps its names, and takes none that runs on the
// new journal.
func TestNamesAreOwnedAcrossJournals(t *testing.T) {
	dir := t.TempDir()
	p := startOn(t, dir)
	aside := filepath.Join(dir, asidePrefix+"then")
	must(t, os.Mkdir(aside, 0o700))
	must(t, os.Rename(filepath.Join(dir, lock.OwnersFile), filepath.Join(aside, lock.OwnersFile)))
	j := openIn(t, dir)
	if owned, _, err := j.OwnName("daily"); !owned || err != nil {
		t.Errorf("got %v, %v, want the name", owned, err)
	}
	for name, want := range map[string]string{
		"nightly": "true 0", "hourly": "true 0", "daily": fmt.Sprint("false ", os.Getpid()),
	} {
		if got := p.ask("name", name); got != want {
			t.Errorf("%s on the old journal: got %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"nightly", "hourly"} {
		if owned, pid, err := j.OwnName(name); owned || pid != p.pid() || err != nil {
			t.Errorf("%s on the new journal: got %v, %d, %v, want it owned by %d", name, owned, pid, err, p.pid())
		}
	}
}

// A backup program, say, locks whole files. No number is free then, however long one looks.
func TestAnotherProcessHoldsAllLocks(t *testing.T) {
	dir := t.TempDir()
	p := startOn(t, dir)
	f, err := os.OpenFile(filepath.Join(dir, lock.OwnersFile), os.O_RDWR, 0)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	// The writers' queue stays free: a process waits for that.
	must(t, syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Len: 1 << 60}))
	p.tell("create", "")
	if got, want := p.hear(), "another process holds all of owners.lock"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

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
	tasks, err := storetest.List(j, state.Filter{})
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
	tasks, err := storetest.List(j, state.Filter{})
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

// puppetVariable turns the test binary into a puppet: a process that does on the journal what its test tells it, line
// by line, and answers each order with one line.
const puppetVariable = "RETRY_STATE_PUPPET"

func TestMain(m *testing.M) {
	if os.Getenv(puppetVariable) != "" {
		os.Exit(perform(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// perform ends with its input, so that no puppet outlives its test.
func perform(orders io.Reader, answers io.Writer) int {
	a := &actor{orders: orders, answers: answers}
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		verb, arg, _ := strings.Cut(lines.Text(), " ")
		answer, err := a.act(verb, arg)
		if err != nil {
			answer = "error " + strconv.Quote(err.Error())
		}
		_, _ = fmt.Fprintln(answers, answer)
	}
	return 0
}

// actor is the state of a puppet.
type actor struct {
	journal *Journal
	queue   *Queue
	changes <-chan state.Change
	worker  int64
	orders  io.Reader
	answers io.Writer
}

func (a *actor) act(verb, arg string) (answer string, err error) {
	ctx := context.Background()
	number, _ := strconv.ParseInt(arg, 10, 64) // of the orders that have one
	switch verb {
	case "umask":
		syscall.Umask(0)
	case "prepare":
		if err = lock.CreateDir(arg); err == nil {
			err = lock.CreateFiles(arg, DatabaseName, lock.OwnersFile)
		}
	case "upgrade":
		migrations = append(migrations, nextStep)
	case "open":
		a.journal, err = Open(ctx, arg)
	case "close":
		err = a.journal.Close()
	case "create":
		return a.create(arg)
	case "name":
		owned, pid, err := a.journal.OwnName(arg)
		return fmt.Sprint(owned, " ", pid), err
	case "visit":
		return a.visit(arg)
	case "adopt":
		return a.adopt(number)
	case "release":
		err = a.journal.Release(number)
	case "owner":
		pid, err := a.journal.Owner(number)
		return strconv.Itoa(pid), err
	case "part":
		_, err = a.part(number)
	case "keep":
		err = a.keep(number)
	case "write":
		return "", a.write()
	default:
		return a.actOnQueue(verb, arg)
	}
	return "done", err
}

func (a *actor) create(name string) (string, error) {
	tk := newTask()
	tk.Name = name
	err := claimed(a.journal, tk, time.Now())
	return fmt.Sprint(tk.Number, " ", tk.ID), err
}

// visit is a whole process's use of the journal.
func (a *actor) visit(dir string) (answer string, err error) {
	if a.journal, err = Open(context.Background(), dir); err != nil {
		return "", err
	}
	answer, err = a.create("")
	return answer, errors.Join(err, a.journal.Close())
}

func (a *actor) adopt(number int64) (string, error) {
	tk, err := a.journal.Adopt(context.Background(), number)
	switch {
	case errors.Is(err, state.ErrOwned):
		return "owned", nil
	case errors.Is(err, state.ErrFinished):
		return "finished", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprint("adopted ", tk.Status, " ", tk.AttemptCount), nil
}

func (a *actor) task(number int64) (*task.Task, error) {
	return a.journal.one(context.Background(), selectTasks+"WHERE t.number = ?", number)
}

// part keeps the beginning of a task's stdin.
func (a *actor) part(number int64) (*os.File, error) {
	tk, err := a.task(number)
	if err != nil {
		return nil, err
	}
	file, err := a.journal.KeepInput(tk)
	if err == nil {
		_, err = file.WriteString("part")
	}
	return file, err
}

// keep keeps the whole.
func (a *actor) keep(number int64) error {
	file, err := a.part(number)
	if err != nil {
		return err
	}
	tk, err := a.task(number)
	if err != nil {
		return err
	}
	return a.journal.CompleteInput(tk, file)
}

// write takes tasks through their attempts until it is killed. Each line acknowledges a commit: the task and how many
// of its writes there were.
func (a *actor) write() error {
	go func() {
		_, _ = io.Copy(io.Discard, a.orders)
		os.Exit(0)
	}()
	for {
		tk, writes := newTask(), 0
		for _, d := range []task.Decision{retryIn(time.Second), retryIn(time.Second), succeeded} {
			steps := []func() error{
				func() error { return claimed(a.journal, tk, time.Now()) },
				func() error { return recorded(a.journal, tk, exit(1), d, time.Now()) },
			}
			for _, step := range steps {
				if err := step(); err != nil {
					return err
				}
				writes++
				_, _ = fmt.Fprintln(a.answers, tk.ID, writes)
			}
		}
	}
}

// puppet is a running puppet, seen from its test.
type puppet struct {
	t       *testing.T
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
	killed  bool
}

func startPuppet(t *testing.T) *puppet {
	t.Helper()
	testkit.Slow(t, "it starts many processes")
	p := &puppet{t: t, cmd: exec.Command(os.Args[0])}
	// The race detector would have each puppet sleep for a second before it exits.
	p.cmd.Env = append(os.Environ(), puppetVariable+"=1", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	p.cmd.Stderr = os.Stderr
	orders, err := p.cmd.StdinPipe()
	must(t, err)
	answers, err := p.cmd.StdoutPipe()
	must(t, err)
	p.orders, p.answers = orders, bufio.NewScanner(answers)
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.killed {
			return
		}
		_ = p.orders.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("the puppet ended with %v", err) // it panicked, or the race detector found something
		}
	})
	return p
}

// startOn starts a puppet that has the journal open.
func startOn(t *testing.T, dir string) *puppet {
	t.Helper()
	p := startPuppet(t)
	p.ask("open", dir)
	return p
}

func (p *puppet) pid() int { return p.cmd.Process.Pid }

// tell gives an order and does not wait for the answer.
func (p *puppet) tell(order string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.orders, append([]any{order}, args...)...)
	must(p.t, err)
}

// hear returns the next line of the answer.
func (p *puppet) hear() string {
	p.t.Helper()
	if !p.answers.Scan() {
		p.t.Fatalf("the puppet is gone: %v", p.answers.Err())
	}
	return p.answers.Text()
}

// ask fails the test where the puppet answers with an error.
func (p *puppet) ask(order string, args ...any) string {
	p.t.Helper()
	p.tell(order, args...)
	return p.answer(order)
}

// answer fails the test where the answer to an order is an error.
func (p *puppet) answer(order string) string {
	p.t.Helper()
	answer := p.hear()
	if strings.HasPrefix(answer, "error") {
		p.t.Fatalf("%s: %s", order, answer)
	}
	return answer
}

// create returns the number of a task that the puppet has made and owns.
func (p *puppet) create() (number int64, id string) {
	p.t.Helper()
	answer := p.ask("create")
	if _, err := fmt.Sscan(answer, &number, &id); err != nil {
		p.t.Fatalf("create: %s", answer)
	}
	return number, id
}

// kill ends the puppet as kill -9 does, and returns what it had still said.
func (p *puppet) kill() (rest []string) {
	p.t.Helper()
	p.killed = true
	must(p.t, p.cmd.Process.Kill())
	for p.answers.Scan() {
		rest = append(rest, p.answers.Text())
	}
	_ = p.cmd.Wait() // says that it was killed; closes both pipes
	return rest
}

// Its report may be still to come.
func TestATaskWhoseOwnerLivesIsNotPruned(t *testing.T) {
	dir := t.TempDir()
	j := openIn(t, dir)
	owner := startOn(t, dir)
	owned, _ := owner.create()
	must(t, j.Cancel(t.Context(), owned, epoch.AddDate(0, 0, -1)))
	ended(t, j, succeeded, 1, epoch, nil)
	if n, _ := prune(t, j, state.Retention{Rows: leastRows}); n != 1 || !slices.Equal(left(t, j), []int64{owned}) {
		t.Errorf("%d went, left are %v", n, left(t, j))
	}
	owner.kill()
	if n, _ := prune(t, j, state.Retention{}); n != 1 {
		t.Errorf("%d went", n)
	}
}
