package sqlite

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

// saying is an outcome with captured output.
func saying(code int, stdout, stderr string) task.Outcome {
	return task.Outcome{Exit: code, Stdout: stdout, Stderr: stderr}
}

// said is the captured output of a task's attempts, as the journal has it.
func said(t tester, j *Journal, tk *task.Task) (all []string) {
	t.Helper()
	for _, a := range attempts(t, j, tk.Number) {
		all = append(all, fmt.Sprintf("%d %q %q", a.Number, a.Outcome.Stdout, a.Outcome.Stderr))
	}
	return all
}

// A task that is tried for ever does not fill the disk with what it says.
func TestOnlyTheLastTailsAreKept(t *testing.T) {
	j := open(t)
	tk, other := inFlight(t, j), inFlight(t, j)
	must(t, recorded(j, other, saying(1, "other", ""), retryIn(0), epoch))
	for range keptTails + 5 {
		must(t, recorded(j, tk, saying(1, fmt.Sprint("attempt ", tk.AttemptCount), ""), retryIn(0), epoch))
		must(t, claimed(j, tk, epoch))
	}
	all := said(t, j, tk)
	if first, last := all[5], all[keptTails+4]; all[4] != `5 "" ""` || first != `6 "attempt 6" ""` || last != `105 "attempt 105" ""` {
		t.Errorf("kept %q", all[3:])
	}
	if got := said(t, j, other); got[0] != `1 "other" ""` {
		t.Errorf("of another task: %q", got)
	}
}

func TestTailsComeBackUnchanged(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	const nasty = "\x1b]0;title\x07\x1b[2J\u202e\u009b\xff\xc3\xed\xa0\x80\r\n"
	tests := map[string]struct{ stdout, stderr string }{
		"both":             {"out\n", "err\n"},
		"stdout alone":     {"out", ""},
		"stderr alone":     {"", "err"},
		"one file":         {"same\n", "same\n"},
		"NUL":              {"\x00", "a\x00b\x00"},
		"every byte":       {string(every), string(every)},
		"nasty":            {nasty, strings.Repeat(nasty, 100)},
		"a blank":          {" ", "\n"},
		"cut in a rune":    {"\x9c\x93 ok", "日本\xe6\x97"},
		"as long as it is": {strings.Repeat("\xfe", 8<<10), strings.Repeat("x", 1<<20)},
	}
	j := open(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tk := inFlight(t, j)
			must(t, recorded(j, tk, saying(1, test.stdout, test.stderr), retryIn(0), epoch))
			if got := attempts(t, j, tk.Number)[0].Outcome; got.Stdout != test.stdout || got.Stderr != test.stderr {
				t.Errorf("got %.99q, %.99q", got.Stdout, got.Stderr)
			}
		})
	}
}

// Each attempt has its own, whatever its decision, and no other's; what was not captured has no row.
func TestTailsAreThereOnlyWhereCaptured(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		_, err := rawExec(j, "DELETE FROM tasks")
		must(t, err)
		bytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
		tasks, want, rows := []*task.Task{inFlight(t, j), inFlight(t, j)}, map[int64][]string{}, 0
		for number := range rapid.IntRange(1, 4).Draw(t, "attempts") {
			for _, tk := range tasks {
				if number > 0 {
					must(t, claimed(j, tk, epoch))
				}
				o := saying(1, bytes.Draw(t, "stdout"), bytes.Draw(t, "stderr"))
				must(t, recorded(j, tk, o, rapid.SampledFrom([]task.Decision{retryIn(time.Hour), interrupted}).Draw(t, "decision"), epoch))
				want[tk.Number] = append(want[tk.Number], fmt.Sprintf("%d %q %q", number+1, o.Stdout, o.Stderr))
				if o.Stdout != "" || o.Stderr != "" {
					rows++
				}
			}
		}
		for _, tk := range tasks {
			if got := said(t, j, tk); strings.Join(got, "\n") != strings.Join(want[tk.Number], "\n") {
				t.Fatalf("task %d: got %q, want %q", tk.Number, got, want[tk.Number])
			}
		}
		if n := count(t, j, "tails"); n != rows {
			t.Fatalf("%d rows for %d attempts with output", n, rows)
		}
	})
}

// What is read for a decision or a table leaves them out: they can be much.
func TestTailsAreNotLoadedWhereTheyAreNotShown(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	must(t, recorded(j, tk, saying(1, "out", "err"), retryIn(time.Minute), epoch))
	for query, got := range read(t, j, tk) {
		if o := got.Last.Outcome; got.Last.Number != 1 || o.Exit != 1 || o.Stdout+o.Stderr != "" {
			t.Errorf("%s: %+v", query, o)
		}
	}
}

func TestTailsGoWithTheirAttempt(t *testing.T) {
	tests := map[string]struct {
		statement string
		left      []int
	}{
		"an attempt": {"DELETE FROM attempts WHERE task = 1 AND number = 2", []int{1, 1}},
		"a task":     {"DELETE FROM tasks WHERE number = 1", []int{0, 1}},
		"all":        {"DELETE FROM tasks", []int{0, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			first, second := inFlight(t, j), inFlight(t, j)
			must(t, recorded(j, first, saying(1, "1", ""), retryIn(0), epoch))
			must(t, claimed(j, first, epoch))
			must(t, recorded(j, first, saying(1, "2", ""), retryIn(0), epoch))
			must(t, recorded(j, second, saying(1, "3", ""), retryIn(0), epoch))
			_, err := rawExec(j, test.statement)
			must(t, err)
			for i, want := range test.left {
				if n := count(t, j, fmt.Sprint("tails WHERE task = ", i+1)); n != want {
					t.Errorf("%d of task %d are left, want %d", n, i+1, want)
				}
			}
			integrity(t, j)
		})
	}
}

// No tail without its attempt, however it came about.
func TestATailNeedsItsAttempt(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	for _, number := range []int{0, 2} {
		if _, err := rawExec(j, "INSERT INTO tails VALUES (?, ?, x'', x'')", tk.Number, number); err == nil {
			t.Errorf("written for attempt %d", number)
		}
	}
}

// A write that fails at the tails has not written the decision either.
func TestAFailedTailLeavesNothingBehind(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	before := dump(t, j)
	fail(t, j, "INSERT ON tails")
	if err := recorded(j, tk, saying(0, "out", ""), succeeded, epoch); err == nil || errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v", err)
	}
	if after := dump(t, j); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
}

// An owner that learns of the cancellation only now has still something to tell, once.
func TestTailsOfACancelledAttempt(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	must(t, j.Cancel(t.Context(), tk.Number, epoch))
	for range 2 {
		if err := recorded(j, tk, saying(143, "out", "\x00"), interrupted, epoch); !errors.Is(err, task.ErrNotOwner) {
			t.Errorf("got %v", err)
		}
		if got := said(t, j, tk); len(got) != 1 || got[0] != `1 "out" "\x00"` {
			t.Errorf("got %q", got)
		}
	}
}

// A writer that is too late, and has nothing to add, adds no tail either.
func TestALateWriterAddsNoTail(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	stale := *tk
	apply(t, j, tk, recording(interrupted), claiming())
	refuses(t, j, stale, write{Name: "record", Do: func(j state.Store, tk *task.Task) error {
		return recorded(j, tk, saying(0, "late", "late"), succeeded, epoch)
	}})
}

func TestTailsOfAnEndThatIsCaughtUp(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	tk.AttemptCount = 3
	tk.ApplyDecision(task.Attempt{Number: 3, StartedAt: epoch, Outcome: saying(0, "out", "err"), Decision: succeeded}, epoch)
	must(t, j.CatchUp(t.Context(), tk))
	if got := said(t, j, tk); len(got) != 2 || got[1] != `3 "out" "err"` {
		t.Errorf("got %q", got)
	}
}

// notes are what the attempts of a task have as their process.
func notes(t tester, j *Journal, tk *task.Task) (all []string) {
	t.Helper()
	for _, a := range attempts(t, j, tk.Number) {
		all = append(all, a.Process)
	}
	return all
}

func checkNotes(t *testing.T, j *Journal, tk *task.Task, want ...string) {
	t.Helper()
	got := notes(t, j, tk)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// It is noted of the attempt in flight alone, and stays with it whatever the attempt comes to.
func TestNoteIsOfTheAttemptInFlight(t *testing.T) {
	j := open(t)
	tk, other := inFlight(t, j), inFlight(t, j)
	must(t, j.NoteProcess(t.Context(), tk, "first"))
	apply(t, j, tk, recording(retryIn(0)), claiming())
	checkNotes(t, j, tk, "first", "")
	must(t, j.NoteProcess(t.Context(), tk, "second"))
	must(t, j.NoteProcess(t.Context(), tk, "second, corrected"))
	apply(t, j, tk, recording(succeeded))
	checkNotes(t, j, tk, "first", "second, corrected")
	checkNotes(t, j, other, "")
}

// A note is late where the attempt was decided on, by whomever: it would lead a resume to processes of another.
func TestALateNoteChangesNothing(t *testing.T) {
	tests := map[string][]write{
		"succeeded":            {recording(succeeded)},
		"waits":                {recording(retryIn(time.Minute))},
		"interrupted":          {recording(interrupted)},
		"cancelled by another": {cancelling()},
		"taken over":           {recording(interrupted), claiming()},
		"caught up":            {catchingUp()},
	}
	for name, meanwhile := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			tk := inFlight(t, j)
			stale := *tk
			apply(t, j, tk, meanwhile...)
			before := dump(t, j)
			must(t, j.NoteProcess(t.Context(), &stale, "late"))
			if after := dump(t, j); after != before {
				t.Errorf("changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

// A task that never reached the journal, or has not reached that attempt, has nothing to be noted of.
func TestNoteOfAnUnknownAttemptWritesNothing(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	before := dump(t, j)
	ahead := *tk
	ahead.AttemptCount++
	must(t, j.NoteProcess(t.Context(), &ahead, "x"))
	must(t, j.NoteProcess(t.Context(), newTask(), "x"))
	if after := dump(t, j); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
}

// What is noted at the start is there where the owner died before it stored that, and for that attempt alone.
func TestTheProcessIsNotedAtTheStart(t *testing.T) {
	j := open(t)
	tk, other := inFlight(t, j), inFlight(t, j)
	j.NoteStart(tk, "early")
	checkAdopted := func(want string) {
		t.Helper()
		found, err := j.Find(t.Context(), tk.ID)
		must(t, err)
		adopted, err := j.Adopt(t.Context(), tk.Number)
		must(t, err)
		if found.Last.Process != want || adopted.Last.Process != want {
			t.Errorf("got %q found, %q adopted, want %q", found.Last.Process, adopted.Last.Process, want)
		}
	}
	checkAdopted("early")
	j.NoteStart(other, "of another")
	checkAdopted("early")
	j.NoteStart(tk, strings.Repeat("x", 4096))
	checkAdopted("early")
	must(t, j.NoteProcess(t.Context(), tk, "stored"))
	checkAdopted("stored")
	for range 3 { // attempts
		apply(t, j, tk, recording(retryIn(0)), claiming())
		checkAdopted("")
		j.NoteStart(tk, "early again")
		checkAdopted("early again")
	}
}

// An attempt that began while the journal could not be written has left its note alone.
func TestNoteOfALaterAttempt(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	later := *tk
	later.AttemptCount = 2
	j.NoteStart(&later, "of the second")
	found, err := j.Find(t.Context(), tk.ID)
	must(t, err)
	if found.Last.Later != 2 || found.Last.Process != "of the second" {
		t.Errorf("got %+v, want the note of attempt 2", found.Last)
	}
	later.ID = "other"
	j.NoteStart(&later, "of another task")
	if found, err = j.Find(t.Context(), tk.ID); err != nil || found.Last.Later != 0 {
		t.Errorf("got %+v, %v, want no later attempt", found, err)
	}
	apply(t, j, tk, recording(retryIn(0)))
	later.ID = tk.ID
	j.NoteStart(&later, "of the second")
	must(t, j.Cancel(t.Context(), tk.Number, epoch))
	if found, err = j.Find(t.Context(), tk.ID); err != nil || !found.Last.CutOff() || found.Last.Number != 2 ||
		found.Last.Process != "of the second" {
		t.Errorf("cancelled in its wait: got %+v, %v, want attempt 2 written", found, err)
	}
	must(t, j.Release(tk.Number))
	if cut, err := j.CutOff(t.Context(), state.Retention{}, 0); tk.Name != "" && (err != nil || len(cut) != 1) {
		t.Errorf("got %v, %v, want it kept for what it has left", cut, err)
	}
}

// The first attempt of a task that was stored to wait is known by its note as well, and a resume writes it.
func TestNoteOfAFirstAttempt(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, j.Create(t.Context(), tk, nil))
	begun := *tk
	begun.AttemptCount = 1
	j.NoteStart(&begun, "of the first")
	if found := stored(t, j, tk.ID); !found.Last.CutOff() || found.Last.Latest() != 1 ||
		found.Last.Process != "of the first" {
		t.Errorf("got %+v, want the note of attempt 1", found.Last)
	}
	must(t, j.NoteAssumed(t.Context(), stored(t, j, tk.ID), "it has ended"))
	if found := stored(t, j, tk.ID); found.Last.Process != "it has ended" {
		t.Errorf("got %+v, want what a user has said", found.Last)
	}
	j.NoteStart(&begun, "of the first")
	must(t, j.Release(tk.Number))
	adopted, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	if adopted.Status != task.InFlight || adopted.AttemptCount != 1 || adopted.Last.Process != "of the first" {
		t.Errorf("got %+v, want attempt 1 in flight", adopted)
	}
}

// An add in place of such a run writes the attempt, too, by which a prune knows what to keep.
func TestReplaceWritesALaterAttempt(t *testing.T) {
	q := openQueue(t)
	tk := storetest.Named(t, q.Journal, "nightly")
	apply(t, q.Journal, tk, recording(retryIn(0)))
	begun := *tk
	begun.BeginAttempt()
	q.NoteStart(&begun, "of the second")
	must(t, q.Release(tk.Number))
	later := queuedRequest(0)
	later.Name = "nightly"
	cancelled, err := q.Replace(t.Context(), later, tk)
	must(t, err)
	if found := stored(t, q.Journal, tk.ID); !cancelled || found.Last.Number != 2 ||
		found.Last.Process != "of the second" {
		t.Errorf("got %v, %+v, want it cancelled with attempt 2", cancelled, found.Last)
	}
}

// A requeue of a cancelled outer task ends what is nested in it, and writes its late attempt before.
func TestRequeueWritesALaterAttemptOfANestedTask(t *testing.T) {
	j := open(t)
	outer := inFlight(t, j)
	nested := newTask()
	nested.Parent = outer.ID
	must(t, claimed(j, nested, epoch))
	apply(t, j, nested, recording(retryIn(0)))
	nested.BeginAttempt()
	must(t, errors.Join(j.Cancel(t.Context(), outer.Number, epoch), j.Release(outer.Number)))
	j.NoteStart(nested, "of the second")
	must(t, errors.Join(j.Release(nested.Number), j.Requeue(t.Context(), stored(t, j, outer.ID), epoch)))
	if found := stored(t, j, nested.ID); found.Status != task.Cancelled || found.Last.Number != 2 ||
		found.Last.Process != "of the second" {
		t.Errorf("got %+v, want it cancelled with attempt 2", found)
	}
}

// A success that is kept beside the journal is written before another process cancels the task.
func TestCancelAfterAKeptEnd(t *testing.T) {
	for name, cancel := range map[string]func(q *Queue, number int64) error{
		"a command": func(q *Queue, number int64) error { return q.Journal.Cancel(context.Background(), number, epoch) },
		"a server": func(q *Queue, number int64) error {
			_, err := q.Cancel(context.Background(), number, epoch)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := openQueue(t)
			tk := inFlight(t, q.Journal)
			ended := *tk
			ended.ApplyDecision(task.Attempt{Number: 1, StartedAt: epoch, Decision: succeeded}, epoch)
			must(t, q.KeepEnd(&ended))
			if err := cancel(q, tk.Number); !errors.Is(err, state.ErrFinished) {
				t.Errorf("got %v, want ErrFinished", err)
			}
			if got := stored(t, q.Journal, tk.ID).Status; got != task.Succeeded {
				t.Errorf("got %s, want %s", got, task.Succeeded)
			}
		})
	}
}

// An attempt that began beside a lock, and succeeds after a cancel, is a success for --once.
func TestASuccessAfterTheCancelOfALaterAttempt(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	apply(t, j, tk, recording(retryIn(0)))
	tk.BeginAttempt()
	j.NoteStart(tk, "of the second")
	must(t, j.Cancel(t.Context(), tk.Number, epoch))
	tk.ApplyDecision(task.Attempt{Number: 2, StartedAt: epoch, Decision: succeeded}, epoch)
	if err := j.CatchUp(t.Context(), tk); !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v, want ErrNotOwner", err)
	}
	if all := attempts(t, j, tk.Number); len(all) != 2 || !all[1].Decision.Success {
		t.Errorf("got %+v, want a second attempt with a success", all)
	}
}

// An attempt that began while the journal could not be written is written later, with what came before it.
func TestClaimLate(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, j *Journal, tk *task.Task){
		"the end of the first is there": func(t *testing.T, j *Journal, tk *task.Task) {
			apply(t, j, tk, recording(retryIn(0)))
		},
		"it is not": func(_ *testing.T, _ *Journal, tk *task.Task) {
			tk.ApplyDecision(task.Attempt{Number: 1, StartedAt: epoch, Outcome: saying(7, "", ""), Decision: retryIn(0)}, epoch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			tk := inFlight(t, j)
			before(t, j, tk)
			tk.BeginAttempt()
			for _, token := range []string{"early", "of the second"} {
				must(t, j.ClaimLate(t.Context(), tk, epoch, token))
			}
			checkNotes(t, j, tk, "", "of the second")
			if found := stored(t, j, tk.ID); found.Status != task.InFlight || found.AttemptCount != 2 ||
				attempts(t, j, tk.Number)[0].Decision.Verdict != task.VerdictRetry {
				t.Errorf("got %+v, want the second in flight after a first that is retried", found)
			}
			must(t, j.Cancel(t.Context(), tk.Number, epoch))
			if err := j.ClaimLate(t.Context(), tk, epoch, "late"); !errors.Is(err, task.ErrNotOwner) {
				t.Errorf("after a cancel: got %v, want ErrNotOwner", err)
			}
		})
	}
}

// A task that was stored to wait has its first attempt written later as well, and its budget begins with that.
func TestClaimLateOfTheFirst(t *testing.T) {
	j := open(t)
	tk := newTask()
	must(t, j.Create(t.Context(), tk, nil))
	tk.BeginAttempt()
	tk.CreatedAt = epoch.Add(time.Hour)
	must(t, j.ClaimLate(t.Context(), tk, tk.CreatedAt, "of the first"))
	if found := stored(t, j, tk.ID); found.Status != task.InFlight ||
		!found.CreatedAt.Equal(tk.CreatedAt.Truncate(time.Microsecond)) ||
		found.Last.Process != "of the first" {
		t.Errorf("got %+v, want the first in flight, made an hour later", found)
	}
}

// What a dead owner noted leads the resume to what is left, and is still there for the next one where that resume dies
// too.
func TestTheProcessSurvivesItsOwner(t *testing.T) {
	const token = `{"pid":1,"machine":"\u0000"} ` + "\xff\n'"
	j := open(t)
	tk := inFlight(t, j)
	must(t, j.NoteProcess(t.Context(), tk, token))
	for query, got := range read(t, j, tk) {
		if got.Last.Process != token {
			t.Errorf("%s: the process is %q", query, got.Last.Process)
		}
	}
	adopted, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	must(t, recorded(j, adopted, task.Crashed(), interrupted, epoch))
	again, err := j.Adopt(t.Context(), tk.Number)
	must(t, err)
	if last := again.Last; last.Process != token || last.Decision.Verdict != task.VerdictInterrupted {
		t.Errorf("after the crash was written down: %+v", last)
	}
	must(t, settled(j, again, interrupted, epoch)) // told to stop while it waited for the survivors
	if again, err = j.Adopt(t.Context(), tk.Number); err != nil || again.Last.Process != token || again.Last.Decision.Verdict != task.VerdictInterrupted {
		t.Errorf("after the wait was cut off: %+v, %v", again.Last, err)
	}
}

// A write that fails half way leaves nothing behind, and the journal goes on once the cause is gone.
func TestFailedWritesLeaveNothingBehind(t *testing.T) {
	tests := []struct {
		write write
		task  func(tester, state.Store) *task.Task
		event string
	}{
		{claiming(), func(tester, state.Store) *task.Task { return newTask() }, "INSERT ON attempts"},
		{claiming(), waiting, "INSERT ON attempts"},
		{recording(succeeded), inFlight, "UPDATE ON attempts"},
		{cancelling(), inFlight, "UPDATE ON attempts"},
		{settling(exhausted), waiting, "UPDATE ON tasks"},
	}
	for _, test := range tests {
		t.Run(test.write.Name, func(t *testing.T) {
			j := open(t)
			tk := test.task(t, j)
			before, number := dump(t, j), tk.Number
			fail(t, j, test.event)
			if err := test.write.Do(j, tk); err == nil || errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v", err)
			}
			if after := dump(t, j); after != before || tk.Number != number {
				t.Errorf("task %d; changed\n%s\nto\n%s", tk.Number, before, after)
			}
			_, err := rawExec(j, "DROP TRIGGER failure")
			must(t, err)
			apply(t, j, tk, test.write)
		})
	}
}

// A journal that cannot be written must not look like a task that has ended.
func TestCancelTellsAFailureFromAnEnd(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	fail(t, j, "UPDATE ON tasks")
	if err := j.Cancel(t.Context(), tk.Number, epoch); err == nil || errors.Is(err, state.ErrFinished) {
		t.Errorf("got %v", err)
	}
}

// advance asks task.Transitions before it writes a status. There is no other statement that writes one, but for the
// INSERT of a task.
func TestOneStatementWritesAStatus(t *testing.T) {
	setsStatus := regexp.MustCompile(`(?is)UPDATE tasks SET (?:[^;]*,\s*)?status = .*WHERE`)
	var found []string
	for _, text := range literals(t) {
		if setsStatus.MatchString(text) || strings.Contains(text, "INSERT INTO tasks") || strings.Contains(text, "REPLACE INTO tasks") {
			found = append(found, strings.Join(strings.Fields(text), " ")[:30])
		}
	}
	slices.Sort(found)
	want := []string{"INSERT INTO tasks (number, id,", "UPDATE tasks SET status = ?1, ", "UPDATE tasks SET status = ?1, "}
	if !slices.Equal(found, want) {
		t.Errorf("got the statements %q, want %q", found, want)
	}
}

// literals returns all string literals of the package's own files.
func literals(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		must(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				must(t, err)
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}

// A transaction holds the write lock from its beginning. One that took it later would fail where it has to wait.
func TestTransactionsBeginImmediate(t *testing.T) {
	dir := t.TempDir()
	j, other := openIn(t, dir), openIn(t, dir)
	must(t, j.write(t.Context(), func(*conn.Conn) error {
		if _, err := rawExec(other, "BEGIN IMMEDIATE"); !conn.IsBusy(err) {
			t.Errorf("a second one began: got %v", err)
		}
		return nil
	}))
	must(t, other.write(t.Context(), func(*conn.Conn) error { return nil }))
}

// waitsForSync are tasks that have to survive a power loss before their first attempt starts.
func waitsForSync() map[string]*task.Task {
	tasks := map[string]*task.Task{"named": newTask(), "remembered": newTask(), "a POST": newTask()}
	tasks["named"].Name = "nightly"
	tasks["remembered"].Once = true
	tasks["a POST"].Kind, tasks["a POST"].Command = request.Kind, nil
	tasks["a POST"].Target = &request.Request{Method: "POST", URL: "http://example.org/"}
	return tasks
}

// The disk must have the task before its first attempt starts where others rely on it. A task that could not be synced
// was never acknowledged: no resume may run it.
func TestATaskThatCannotBeSyncedIsForgotten(t *testing.T) {
	required := open(t)
	required.SyncFirst = true
	cases := map[string]*Journal{"--require-state": required}
	tasks := waitsForSync()
	tasks["--require-state"] = newTask()
	for name, tk := range tasks {
		t.Run(name, func(t *testing.T) {
			j := cases[name]
			if j == nil {
				j = open(t)
			}
			j.sync = func() error { return syscall.EIO }
			if err := claimed(j, tk, epoch); !errors.Is(err, syscall.EIO) {
				t.Errorf("got %v, want %v", err, syscall.EIO)
			}
			if left := dump(t, j); left != "" {
				t.Errorf("got\n%s\nwant nothing", left)
			}
			if pid, err := j.owners.Owner(1); pid != 0 || err != nil {
				t.Errorf("got the owner %d, %v, want none", pid, err)
			}
			j.sync = j.syncLog
			must(t, claimed(j, tk, epoch))
		})
	}
}

// Where it cannot be forgotten either, its end is still to be written: a resume would run it again after its success.
func TestATaskThatIsNotSyncedNorForgottenCanEnd(t *testing.T) {
	j := open(t)
	j.SyncFirst = true
	j.sync = func() error { return syscall.EIO }
	fail(t, j, "DELETE ON tasks")
	tk := newTask()
	if err := claimed(j, tk, epoch); !errors.Is(err, syscall.EIO) || tk.Number != 1 {
		t.Fatalf("got %v, task %d, want %v and task 1", err, tk.Number, syscall.EIO)
	}
	tk.AttemptCount, tk.Status = 1, task.InFlight
	tk.ApplyDecision(task.Attempt{Number: 1, StartedAt: epoch, Decision: succeeded}, epoch)
	must(t, j.CatchUp(t.Context(), tk))
	if got := stored(t, j, tk.ID).Status; got != task.Succeeded {
		t.Errorf("got %s, want %s", got, task.Succeeded)
	}
}

// A write succeeds in files that were moved away or removed, but no later command finds it.
func TestAJournalThatWasMovedIsTold(t *testing.T) {
	for name, move := range map[string]func(dir string) error{
		"moved":    func(dir string) error { return os.Rename(dir, dir+".away") },
		"removed":  os.RemoveAll,
		"its WAL":  func(dir string) error { return os.Remove(filepath.Join(dir, DatabaseName+walSuffix)) },
		"replaced": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700), recreate(t, dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			j := openIn(t, filepath.Join(t.TempDir(), "state"))
			tk := inFlight(t, j)
			j.background.Wait()
			must(t, move(j.dir))
			if err := recording(succeeded).Do(j, tk); !errors.Is(err, state.ErrMoved) {
				t.Errorf("got %v, want %v", err, state.ErrMoved)
			}
		})
	}
}

func recreate(t *testing.T, dir string) error {
	j, err := Open(t.Context(), dir)
	if err != nil {
		return err
	}
	return j.Close()
}

// A plain command starts while the disk still writes its task. Its outcome is recorded only when the disk has it.
func TestACommandRunsWhileItsTaskIsSynced(t *testing.T) {
	for name, end := range map[string]write{"record": recording(succeeded), "chain": chaining()} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			synced := make(chan struct{})
			j.sync = func() error { <-synced; return nil }
			tk := inFlight(t, j) // though the disk is not ready
			must(t, j.NoteProcess(t.Context(), tk, "x"))
			ended := make(chan error, 1)
			go func() { ended <- end.Do(j, tk) }()
			select {
			case err := <-ended:
				t.Fatalf("got %v before the task was synced, want a wait", err)
			case <-time.After(10 * time.Millisecond):
			}
			close(synced)
			must(t, <-ended)
		})
	}
}

// An outcome is not told where its task may be lost. What follows can still be written.
func TestAFailedSyncIsAnErrorOfTheEnd(t *testing.T) {
	j := open(t)
	j.sync = func() error { return syscall.EIO }
	tk := inFlight(t, j)
	for _, end := range []write{chaining(), recording(succeeded)} {
		if err := end.Do(j, tk); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: got %v, want %v", end.Name, err, syscall.EIO)
		}
	}
	apply(t, j, tk, recording(succeeded))
}

// What others rely on survives a power loss: that a task with a name has begun, and how it ended, and each attempt of a
// request that is not safe to repeat. Nothing else waits for the disk but the first claim.
func TestWhatWaitsForTheDisk(t *testing.T) {
	asking := func(unsafe bool) func(*task.Task) {
		return func(tk *task.Task) { tk.Kind, tk.Target = storetest.KindRequest, &storetest.Request{Unsafe: unsafe} }
	}
	for name, test := range map[string]struct {
		change func(*task.Task)
		want   []int // syncs after the first claim, before the last attempt, after the end
	}{
		"a name":            {func(tk *task.Task) { tk.Name = "nightly" }, []int{1, 1, 2}},
		"an unsafe request": {asking(true), []int{1, 3, 4}},
		"a safe request":    {asking(false), []int{1, 1, 1}},
		"a command":         {func(*task.Task) {}, []int{1, 1, 1}},
	} {
		j := open(t)
		syncs := 0
		j.sync = func() error { syncs++; return nil }
		tk := newTask()
		test.change(tk)
		must(t, claimed(j, tk, epoch))
		j.background.Wait()
		got := []int{syncs}
		must(t, j.NoteProcess(t.Context(), tk, "x"))
		apply(t, j, tk, recording(retryIn(0)), claiming())
		got = append(got, syncs)
		apply(t, j, tk, recording(succeeded))
		if got = append(got, syncs); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %d syncs, want %d", name, got, test.want)
		}
	}
}

// A claim that the disk has not is taken back: the request is not sent.
func TestAClaimThatCannotBeSynced(t *testing.T) {
	j := open(t)
	tk := newTask()
	tk.Kind, tk.Target = storetest.KindRequest, &storetest.Request{Unsafe: true}
	must(t, claimed(j, tk, epoch))
	apply(t, j, tk, recording(retryIn(0)))
	j.sync = func() error { return syscall.EIO }
	if err := j.Claim(t.Context(), tk, epoch); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want %v", err, syscall.EIO)
	}
	stored, err := j.Find(t.Context(), tk.ID)
	must(t, err)
	if stored.Status != task.Pending || stored.AttemptCount != 1 {
		t.Errorf("got %s after attempt %d, want PENDING after the first", stored.Status, stored.AttemptCount)
	}
}

// The real sync asks the disk for the log.
func TestSyncNeedsTheLog(t *testing.T) {
	j := open(t)
	inFlight(t, j)
	j.background.Wait()
	must(t, j.syncLog())
	must(t, os.Remove(filepath.Join(j.dir, DatabaseName)+walSuffix))
	if err := j.syncLog(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

// A success under a cancel that cannot be written is kept beside the journal: --once relies on it.
func TestASuccessUnderACancelIsKept(t *testing.T) {
	j := open(t)
	tk := storetest.Named(t, j, "nightly")
	must(t, j.Cancel(t.Context(), tk.Number, storetest.Epoch))
	fail(t, j, "UPDATE ON attempts")
	err := storetest.Recorded(j, tk, storetest.Exit(0), storetest.Succeeded, storetest.Epoch)
	if !errors.Is(err, task.ErrNotOwner) {
		t.Errorf("got %v, want %v", err, task.ErrNotOwner)
	}
	if found, err := openIn(t, j.dir).Success(t.Context(), "nightly"); err != nil || found == nil || found.ID != tk.ID {
		t.Errorf("got %+v, %v, want the success", found, err)
	}
}

// The name of the file that keeps an end has room for the longest one.
func TestTheLongestEndIsKept(t *testing.T) {
	j := open(t)
	tk := newTask()
	at := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	tk.ID, tk.Number, tk.AttemptCount, tk.RequeuedAt = strings.Repeat("x", 36), 1e12, 1e9, at
	tk.Status, tk.Reason, tk.FinishedAt = task.Exhausted, task.ReasonNotEligible, at
	tk.Last = task.Attempt{
		Number: 1e9, StartedAt: at, Decision: task.Decision{Verdict: task.VerdictExhausted},
		Outcome: task.Outcome{Exit: 255, Signal: "SIGVTALRM", Error: task.ErrorNotExecutable, Duration: 1e17},
	}
	must(t, j.KeepEnd(tk))
}
