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

// named returns a new task with a name, its first attempt in flight.
func named(t tester, j *Journal, name string) *task.Task {
	t.Helper()
	tk := newTask()
	tk.Name = name
	must(t, claimed(j, tk, epoch))
	return tk
}

// Of the unfinished tasks only one has a name; of the finished ones any number.
func TestANameHasOneUnfinishedTask(t *testing.T) {
	j := open(t)
	first := named(t, j, "nightly")
	second := newTask()
	second.Name = "nightly"
	if err := claimed(j, second, epoch); !errors.Is(err, state.ErrNamed) || second.Number != 0 {
		t.Errorf("a second one: %v, number %d", err, second.Number)
	}
	named(t, j, "hourly")
	inFlight(t, j)
	inFlight(t, j)
	must(t, recorded(j, first, exit(1), retryIn(0), epoch))
	if err := claimed(j, second, epoch); !errors.Is(err, state.ErrNamed) {
		t.Errorf("while the first waits: %v", err)
	}
	apply(t, j, first, claiming(), recording(succeeded))
	must(t, claimed(j, second, epoch))
}

func TestNamedAndSuccess(t *testing.T) {
	j := open(t)
	check := func(when string, unfinished, success int64) {
		t.Helper()
		u, err := j.Named(t.Context(), "nightly")
		must(t, err)
		s, err := j.Success(t.Context(), "nightly")
		must(t, err)
		for _, pair := range []struct {
			got  *task.Task
			want int64
		}{{u, unfinished}, {s, success}} {
			if (pair.got == nil) != (pair.want == 0) || (pair.got != nil && pair.got.Number != pair.want) {
				t.Errorf("%s: got %+v, want number %d", when, pair.got, pair.want)
			}
		}
	}
	must(t, recorded(j, named(t, j, "hourly"), exit(0), succeeded, epoch))
	check("another name", 0, 0)
	first := named(t, j, "nightly")
	check("in flight", 2, 0)
	must(t, recorded(j, first, exit(0), succeeded, epoch))
	check("a success", 0, 2)
	second := named(t, j, "nightly")
	must(t, recorded(j, second, exit(1), retryIn(0), epoch))
	check("a later one waits", 3, 2)
	must(t, settled(j, second, cancelled, epoch))
	check("it was cancelled", 0, 2)
	must(t, recorded(j, named(t, j, "nightly"), exit(0), succeeded, epoch))
	check("the newest success counts", 0, 4)
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

// A task that was requeued begins anew, and remembers that it is not new.
func TestRequeue(t *testing.T) {
	j := open(t)
	for name, end := range map[string]task.Decision{"succeeded": succeeded, "failed": failed, "exhausted": exhausted, "cancelled": cancelled} {
		t.Run(name, func(t *testing.T) {
			tk := waiting(t, j)
			apply(t, j, tk, claiming(), recording(end))
			later := epoch.Add(time.Hour)
			must(t, j.Requeue(t.Context(), tk, later))
			must(t, j.Release(tk.Number))
			got, err := j.Adopt(t.Context(), tk.Number)
			must(t, err)
			want := *tk
			want.Status, want.Reason, want.FinishedAt, want.NextAttemptAt = task.Pending, "", time.Time{}, later
			want.RequeuedAt, want.RequeuedAfter = later, 2
			if showTask(got) != showTask(&want) {
				t.Errorf("got %s\nwant %s", showTask(got), showTask(&want))
			}
			if h := got.History; h.Counted+h.Own.Step+h.Successes != 0 || !h.Began.Equal(got.RequeuedAt) || got.Last.Number != 2 {
				t.Errorf("the history is %+v, the last attempt %d", h, got.Last.Number)
			}
			apply(t, j, got, claiming(), recording(retryIn(0)))
			must(t, j.Release(tk.Number))
			again, err := j.Adopt(t.Context(), tk.Number)
			if err != nil || again.History.Counted != 1 || again.AttemptCount != 3 {
				t.Errorf("after one more attempt: %+v, %v", again.History, err)
			}
		})
	}
}

func TestWhatCannotBeRequeued(t *testing.T) {
	j := open(t)
	ended := named(t, j, "nightly")
	must(t, recorded(j, ended, exit(0), succeeded, epoch))
	replayed := newTask()
	replayed.Options.Stdin = task.StdinReplay
	must(t, claimed(j, replayed, epoch))
	must(t, recorded(j, replayed, exit(0), succeeded, epoch))
	named(t, j, "nightly")
	for name, test := range map[string]struct {
		task *task.Task
		want error
	}{
		"in flight":               {inFlight(t, j), state.ErrUnfinished},
		"waiting":                 {waiting(t, j), state.ErrUnfinished},
		"its name is taken":       {ended, state.ErrNamed},
		"its stdin was dropped":   {replayed, state.ErrInputDropped},
		"unknown to this journal": {&task.Task{Number: 99}, state.ErrNotFound},
	} {
		before := dump(t, j)
		if err := j.Requeue(t.Context(), test.task, epoch); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if after := dump(t, j); after != before {
			t.Errorf("%s: changed\n%s\nto\n%s", name, before, after)
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
