package session

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// piped returns a stdin that gives a text and then its end.
func piped(t *testing.T, text string) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	testkit.Must(t, err)
	t.Cleanup(func() { _ = read.Close() })
	go func() {
		_, _ = io.WriteString(write, text)
		_ = write.Close()
	}()
	return read
}

// replaying returns a task in flight whose stdin is to be replayed.
func replaying(t *testing.T, g *Journal, command ...string) *task.Task {
	t.Helper()
	tk := newTask(command...)
	tk.Options.Stdin = task.StdinReplay
	testkit.Must(t, g.Claim(t.Context(), tk, time.Now()))
	tk.AttemptCount, tk.Status = 1, task.InFlight
	return tk
}

// end ends the attempt in flight.
func end(t *testing.T, g *Journal, tk *task.Task, d task.Decision) {
	t.Helper()
	a := task.Attempt{Number: tk.AttemptCount, StartedAt: time.Now(), Decision: d}
	tk.ApplyDecision(a, time.Now())
	testkit.Must(t, g.Record(t.Context(), tk, a))
}

// kept is what a resume would find of a task's stdin; it fails the test where that is not whole.
func kept(t *testing.T, g *Journal, tk *task.Task) string {
	t.Helper()
	file, err := g.Journal.Input(tk)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	testkit.Must(t, err)
	return string(data)
}

// checkNothingKept fails the test where anything is left of any task's stdin.
func checkNothingKept(t *testing.T, g *Journal) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(g.Journal.Dir(), "stdin"))
	if len(entries) > 0 || (err != nil && !errors.Is(err, fs.ErrNotExist)) {
		t.Errorf("got %v, %v, want nothing left", entries, err)
	}
}

// attempt runs a task's command once with a stdin, and returns what it wrote.
func attempt(t *testing.T, tk *task.Task, stdin stdio.Stdin) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	testkit.Must(t, err)
	defer func() { _ = out.Close() }()
	e := &cmdexec.Executor{Stdin: stdin, Output: stdio.Output{Stdout: out, Stderr: out}, Env: os.Environ()}
	o := e.Execute(context.Background(), tk, runner.Call{Number: 1})
	if o.ExitCode() != 0 {
		t.Errorf("%q: got %+v, want exit status 0", tk.Command, o)
	}
	return testkit.Contents(t, out.Name())
}

func TestStdinIsAsTheOptionsSay(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	tests := []struct {
		mode task.StdinMode
		is   func(stdio.Stdin) bool
	}{
		{mode: "", is: func(s stdio.Stdin) bool { _, ok := s.(*stdio.InheritedStdin); return ok }},
		{mode: task.StdinAuto, is: func(s stdio.Stdin) bool { _, ok := s.(*stdio.InheritedStdin); return ok }},
		{mode: task.StdinNull, is: func(s stdio.Stdin) bool { _, ok := s.(stdio.NullStdin); return ok }},
		{mode: task.StdinReplay, is: func(s stdio.Stdin) bool { _, ok := s.(*stdio.ReplayedStdin); return ok }},
	}
	for _, tt := range tests {
		tk := newTask("cat")
		tk.Options.Stdin = tt.mode
		stdin, done, err := g.stdin(tk, piped(t, ""), ExecOptions{}, false, nil)
		if err != nil || !tt.is(stdin) {
			t.Errorf("%q: got %T, %v, want the stdin of that mode", tt.mode, stdin, err)
		}
		done()
	}
}

// The same bytes for each attempt, also without a journal, where nothing outlives the run.
func TestReplayedStdin(t *testing.T) {
	content := strings.Repeat("\x00\xff line\n", 300_000) // more than is kept in memory
	for name, g := range map[string]*Journal{
		"with a journal": testJournal(t, func(err error) { t.Error(err) }), "without one": {}, "with a broken one": brokenJournal(t),
	} {
		t.Run(name, func(t *testing.T) {
			tk := replaying(t, g, "cat")
			stdin, done, err := g.stdin(tk, piped(t, content), ExecOptions{}, false, nil)
			testkit.Must(t, err)
			for range 2 {
				if got := attempt(t, tk, stdin); got != content {
					t.Errorf("got %d bytes, want %d", len(got), len(content))
				}
			}
			if g.Journal != nil && !g.broken.Load() {
				end(t, g, tk, goesOn)
				done()
				if got := kept(t, g, tk); got != content {
					t.Errorf("got %d bytes kept, want %d", len(got), len(content))
				}
				return
			}
			done()
			if g.Journal != nil {
				checkNothingKept(t, g)
			}
		})
	}
}

func brokenJournal(t *testing.T) *Journal {
	t.Helper()
	g := testJournal(t, func(error) {})
	_ = g.failed(errors.New("database is locked"), nil, false)
	return g
}

// The run of an unfinished task ends when what a resume needs is on the disk, however long that takes.
func TestTheEndOfARunWaitsForWhatIsKept(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 1<<18)
	for range 8 {
		g := testJournal(t, func(err error) { t.Error(err) })
		tk := replaying(t, g, "cat")
		stdin, done, err := g.stdin(tk, piped(t, content), ExecOptions{}, false, nil)
		testkit.Must(t, err)
		_ = attempt(t, tk, stdin)
		tk.Status = task.Pending
		done()
		if got := kept(t, g, tk); got != content {
			t.Errorf("got %d bytes kept, want %d", len(got), len(content))
		}
	}
}

// What a resume gets is what the first run kept, and neither its own stdin nor a second copy.
func TestAResumeReplaysWhatWasKept(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	tk := replaying(t, g, "cat")
	keepInput(t, g, tk, "kept\x00")
	stdin, done, err := g.stdin(tk, piped(t, "another"), ExecOptions{}, true, nil)
	testkit.Must(t, err)
	defer done()
	for range 2 {
		if got := attempt(t, tk, stdin); got != "kept\x00" {
			t.Errorf("got %q, want what was kept", got)
		}
	}
	if got := kept(t, g, tk); got != "kept\x00" {
		t.Errorf("got %q kept, want the same as before", got)
	}
}

// An empty stdin is one, for the resume too.
func TestAnEmptyStdinIsKept(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	tk := replaying(t, g, "cat")
	stdin, done, err := g.stdin(tk, piped(t, ""), ExecOptions{}, false, nil)
	testkit.Must(t, err)
	if got := attempt(t, tk, stdin); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	end(t, g, tk, goesOn)
	done()
	if got := kept(t, g, tk); got != "" {
		t.Errorf("got %q kept, want an empty stdin", got)
	}
}

// With the end of the task all of it goes, in whatever order the end of the run finds it.
func TestNothingIsLeftOfAFinishedTasksStdin(t *testing.T) {
	t.Run("read to its end", func(t *testing.T) {
		g := testJournal(t, func(err error) { t.Error(err) })
		tk := replaying(t, g, "cat")
		stdin, done, err := g.stdin(tk, piped(t, "secret"), ExecOptions{}, false, nil)
		testkit.Must(t, err)
		_ = attempt(t, tk, stdin)
		end(t, g, tk, won)
		done()
		checkNothingKept(t, g)
	})
	t.Run("not read to its end", func(t *testing.T) {
		g := testJournal(t, func(err error) { t.Error(err) })
		tk := replaying(t, g, "sh", "-c", "read line")
		read, write, err := os.Pipe()
		testkit.Must(t, err)
		defer func() { _ = write.Close() }()
		_, err = io.WriteString(write, "secret\n")
		testkit.Must(t, err)
		stdin, done, err := g.stdin(tk, read, ExecOptions{}, false, nil)
		testkit.Must(t, err)
		_ = attempt(t, tk, stdin)
		end(t, g, tk, won)
		done()
		checkNothingKept(t, g)
	})
	t.Run("cancelled by another process", func(t *testing.T) {
		g := testJournal(t, func(err error) { t.Error(err) })
		tk := replaying(t, g, "cat")
		file := &inputFile{journal: g, task: tk}
		testkit.Must(t, g.Journal.Cancel(t.Context(), tk.Number, time.Now()))
		spooled, err := file.create() // the first byte comes now
		testkit.Must(t, err)
		testkit.Must(t, file.complete())
		testkit.Must(t, spooled.Close())
		checkNothingKept(t, g)
	})
}

// inputFile is made where it can be, and is nothing that fails the command where it cannot.
func TestInputFile(t *testing.T) {
	tests := []struct {
		name   string
		before func(*testing.T, *Journal, *task.Task)
		whole  bool // a resume finds it
	}{
		{name: "with the task", before: func(*testing.T, *Journal, *task.Task) {}, whole: true},
		{
			name:   "the journal is broken",
			before: func(_ *testing.T, g *Journal, _ *task.Task) { g.broken.Store(true) },
			whole:  false,
		},
		{
			name:   "the task never reached the journal",
			before: func(_ *testing.T, _ *Journal, tk *task.Task) { tk.Number = 0 },
			whole:  false,
		},
		{
			name: "no directory can be made",
			before: func(t *testing.T, g *Journal, _ *task.Task) {
				testkit.Write(t, filepath.Join(g.Journal.Dir(), "stdin"), "")
			},
			whole: false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := testJournal(t, func(error) {})
			tk := replaying(t, g, "cat")
			number := tk.Number
			tt.before(t, g, tk)
			f := &inputFile{journal: g, task: tk}
			file, err := f.create()
			testkit.Must(t, err)
			_, err = io.WriteString(file, "x")
			testkit.Must(t, err)
			testkit.Must(t, f.complete())
			testkit.Must(t, file.Close())
			tk.Number = number
			input, err := g.Journal.Input(tk)
			if whole := err == nil; whole != tt.whole {
				t.Errorf("got that a resume finds it: %v, %v, want %v", whole, err, tt.whole)
			}
			if err == nil {
				_ = input.Close()
			}
		})
	}
}

// What could not be kept is not kept as an empty stdin, should there be room once it has been read; and that is said
// once.
func TestAnInputFileThatCouldNotBeMade(t *testing.T) {
	for _, roomAgain := range []bool{false, true} {
		warnings := 0
		g := testJournal(t, func(error) { warnings++ })
		tk := replaying(t, g, "cat")
		inTheWay := filepath.Join(g.Journal.Dir(), "stdin")
		testkit.Write(t, inTheWay, "")
		f := &inputFile{journal: g, task: tk}
		file, err := f.create()
		testkit.Must(t, err)
		if roomAgain {
			testkit.Must(t, os.Remove(inTheWay))
		}
		testkit.Must(t, f.complete())
		testkit.Must(t, file.Close())
		if input, err := g.Journal.Input(tk); err == nil {
			_ = input.Close()
			t.Error("got an empty stdin kept, want none")
		}
		if warnings != 1 {
			t.Errorf("got %d warnings, want 1", warnings)
		}
	}
}

// Once dropped it is not made again, whatever is still being read. That of an unfinished task is not dropped.
func TestInputFileIsDropped(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	tk := replaying(t, g, "cat")
	f := &inputFile{journal: g, task: tk}
	file, err := f.create()
	testkit.Must(t, err)
	testkit.Must(t, f.complete())
	f.drop()
	if got := kept(t, g, tk); got != "" || f.dropped {
		t.Errorf("got %q kept, dropped %v, want an empty stdin kept", got, f.dropped)
	}
	tk.Status = task.Succeeded
	f.drop()
	if _, err := g.Journal.Input(tk); !errors.Is(err, state.ErrInputLost) {
		t.Errorf("got %v, want ErrInputLost", err)
	}
	if again, err := f.create(); err == nil {
		_ = again.Close()
		t.Error("got another file, want an error")
	}
	testkit.Must(t, file.Close())
	checkNothingKept(t, g)
}

// What is too much for the memory lies beside the journal, and where that is not possible where such files lie.
func TestTemporary(t *testing.T) {
	for name, g := range map[string]*Journal{"with a journal": testJournal(t, nil), "without one": {}} {
		t.Run(name, func(t *testing.T) {
			file, err := g.temporary()
			testkit.Must(t, err)
			defer func() { _ = file.Close() }()
			if beside := g.Journal != nil && filepath.Dir(file.Name()) == g.Journal.Dir(); beside != (g.Journal != nil) {
				t.Errorf("got %s, want it beside the journal where there is one", file.Name())
			}
			if _, err := os.Stat(file.Name()); err == nil {
				t.Errorf("got %s, want a file without a name", file.Name())
			}
		})
	}
	g := testJournal(t, nil)
	testkit.Must(t, os.RemoveAll(g.Journal.Dir()))
	file, err := g.temporary()
	testkit.Must(t, err)
	_ = file.Close()
}

// What a resume's command gets where it had a terminal, or nothing, and what this process has instead.
func TestAResumeWithoutTheStdin(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer func() { _, _ = terminal.Close(), master.Close() }()
	had := task.Source{Terminal: true}
	tests := []struct {
		name   string
		source task.Source
		own    *os.File
		o      ExecOptions
		want   *os.File // nil for nothing
	}{
		{name: "a terminal, and there is one", source: had, own: terminal, want: terminal},
		{name: "a terminal, and there is a pipe", source: had, own: piped(t, "surprise")},
		{name: "nothing, and there is a pipe", own: piped(t, "surprise")},
		{name: "nothing, and there is a terminal", own: terminal},
		{name: "nothing, and the name goes on", own: terminal, o: ExecOptions{ownStdin: true}, want: terminal},
		{name: "nothing, and it is asked for", own: terminal, o: ExecOptions{Stdin: task.StdinRest}, want: terminal},
	}
	for _, tt := range tests {
		tk := newTask("cat")
		tk.Options.Source = tt.source
		stdin, done, err := testJournal(t, nil).stdin(tk, tt.own, tt.o, true, nil)
		testkit.Must(t, err)
		var got *os.File
		if inherited, ok := stdin.(*stdio.InheritedStdin); ok {
			got = inherited.File
		}
		if got != tt.want {
			t.Errorf("%s: got %T of %v, want %v", tt.name, stdin, got, tt.want)
		}
		done()
	}
}

// A shutdown ends the writer of a pipe, too: what ends with a signal to stop may be a part, and no resume gets it.
func TestReplayedStdinThatEndsWithASignal(t *testing.T) {
	g := testJournal(t, func(err error) { t.Error(err) })
	stopping, stop := context.WithCancel(t.Context())
	g.Stopping = stopping
	read, write, err := os.Pipe()
	testkit.Must(t, err)
	defer func() { _ = read.Close() }()
	_, err = io.WriteString(write, "half")
	testkit.Must(t, err)
	tk := replaying(t, g, "head", "-c", "4")
	stdin, done, err := g.stdin(tk, read, ExecOptions{}, false, nil)
	testkit.Must(t, err)
	if got := attempt(t, tk, stdin); got != "half" {
		t.Errorf("got %q, want what was there", got)
	}
	stop()
	testkit.Must(t, write.Close())
	if got := attempt(t, tk, stdin); got != "half" {
		t.Errorf("got %q, want what was there", got)
	}
	end(t, g, tk, goesOn)
	done()
	if _, err := g.Journal.Input(tk); !errors.Is(err, state.ErrInputLost) {
		t.Errorf("got %v, want ErrInputLost", err)
	}
}

// The signal may come a moment after the end, or be one that nobody hears of: until then a resume does not take what
// was kept for the whole. Long after the end it has nothing to do with it.
func TestSignalAfterTheEndOfStdin(t *testing.T) {
	tests := []struct {
		name  string
		after time.Duration
		want  error
	}{
		{"at once", endsTogether / 2, state.ErrInputLost},
		{"later", 2 * endsTogether, nil},
	}
	for _, tt := range tests {
		g := testJournal(t, func(err error) { t.Error(err) })
		tk := replaying(t, g, "cat")
		file, err := g.keepInput(tk)
		testkit.Must(t, err)
		input := &inputFile{journal: g, task: tk, asked: true, file: file}
		synctest.Test(t, func(t *testing.T) {
			stopping, stop := context.WithCancel(t.Context())
			g.Stopping = stopping
			go func() {
				if err := input.complete(); err != nil {
					t.Error(err)
				}
			}()
			time.Sleep(tt.after)
			synctest.Wait()
			found, err := g.Journal.Input(tk)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: before the signal: got %v, want %v", tt.name, err, tt.want)
			}
			_ = found.Close()
			stop()
			synctest.Wait()
		})
		found, err := g.Journal.Input(tk)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: after the signal: got %v, want %v", tt.name, err, tt.want)
		}
		_, _ = found.Close(), file.Close()
	}
}
