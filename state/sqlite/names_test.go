//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/task"
)

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
