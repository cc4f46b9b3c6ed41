package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func figures(t *testing.T, j *Journal) task.JournalFigures {
	t.Helper()
	f, err := j.Figures(t.Context())
	must(t, err)
	return f
}

func TestFiguresOfAnEmptyJournal(t *testing.T) {
	f := figures(t, open(t))
	if len(f.Tasks) != 6 || f.Attempts+f.Interrupted != 0 || !f.OldestUnfinished.IsZero() || f.Waiting != 0 || len(f.Names) > 0 {
		t.Errorf("got %+v", f)
	}
	if f.DatabaseBytes == 0 {
		t.Error("the file has no size")
	}
}

// A journal that does not exist yet is nowhere, not in the working directory.
func TestFiguresOfNoJournal(t *testing.T) {
	t.Chdir(closedJournal(t))
	j, err := OpenEmpty()
	must(t, err)
	defer func() { must(t, j.Close()) }()
	if f := figures(t, j); f.DatabaseBytes != 0 || len(f.Tasks) != 6 {
		t.Errorf("got %+v", f)
	}
}

func TestFiguresCount(t *testing.T) {
	j := open(t)
	for i, d := range []task.Decision{succeeded, failed, failed, exhausted, exhausted, exhausted, cancelled} {
		ended(t, j, d, i+1, epoch, nil)
	}
	for hours := range 3 {
		tk := newTask()
		tk.CreatedAt = epoch.Add(-time.Duration(hours) * time.Hour)
		must(t, claimed(j, tk, epoch))
		must(t, j.Release(tk.Number))
	}
	must(t, j.Release(waiting(t, j).Number))
	f := figures(t, j)
	want := map[task.Status]int{
		task.Succeeded: 1, task.Failed: 2, task.Exhausted: 3, task.Cancelled: 1, task.InFlight: 3, task.Pending: 1,
	}
	if fmt.Sprint(f.Tasks) != fmt.Sprint(want) || f.Attempts != 28+4 || f.Interrupted != 4 {
		t.Errorf("got %+v", f)
	}
	if showTime(f.OldestUnfinished) != showTime(epoch.Add(-2*time.Hour)) {
		t.Errorf("the oldest unfinished one was made at %s", f.OldestUnfinished)
	}
	if f.WALBytes == 0 {
		t.Error("the log has no size")
	}
}

// Of each name the last run that ended of itself, whatever came in which order; a cancelled one says nothing of the command.
func TestFiguresOfNames(t *testing.T) {
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	tests := map[string]struct {
		tasks func(j *Journal, name func(*task.Task))
		want  string
	}{
		"a success": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, failed, 1, at(1), name)
			ended(t, j, succeeded, 2, at(2), name)
		}, "succeeded at 2 after 2m0s, 2 attempts; success at 2"},
		"a failure": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, succeeded, 2, at(1), name)
			ended(t, j, exhausted, 3, at(3), name)
			ended(t, j, cancelled, 1, at(4), name)
		}, "failed at 3 after 3m0s, 3 attempts; success at 1"},
		"made later, ended earlier": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, failed, 1, at(9), name)
			ended(t, j, succeeded, 1, at(5), name)
		}, "failed at 9 after 9m0s, 1 attempts; success at 5"},
		"never ended": {func(j *Journal, name func(*task.Task)) {
			ended(t, j, cancelled, 1, at(4), name)
		}, "never"},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			j := open(t)
			ended(t, j, succeeded, 1, at(99), nil) // without a name
			ended(t, j, succeeded, 1, at(99), running("other", "x"))
			test.tasks(j, running("nightly", "x"))
			f := figures(t, j)
			if len(f.Names) != 2 || f.Names[0].Name != "nightly" || f.Names[1].Name != "other" {
				t.Fatalf("got %+v", f.Names)
			}
			if got := showName(f.Names[0]); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func showName(n task.NameFigures) string {
	if n.FinishedAt.IsZero() {
		return "never"
	}
	minute := func(at time.Time) int { return int(at.Sub(epoch.Truncate(time.Microsecond)).Minutes()) }
	verdict := map[bool]string{true: "succeeded", false: "failed"}[n.Succeeded]
	return fmt.Sprintf("%s at %d after %s, %d attempts; success at %d", verdict, minute(n.FinishedAt), n.Duration, n.Attempts, minute(n.LastSuccess))
}

// A million tasks without a name cost nothing here.
func TestNamesAreFoundByTheirIndex(t *testing.T) {
	for _, step := range planOf(t, open(t), selectNames) {
		if strings.HasPrefix(step, "SCAN") && step != "SCAN n" { // n are the names
			t.Error(step)
		}
	}
}
