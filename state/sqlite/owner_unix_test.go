//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
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

// An owner may finish its task and die between the moment that a reader saw the row and the moment that it asks for the owner.
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
		return tk
	}
	outer := inFlight(t, j)
	lost := nest(outer, "")
	deeper := nest(lost, "")
	kept := nest(outer, "step")
	ended := nest(outer, "")
	must(t, recorded(j, ended, exit(0), succeeded, epoch))
	stranger := inFlight(t, j)
	living := nest(outer, "")
	must(t, j.Release(living.Number))
	if answer := startOn(t, dir).ask("adopt", living.Number); !strings.HasPrefix(answer, "adopted") {
		t.Fatal(answer)
	}
	must(t, j.CancelNested(t.Context(), outer, epoch))
	for tk, want := range map[*task.Task]task.Status{
		outer: task.InFlight, lost: task.Cancelled, deeper: task.Cancelled, kept: task.InFlight,
		ended: task.Succeeded, stranger: task.InFlight, living: task.InFlight,
	} {
		if got := stored(t, j, tk.ID).Status; got != want {
			t.Errorf("task %d is %s, not %s", tk.Number, got, want)
		}
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
