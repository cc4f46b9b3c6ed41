package sqlite

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// ended returns a new task that took so many attempts, each with a tail, to end at a time.
func ended(t tester, j *Journal, d task.Decision, attempts int, at time.Time, change func(*task.Task)) *task.Task {
	t.Helper()
	tk := newTask()
	if change != nil {
		change(tk)
	}
	must(t, claimed(j, tk, epoch))
	for range attempts - 1 {
		must(t, recorded(j, tk, saying(1, "out", "err"), retryIn(0), epoch))
		must(t, claimed(j, tk, epoch))
	}
	must(t, recorded(j, tk, saying(1, "out", "err"), d, at))
	must(t, j.Release(tk.Number))
	return tk
}

func once(tk *task.Task) { tk.Once, tk.Name = true, tk.ID }

// prune takes all steps, and returns how many tasks went in how many steps.
func prune(t tester, j *Journal, r state.Retention) (tasks, steps int) {
	t.Helper()
	for more := true; more; steps++ {
		n, again, err := j.Prune(context.Background(), r)
		must(t, err)
		tasks, more = tasks+n, again
		if steps > 10_000 {
			t.Fatal("it does not end")
		}
	}
	return tasks, steps
}

// left are the numbers of the tasks that are still there, oldest first.
func left(t tester, j *Journal) (numbers []int64) {
	t.Helper()
	tasks, err := j.List(context.Background(), state.Filter{})
	must(t, err)
	for _, tk := range slices.Backward(tasks) {
		numbers = append(numbers, tk.Number)
	}
	return numbers
}

func TestPrune(t *testing.T) {
	day := func(n int) time.Time { return epoch.AddDate(0, 0, n) }
	tests := map[string]struct {
		retention state.Retention
		want      []int64
	}{
		"by age":                       {state.Retention{Before: day(3)}, []int64{3, 4, 6, 7, 8}},
		"to the microsecond":           {state.Retention{Before: day(3).Add(time.Microsecond)}, []int64{4, 6, 7, 8}},
		"of any age":                   {state.Retention{}, []int64{6, 7, 8}},
		"a status":                     {state.Retention{Statuses: []task.Status{task.Failed}}, []int64{1, 3, 4, 5, 6, 7, 8}},
		"statuses by age":              {state.Retention{Before: day(4), Statuses: []task.Status{task.Failed, task.Cancelled}}, []int64{1, 3, 4, 5, 6, 7, 8}},
		"the success that once keeps":  {state.Retention{Statuses: []task.Status{task.Succeeded}}, []int64{2, 3, 4, 5, 6, 7, 8}},
		"the failure with once":        {state.Retention{Statuses: []task.Status{task.Exhausted}}, []int64{1, 2, 4, 6, 7, 8}},
		"statuses that have not ended": {state.Retention{Statuses: []task.Status{task.Pending, task.InFlight}}, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			ended(t, j, succeeded, 1, day(1), nil)
			ended(t, j, failed, 2, day(2), nil)
			ended(t, j, exhausted, 3, day(3), once)
			ended(t, j, cancelled, 1, day(4), nil)
			ended(t, j, exhausted, 1, day(0), nil)
			ended(t, j, succeeded, 2, day(0), once)
			must(t, j.Release(waiting(t, j).Number))
			must(t, j.Release(inFlight(t, j).Number))

			would, err := j.Prunable(t.Context(), test.retention)
			must(t, err)
			n, _ := prune(t, j, test.retention)
			if got := left(t, j); !slices.Equal(got, test.want) || n != 8-len(got) {
				t.Errorf("%d went, left are %v, want %v", n, got, test.want)
			}
			if would.Tasks != n {
				t.Errorf("%d were announced, and %d went", would.Tasks, n)
			}
			integrity(t, j)
		})
	}
}

func TestPrunableSaysFromWhenToWhen(t *testing.T) {
	j := open(t)
	for i, d := range []task.Decision{failed, succeeded, exhausted, succeeded} {
		ended(t, j, d, 1, epoch.Add(time.Duration(i)*time.Hour), nil)
	}
	got, err := j.Prunable(t.Context(), state.Retention{Before: epoch.Add(150 * time.Minute)})
	must(t, err)
	if got.Tasks != 3 || showTime(got.Oldest) != showTime(epoch) || showTime(got.Newest) != showTime(epoch.Add(2*time.Hour)) {
		t.Errorf("got %+v", got)
	}
	if got, err := j.Prunable(t.Context(), state.Retention{Before: epoch}); err != nil || got != (state.Prunable{}) {
		t.Errorf("of none: %+v, %v", got, err)
	}
}

// The oldest go first, whatever their status, and a step removes no more rows than it may.
func TestAPruneStepIsBounded(t *testing.T) {
	j := open(t)
	for i, d := range []task.Decision{failed, succeeded, cancelled, exhausted} {
		ended(t, j, d, 2, epoch.Add(-time.Duration(i)*time.Hour), nil) // a task, two attempts, two tails: five rows
	}
	steps := []struct {
		rows, tasks int
		more        bool
		want        []int64
	}{
		{10, 2, true, []int64{1, 2}}, {5, 1, true, []int64{1}}, {99, 1, false, nil}, {99, 0, false, nil},
	}
	for i, step := range steps {
		n, more, err := j.Prune(t.Context(), state.Retention{Rows: step.rows})
		must(t, err)
		if got := left(t, j); n != step.tasks || more != step.more || !slices.Equal(got, step.want) {
			t.Errorf("step %d: %d tasks, more %v, left %v", i+1, n, more, got)
		}
	}
}

// A task of many attempts goes over several steps, its first attempts first and itself last.
func TestALongTaskGoesBitByBit(t *testing.T) {
	j := open(t)
	tk := ended(t, j, failed, 12, epoch, nil)
	var seen []string
	for more := true; more; {
		var n int
		var err error
		n, more, err = j.Prune(t.Context(), state.Retention{Rows: 9})
		must(t, err)
		first := 0
		if list := attempts(t, j, tk.Number); len(list) > 0 {
			first = list[0].Number
		}
		seen = append(seen, fmt.Sprintf("%d gone, from %d, %d tails", n, first, count(t, j, "tails")))
		integrity(t, j)
	}
	want := []string{"0 gone, from 5, 8 tails", "0 gone, from 9, 4 tails", "1 gone, from 0, 0 tails"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q\nwant %q", seen, want)
	}
}

// What was kept of the stdin goes with the task, and what is left of tasks that are gone or have ended goes too.
func TestPruneDropsKeptInput(t *testing.T) {
	j := open(t)
	live, done := replaying(t, j), replaying(t, j)
	keep(t, j, live, "needed")
	apply(t, j, done, recording(succeeded))
	must(t, j.Release(done.Number))
	for _, name := range []string{inputName(done.Number, done.ID), inputName(live.Number, done.ID), inputName(99, live.ID), "99"} { // as if their owners had died right after the end
		must(t, os.WriteFile(j.inputPath(name), []byte("left"), 0o600))
		must(t, os.WriteFile(j.inputPath(name)+partSuffix, []byte("left"), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(j.Dir(), inputsName, "notes"), nil, 0o600)) // not ours
	_, _, err := j.Prune(t.Context(), state.Retention{Before: epoch.AddDate(-1, 0, 0)})
	must(t, err)
	if got := inputs(t, j.Dir()); !slices.Equal(got, []string{"1", "notes"}) {
		t.Errorf("left are %q", got)
	}
	checkInput(t, j, live, "needed")
	if n, _ := prune(t, j, state.Retention{}); n != 1 {
		t.Errorf("%d went", n)
	}
	checkInput(t, j, live, "needed")
}

// A step that fails removes nothing.
func TestAFailedPruneChangesNothing(t *testing.T) {
	j := open(t)
	ended(t, j, failed, 2, epoch, nil)
	before := dump(t, j)
	fail(t, j, "DELETE ON tasks")
	if n, _, err := j.Prune(t.Context(), state.Retention{Rows: 99}); err == nil {
		t.Errorf("%d went", n)
	}
	if after := dump(t, j); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
}

// No step reads a whole table, however large that is: SQLite says SCAN where it would.
func TestPruneScansNothing(t *testing.T) {
	j := open(t)
	queries := map[string][]any{
		selectPrune: {"FAILED", 1}, countPrune: {"FAILED", 1}, selectCut: {1, 1}, deleteUpTo: {1, 1}, deleteAll: {1}, deleteTask: {1},
	}
	for query, args := range queries {
		for _, step := range planOf(t, j, query, args...) {
			if strings.Contains(step, "SCAN") || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s\n%s", query, step)
			}
		}
	}
	if plan := planOf(t, j, selectPrune, "FAILED", 1); len(plan) != 1 || !strings.Contains(plan[0], "USING INDEX tasks_finished (status=? AND finished_at>? AND finished_at<?)") {
		t.Errorf("the oldest are found by %q", plan)
	}
}

// planOf is how SQLite would answer a query.
func planOf(t tester, j *Journal, query string, args ...any) (steps []string) {
	t.Helper()
	for _, row := range rawRows(t, j, "EXPLAIN QUERY PLAN "+query, args...) {
		steps = append(steps, row[3].(string))
	}
	return steps
}

// Against a model: whatever is in the journal, and however small the steps are, exactly those that may go are gone in the end.
func TestPruneAgainstAModel(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		_, err := rawExec(j, "DELETE FROM tasks")
		must(t, err)
		r := state.Retention{
			Before:   epoch.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "before")) * time.Hour),
			Statuses: rapid.SliceOfNDistinct(rapid.SampledFrom(finishedStatuses), 0, 3, rapid.ID).Draw(t, "statuses"),
			Rows:     rapid.IntRange(0, 20).Draw(t, "rows"),
		}
		want := map[int64]bool{}
		for range rapid.IntRange(0, 8).Draw(t, "tasks") {
			d := rapid.SampledFrom([]task.Decision{succeeded, failed, exhausted, cancelled, retryIn(0)}).Draw(t, "decision")
			at := epoch.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at")) * time.Hour)
			change := rapid.SampledFrom([]func(*task.Task){nil, once}).Draw(t, "once")
			tk := ended(t, j, d, rapid.IntRange(1, 6).Draw(t, "attempts"), at, change)
			goes := tk.Status.Finished() && at.Before(r.Before) && slices.Contains(statusesOf(r), tk.Status) &&
				(!tk.Once || tk.Status != task.Succeeded)
			if !goes {
				want[tk.Number] = true
			}
		}
		prune(t, j, r)
		if got := left(t, j); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("left are %v, want %v", got, want)
		}
		integrity(t, j)
	})
}

func TestCompactGivesTheRoomBack(t *testing.T) {
	j := open(t)
	fillBig(t, j, 2000, 2, epoch)
	before, err := j.Size()
	must(t, err)
	prune(t, j, state.Retention{Rows: 1000})
	must(t, j.Compact(t.Context()))
	after, err := j.Size()
	must(t, err)
	if after.Total() > before.Total()/4 || after.WAL != 0 {
		t.Errorf("%+v, and before %+v", after, before)
	}
	if got := left(t, j); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
	integrity(t, j)
}

// A reader keeps what it began to read.
func TestCompactWithAReader(t *testing.T) {
	dir := t.TempDir()
	j, reader := openIn(t, dir), openIn(t, dir)
	fillBig(t, j, 200, 1, epoch)
	rows, err := rawDB(t, reader).Query("SELECT number FROM tasks")
	must(t, err)
	defer func() { _ = rows.Close() }()
	rows.Next()
	must(t, j.Compact(t.Context()))
	n := 1
	for rows.Next() {
		n++
	}
	if must(t, rows.Err()); n != 200 {
		t.Errorf("the reader saw %d tasks", n)
	}
}
