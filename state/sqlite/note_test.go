package sqlite

import (
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

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

// What a dead owner noted leads the resume to what is left, and is still there for the next one where that resume dies too.
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
