package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

// replaying returns a new task in flight whose stdin is to be kept.
func replaying(t tester, j *Journal) *task.Task {
	t.Helper()
	tk := newTask()
	tk.Options.Stdin = task.StdinReplay
	must(t, claimed(j, tk, epoch))
	return tk
}

// begin keeps the beginning of a task's stdin.
func begin(t tester, j *Journal, tk *task.Task, content string) *os.File {
	t.Helper()
	file, err := j.KeepInput(tk)
	must(t, err)
	_, err = file.WriteString(content)
	must(t, err)
	return file
}

// keep keeps a task's whole stdin.
func keep(t tester, j *Journal, tk *task.Task, content string) {
	t.Helper()
	file := begin(t, j, tk, content)
	must(t, j.CompleteInput(tk, file))
	must(t, file.Close())
}

// checkInput compares what a resume would find; an empty want stands for ErrInputLost.
func checkInput(t *testing.T, j *Journal, tk *task.Task, want string) {
	t.Helper()
	file, err := j.Input(tk)
	if err != nil {
		if want != "" || !errors.Is(err, state.ErrInputLost) {
			t.Errorf("got %v, want %q", err, want)
		}
		return
	}
	defer func() { _ = file.Close() }()
	got, err := io.ReadAll(file)
	if err != nil || string(got) != want || want == "" {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// inputs are the names of what is kept of all tasks' stdin.
func inputs(t tester, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, inputsName))
	if !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
	}
	for _, entry := range entries {
		name, part := strings.CutSuffix(entry.Name(), partSuffix)
		name, _, _ = strings.Cut(name, ".") // the number
		if part {
			name += partSuffix
		}
		names = append(names, name)
	}
	return names
}

func TestInputComesBackUnchanged(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, content := range map[string]string{
		"a line": "line\n", "no line": "x", "every byte": string(every), "long": strings.Repeat("0123456789abcdef", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := openIn(t, dir)
			tk := replaying(t, j)
			keep(t, j, tk, content)
			checkInput(t, j, tk, content)
			checkInput(t, j, tk, content) // as often as it is asked for
			must(t, j.Release(tk.Number))
			other := openIn(t, dir)
			adopted, err := other.Adopt(t.Context(), tk.Number)
			must(t, err)
			checkInput(t, other, adopted, content)
		})
	}
}

// An empty stdin is a whole one.
func TestAnEmptyInputIsKept(t *testing.T) {
	j := open(t)
	tk := replaying(t, j)
	keep(t, j, tk, "")
	file, err := j.Input(tk)
	must(t, err)
	defer func() { _ = file.Close() }()
	if content, err := io.ReadAll(file); err != nil || len(content) > 0 {
		t.Errorf("got %q, %v", content, err)
	}
}

// Half a stdin is none: a command must not take it for the whole.
func TestAPartOfTheInputIsLost(t *testing.T) {
	j := open(t)
	tk, other := replaying(t, j), replaying(t, j)
	checkInput(t, j, tk, "") // nothing was read yet, and there is no directory
	file := begin(t, j, tk, "half")
	checkInput(t, j, tk, "")
	must(t, j.CompleteInput(tk, file))
	must(t, file.Close())
	checkInput(t, j, tk, "half")
	checkInput(t, j, other, "")
}

// The file can be read while it is written, since the next attempt of the same run needs it.
func TestThePartCanBeRead(t *testing.T) {
	j := open(t)
	file := begin(t, j, replaying(t, j), "half")
	defer func() { _ = file.Close() }()
	got := make([]byte, 4)
	if n, err := file.ReadAt(got, 0); n != 4 || err != nil || string(got) != "half" {
		t.Errorf("read %q, %v", got[:n], err)
	}
}

func retrying() write { return recording(retryIn(time.Minute)) }

func TestTheInputGoesWithItsTask(t *testing.T) {
	tests := []struct {
		name   string
		writes []write
		gone   bool
	}{
		{"in flight", nil, false},
		{"waiting", []write{retrying()}, false},
		{"in a later attempt", []write{retrying(), claiming()}, false},
		{"stopped in an attempt", []write{recording(interrupted)}, false},
		{"stopped in a wait", []write{retrying(), settling(interrupted)}, false},
		{"succeeded", []write{recording(succeeded)}, true},
		{"succeeded later", []write{retrying(), claiming(), recording(succeeded)}, true},
		{"failed", []write{recording(failed)}, true},
		{"exhausted", []write{recording(exhausted)}, true},
		{"cancelled in an attempt", []write{recording(cancelled)}, true},
		{"cancelled in a wait", []write{retrying(), settling(cancelled)}, true},
		{"the budget ended in a wait", []write{retrying(), settling(exhausted)}, true},
		{"cancelled by another process", []write{cancelling()}, true},
		{"cancelled by another process in a wait", []write{retrying(), cancelling()}, true},
		{"caught up", []write{catchingUp()}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := open(t)
			tk, half, bystander := replaying(t, j), replaying(t, j), replaying(t, j)
			keep(t, j, tk, "whole")
			must(t, begin(t, j, half, "half").Close())
			keep(t, j, bystander, "another")
			apply(t, j, tk, test.writes...)
			apply(t, j, half, test.writes...)
			want, left := "whole", []string{"1", "2.part", "3"}
			if test.gone {
				want, left = "", []string{"3"}
			}
			checkInput(t, j, tk, want)
			checkInput(t, j, bystander, "another")
			if got := inputs(t, j.Dir()); !slices.Equal(got, left) {
				t.Errorf("left are %q, want %q", got, left)
			}
		})
	}
}

// A writer that is refused, or fails, has not ended the task: whoever goes on with it needs its stdin.
func TestAnEndThatIsNotWrittenKeepsTheInput(t *testing.T) {
	t.Run("a late writer", func(t *testing.T) {
		j := open(t)
		tk := replaying(t, j)
		keep(t, j, tk, "whole")
		stale := *tk
		apply(t, j, tk, recording(interrupted), claiming())
		refuses(t, j, stale, recording(succeeded))
		checkInput(t, j, tk, "whole")
	})
	for _, w := range []write{recording(succeeded), cancelling(), catchingUp()} {
		t.Run(w.Name, func(t *testing.T) {
			j := open(t)
			tk := replaying(t, j)
			keep(t, j, tk, "whole")
			fail(t, j, "UPDATE ON attempts")
			if err := w.Do(j, tk); err == nil {
				t.Error("it did not fail")
			}
			checkInput(t, j, tk, "whole")
		})
	}
}

// ends are all the ways in which a task in flight ends, by its owner or under it.
func ends() []write {
	return []write{recording(succeeded), recording(failed), recording(exhausted), recording(cancelled), catchingUp(), cancelling()}
}

// feed does what the owner does with a task's stdin, which may come at any time, also after the end.
func feed(j *Journal, tk *task.Task, pause func()) error {
	pause()
	file, err := j.KeepInput(tk)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	pause()
	if _, err := file.WriteString("secret"); err != nil {
		return err
	}
	pause()
	return j.CompleteInput(tk, file)
}

// Wherever between its steps the end comes, nothing of the stdin is left, and nothing but the end is an error.
func TestNoInputOutlivesItsTaskInAnyOrder(t *testing.T) {
	dir := t.TempDir()
	j, other := openIn(t, dir), openIn(t, dir)
	rapid.Check(t, func(t *rapid.T) {
		tk := replaying(t, j)
		mine, by := *tk, j
		end := rapid.SampledFrom(ends()).Draw(t, "end")
		if end.Name == "cancel" {
			by = other
		}
		steps, done := rapid.IntRange(0, 3).Draw(t, "steps before the end"), 0
		next := func() {
			if done == steps {
				must(t, end.Do(by, tk))
			}
			done++
		}
		if err := feed(j, &mine, next); errors.Is(err, state.ErrFinished) != (steps == 0) || (err != nil && steps > 0) {
			t.Fatalf("feed: %v", err)
		}
		next() // the end may also come after all of them
		if left := inputs(t, dir); len(left) > 0 {
			t.Fatalf("%s left %q", end.Name, left)
		}
	})
}

// The same at once, in another goroutine or another connection, as a cancelling process has.
func TestNoInputOutlivesItsTaskInARace(t *testing.T) {
	testkit.Slow(t, "it runs a race 600 times")
	dir := t.TempDir()
	j, other := openIn(t, dir), openIn(t, dir)
	for round := range 600 {
		tk := replaying(t, j)
		mine, by := *tk, j
		end := ends()[round%len(ends())]
		if end.Name == "cancel" {
			by = other
		}
		start := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			<-start
			if err := feed(j, &mine, func() {}); err != nil && !errors.Is(err, state.ErrFinished) {
				t.Errorf("feed: %v", err)
			}
		})
		group.Go(func() {
			<-start
			if err := end.Do(by, tk); err != nil {
				t.Errorf("%s: %v", end.Name, err)
			}
		})
		close(start)
		group.Wait()
		if left := inputs(t, dir); len(left) > 0 {
			t.Fatalf("round %d: %s left %q", round, end.Name, left)
		}
	}
}

// The first bytes of a stdin may come when the task has ended already, while a hook runs or another process has
// cancelled it.
func TestInputOfAFinishedTaskIsNotKept(t *testing.T) {
	for _, end := range ends() {
		t.Run(end.Name, func(t *testing.T) {
			j := open(t)
			tk := replaying(t, j)
			apply(t, j, tk, end)
			if file, err := j.KeepInput(tk); !errors.Is(err, state.ErrFinished) {
				_ = file.Close()
				t.Errorf("got %v", err)
			}
			if left := inputs(t, j.Dir()); len(left) > 0 {
				t.Errorf("left are %q", left)
			}
		})
	}
}

// Of the task alone, as far as it got.
func TestDropInput(t *testing.T) {
	j := open(t)
	whole, half, other := replaying(t, j), replaying(t, j), replaying(t, j)
	keep(t, j, whole, "whole")
	file := begin(t, j, half, "half")
	keep(t, j, other, "another")
	j.DropInput(whole)
	j.DropInput(half)
	must(t, j.CompleteInput(half, file))
	must(t, file.Close())
	j.DropInput(half) // there is nothing any more
	checkInput(t, j, whole, "")
	checkInput(t, j, other, "another")
	if left := inputs(t, j.Dir()); !slices.Equal(left, []string{"3"}) {
		t.Errorf("left are %q", left)
	}
}

// A number goes to another task where the first one's row is gone, or the whole journal was set aside. That task must
// never get the other's stdin.
func TestAnotherTaskOfTheNumberHasItsOwnInput(t *testing.T) {
	leave := map[string]func(*testing.T, string) (next *Journal){
		"the row is gone": func(t *testing.T, dir string) *Journal {
			j := openIn(t, dir)
			_, err := rawExec(j, "DELETE FROM tasks")
			must(t, err)
			return j
		},
		"the journal was moved away": func(t *testing.T, dir string) *Journal {
			must(t, os.Rename(filepath.Join(dir, DatabaseName), filepath.Join(dir, "damaged")))
			return openIn(t, dir)
		},
	}
	for name, next := range leave {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, err := Open(t.Context(), dir)
			must(t, err)
			old, half := replaying(t, first), replaying(t, first)
			keep(t, first, old, "the first one's")
			file := begin(t, first, half, "the second one's")
			must(t, first.Close())

			j := next(t, dir)
			one, two := replaying(t, j), replaying(t, j)
			if one.Number != 1 || two.Number != 2 {
				t.Fatalf("the numbers are %d and %d", one.Number, two.Number)
			}
			checkInput(t, j, one, "")
			keep(t, j, one, "new")
			first.DropInput(old) // its owner may live on, in the journal that is gone
			must(t, first.CompleteInput(half, file))
			must(t, file.Close())
			checkInput(t, j, one, "new")
			checkInput(t, j, two, "")
		})
	}
}

// Somebody tidied up. A run goes on, and a resume says what is missing.
func TestTheInputsDirectoryMayGo(t *testing.T) {
	j := open(t)
	tk := replaying(t, j)
	file := begin(t, j, tk, "x")
	must(t, os.RemoveAll(filepath.Join(j.Dir(), inputsName)))
	must(t, j.CompleteInput(tk, file))
	must(t, file.Close())
	checkInput(t, j, tk, "")
	keep(t, j, tk, "again")
	checkInput(t, j, tk, "again")
	must(t, os.RemoveAll(filepath.Join(j.Dir(), inputsName)))
	apply(t, j, tk, recording(succeeded))
}

// What cannot be made is an error, not a file elsewhere.
func TestKeepInputFailsWhereTheDirectoryCannotBeMade(t *testing.T) {
	j := open(t)
	tk := replaying(t, j)
	must(t, os.WriteFile(filepath.Join(j.Dir(), inputsName), nil, 0o600))
	if file, err := j.KeepInput(tk); err == nil {
		_ = file.Close()
		t.Error("made")
	}
	if _, err := j.Input(tk); err == nil || errors.Is(err, state.ErrInputLost) {
		t.Errorf("got %v", err)
	}
}

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
	tasks, err := storetest.List(j, state.Filter{})
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

// A run that was cut off may have left processes, and the next run of its name looks for them: it stays until somebody
// has seen that they have ended.
func TestPruneKeepsWhatWasCutOff(t *testing.T) {
	named := func(tk *task.Task) { tk.Name = tk.ID }
	tests := map[string]struct {
		change  func(*task.Task)
		outcome task.Outcome
		d       task.Decision
		stays   bool
	}{
		"cancelled":              {named, saying(1, "", ""), cancelled, true},
		"interrupted, cancelled": {named, saying(1, "", ""), storetest.Interrupted, true},
		"crashed too often":      {named, task.Crashed(), exhausted, true},
		"nested":                 {func(tk *task.Task) { tk.Parent = "outer" }, task.Crashed(), exhausted, true},
		"failed":                 {named, saying(1, "", ""), failed, false},
		"exhausted":              {named, saying(1, "", ""), exhausted, false},
		"succeeded":              {named, saying(0, "", ""), succeeded, false},
		"without a name":         {nil, saying(1, "", ""), cancelled, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			ended(t, j, failed, 1, epoch.Add(-time.Hour), nil)
			tk := newTask()
			if test.change != nil {
				test.change(tk)
			}
			must(t, claimed(j, tk, epoch))
			must(t, recorded(j, tk, test.outcome, test.d, epoch))
			if !tk.Status.Finished() {
				must(t, j.Cancel(t.Context(), tk.Number, epoch))
			}
			must(t, j.Release(tk.Number))
			found, err := j.CutOff(t.Context(), state.Retention{}, 0)
			must(t, err)
			want := 0
			if test.stays {
				want = 1
			}
			if len(found) != want || want > 0 && (found[0].Number != tk.Number || !found[0].Last.CutOff()) {
				t.Fatalf("got %v cut off, want %d", found, want)
			}
			if first, err := j.CutOff(t.Context(), state.Retention{}, 1); err != nil || len(first) > 0 {
				t.Errorf("of the oldest: got %v, error %v, want none", first, err)
			}
			would, err := j.Prunable(t.Context(), state.Retention{})
			must(t, err)
			n, _ := prune(t, j, state.Retention{})
			if would.Tasks != 2-want || n != 2-want || len(left(t, j)) != want {
				t.Errorf("got %d announced, %d gone, left %v, want %d left", would.Tasks, n, left(t, j), want)
			}
			if n, _ := prune(t, j, state.Retention{Ended: []int64{tk.Number}}); n != want || len(left(t, j)) > 0 {
				t.Errorf("once it has ended: got %d gone, left %v, want none left", n, left(t, j))
			}
		})
	}
}

// Of an outer task that has ended, a nested one that is unfinished may still ask how it ended.
func TestPruneKeepsTheOuterTask(t *testing.T) {
	j := open(t)
	outer := ended(t, j, cancelled, 1, epoch, nil)
	between := ended(t, j, succeeded, 1, epoch, func(tk *task.Task) { tk.Parent = outer.ID })
	nested := newTask()
	nested.Parent = between.ID
	must(t, claimed(j, nested, epoch))
	must(t, j.Release(nested.Number))
	if n, _ := prune(t, j, state.Retention{}); n != 0 {
		t.Errorf("got %d tasks gone, want none while a nested one is unfinished", n)
	}
	must(t, j.Cancel(t.Context(), nested.Number, epoch))
	if n, _ := prune(t, j, state.Retention{Outer: []string{between.ID, outer.ID}}); n != 0 {
		t.Errorf("got %d tasks gone, want none while something runs of the nested one", n)
	}
	if n, _ := prune(t, j, state.Retention{Ended: []int64{nested.Number}}); n != 3 {
		t.Errorf("got %d tasks gone, want all", n)
	}
}

// What ran inside a task is found by its parent. Of the tables, it reads the rows that it returns: inside has those.
func TestNestedScansNothing(t *testing.T) {
	j := open(t)
	for _, query := range []string{selectNested, nestedIn} {
		plan := strings.Join(planOf(t, j, query, "id", 1), "\n")
		scans := strings.Count(plan, "SCAN") - strings.Count(plan, "SCAN inside")
		if scans > 0 || strings.Contains(plan, "USE TEMP B-TREE") ||
			!strings.Contains(plan, "tasks_parent (parent=? AND finished_at=?)") ||
			!strings.Contains(plan, "tasks_parent (parent=? AND finished_at>?)") {
			t.Errorf("got the plan\n%s", plan)
		}
	}
}

// No step reads a whole table, however large that is: SQLite says SCAN where it would.
func TestPruneScansNothing(t *testing.T) {
	j := open(t)
	queries := map[string][]any{
		selectPrune: {"FAILED", 1, "[]", "[]"}, countPrune: {"FAILED", 1, "[]", "[]"}, deleteFirst: {1, 1}, deleteTask: {1},
	}
	all, args := ofEach(selectOldest, state.Retention{})
	queries[all+" ORDER BY finished_at"] = args
	all, args = ofEach(selectPrune, state.Retention{}, "[]", "[]")
	queries[all+" ORDER BY finished_at"] = args
	for query, args := range queries {
		for _, step := range planOf(t, j, query, args...) {
			scan := strings.Contains(step, "SCAN") && !strings.Contains(step, "json_each") && step != "SCAN inside"
			if scan || strings.Contains(step, "TEMP B-TREE") { // inside has what ran in the task
				t.Errorf("%s\n%s", query, step)
			}
		}
	}
	const index = "USING INDEX tasks_finished (status=? AND finished_at>? AND finished_at<?)"
	if plan := planOf(t, j, selectOldest, "FAILED", 1); len(plan) != 1 || !strings.Contains(plan[0], index) {
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

// Against a model: whatever is in the journal, and however small the steps are, exactly those that may go are gone in
// the end.
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
			goes := tk.Status.Finished() && at.Before(r.Before) && (len(r.Statuses) == 0 || slices.Contains(r.Statuses, tk.Status)) &&
				(!tk.Once || tk.Status != task.Succeeded) && (tk.Name == "" || tk.Status != task.Cancelled)
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
