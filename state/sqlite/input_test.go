package sqlite

import (
	"errors"
	"io"
	"io/fs"
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

// The first bytes of a stdin may come when the task has ended already, while a hook runs or another process has cancelled it.
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

// A number goes to another task where the first one's row is gone, or the whole journal was set aside. That task must never get
// the other's stdin.
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
