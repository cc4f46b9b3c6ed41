//go:build unix

package cmdexec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/cmdexec/stdio"
	_ "github.com/10f93571/retry/internal/expression" // of conditions
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// heldOutput writes to two files.
func heldOutput(t *testing.T, mode task.OutputMode) stdio.Output {
	dir := t.TempDir()
	return stdio.Output{
		Stdout: newFile(t, dir, "stdout"), Stderr: newFile(t, dir, "stderr"), Mode: mode, Temporary: temporary(t),
	}
}

// temporary returns a function that creates the file of a spool.
func temporary(t *testing.T) func() (*os.File, error) {
	dir := t.TempDir()
	return func() (*os.File, error) { return spool.Temporary(dir) }
}

// heldScripts write more than a pipe holds: the first into memory, the second into a file.
var heldScripts = []string{"head -c 300000 /dev/zero", "head -c 3000000 /dev/zero"}

// newFile returns an empty file, opened to append and to read.
func newFile(t *testing.T, dir, name string) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func contents(t *testing.T, file *os.File) string {
	t.Helper()
	text, err := os.ReadFile(file.Name())
	testkit.Must(t, err)
	return string(text)
}

func checkText(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if len(got)+len(want) > 200 {
		t.Errorf("%s: got %d bytes, want %d; the same up to byte %d", what, len(got), len(want),
			commonPrefix(got, want))
		return
	}
	t.Errorf("%s: got %q, want %q", what, got, want)
}

// commonPrefix is the length of what two texts have in common at the start.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// withOutput sets the output of the attempt.
func (r *rig) withOutput(o stdio.Output) *rig {
	r.executor.Output = o
	return r
}

var (
	outputModes = []task.OutputMode{"", task.OutputStream, task.OutputFinal, task.OutputSuccess, task.OutputFailure}
	captures    = []task.CaptureMode{"", task.CaptureNone, task.CaptureStderr, task.CaptureBoth}
)

// Held output is passed on or dropped when the status of the task is known, and not before.
func TestOutputIsFlushedOrDropped(t *testing.T) {
	type ends map[task.Status]bool
	passedOn := map[task.OutputMode]ends{
		"":                 {},
		task.OutputStream:  {},
		task.OutputFinal:   {task.Succeeded: true, task.Failed: true, task.Exhausted: true, task.Cancelled: true},
		task.OutputSuccess: {task.Succeeded: true},
		task.OutputFailure: {task.Failed: true, task.Exhausted: true},
	}
	statuses := []task.Status{task.Pending, task.Succeeded, task.Failed, task.Exhausted, task.Cancelled}
	for _, mode := range outputModes {
		for _, status := range statuses {
			t.Run(fmt.Sprintf("%s %s", mode, status), func(t *testing.T) {
				o := heldOutput(t, mode)
				r := script(t, "printf 'to stdout'; printf 'to stderr' >&2; exit 3").withOutput(o)
				r.executor.Execute(t.Context(), &r.task, runner.Call{Number: 1})
				both := func() string { return contents(t, o.Stdout) + "|" + contents(t, o.Stderr) }
				before, after := "|", "|"
				if !mode.Held() {
					before = "to stdout|to stderr"
				}
				if !mode.Held() || passedOn[mode][status] {
					after = "to stdout|to stderr"
				}
				checkText(t, "before", both(), before)
				r.task.Status = status
				if got := r.executor.HoldsOutput(&r.task); got != (mode.Held() && passedOn[mode][status]) {
					t.Errorf("holds: got %v, want %v", got, !got)
				}
				for range 2 { // the second call must not pass it on again
					sig, err := r.executor.Flush(&r.task, nil)
					if sig != nil || err != nil {
						t.Errorf("flush: got %v, %v; want no signal and no error", sig, err)
					}
					checkText(t, "after", both(), after)
				}
				if r.executor.HoldsOutput(&r.task) {
					t.Error("holds after flush: got true, want false")
				}
			})
		}
	}
}

// Each attempt has output of its own.
func TestOutputOfSeveralAttempts(t *testing.T) {
	o := heldOutput(t, task.OutputFinal)
	r := script(t, "echo $RETRY_ATTEMPT; echo $RETRY_ATTEMPT >&2").withOutput(o)
	for n, status := range []task.Status{task.Pending, task.Pending, task.Exhausted} {
		out := r.executor.Execute(t.Context(), &r.task, runner.Call{Number: n + 1})
		if want := fmt.Sprintln(n + 1); out.Stdout != want || out.Stderr != want {
			t.Errorf("attempt %d: got %q and %q, want %q twice", n+1, out.Stdout, out.Stderr, want)
		}
		r.task.Status = status
		_, err := r.executor.Flush(&r.task, nil)
		testkit.Must(t, err)
	}
	checkText(t, "stdout", contents(t, o.Stdout), "3\n")
	checkText(t, "stderr", contents(t, o.Stderr), "3\n")
}

func TestCapture(t *testing.T) {
	for _, mode := range outputModes {
		for _, capture := range captures {
			t.Run(fmt.Sprintf("%s %s", mode, capture), func(t *testing.T) {
				o := heldOutput(t, mode)
				o.Capture = capture
				r := script(t, "printf 'to stdout'; printf 'to stderr' >&2; exit 3").withOutput(o)
				r.task.Status = task.Failed
				want := task.Outcome{Exit: 3}
				if mode.Held() || capture == task.CaptureBoth {
					want.Stdout = "to stdout"
				}
				if mode.Held() || capture == task.CaptureBoth || capture == task.CaptureStderr {
					want.Stderr = "to stderr"
				}
				r.start().check(want)
			})
		}
	}
}

// If two descriptors lead to one file, only a single pipe keeps the order of the writes.
func TestOneFileKeepsItsOrder(t *testing.T) {
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i+1, i+1)
	}
	for _, mode := range outputModes {
		for _, capture := range captures {
			t.Run(fmt.Sprintf("%s %s", mode, capture), func(t *testing.T) {
				o := heldOutput(t, mode)
				o.Capture = capture
				o.Stderr = newFile(t, filepath.Dir(o.Stdout.Name()), "stdout") // opened twice, as by >>file 2>>file
				r := script(t, `i=0; while [ $((i += 1)) -le 200 ]; do echo out $i; echo err $i >&2; done`).withOutput(o)
				r.task.Status = task.Failed
				if mode == task.OutputSuccess {
					r.task.Status = task.Succeeded
				}
				captured := r.start().end().Stderr
				checkText(t, "passed on", contents(t, o.Stdout), want.String())
				if mode.Held() || capture == task.CaptureBoth || capture == task.CaptureStderr {
					checkText(t, "captured", captured, want.String())
				}
			})
		}
	}
}

func TestCapturedIsPassedOnAsItComes(t *testing.T) {
	for _, capture := range []task.CaptureMode{task.CaptureStderr, task.CaptureBoth} {
		r := script(t, `read -r x; echo "$x"; echo "$x" >&2; read -r x; echo "$x" >&2`)
		r.executor.Output.Capture = capture
		r.executor.Output.Stderr = r.executor.Output.Stdout
		r.start()
		writeText(t, r.stdin, "one\n")
		r.expect("one", "one")
		writeText(t, r.stdin, "two\n")
		r.expect("two")
		r.check(task.Outcome{Stdout: "one\none\ntwo\n", Stderr: "one\none\ntwo\n"})
	}
}

func TestCapturesTheEnd(t *testing.T) {
	tests := map[string]int{"less": task.StoredTail - 1, "just that": task.StoredTail, "more": task.StoredTail + 1,
		"much": len(bigText)}
	for name, size := range tests {
		t.Run(name, func(t *testing.T) {
			text := bigText[:size]
			r := script(t, "cat; printf x >&2").withStdin(stdio.ReplayKept(spoolWith(t, text)))
			r.executor.Output.Capture = task.CaptureBoth
			checkText(t, "passed on", r.start().rest(), text)
			checkText(t, "captured", r.outcome.Stdout, text[max(0, size-8<<10):])
		})
	}
}

// spoolWith returns a spool that holds text.
func spoolWith(t *testing.T, text string) *spool.Spool {
	t.Helper()
	s := inMemory(t)
	writeText(t, s, text)
	return s
}

// A process that the command has left running may write for ever. It gets SIGPIPE when the attempt has ended.
func TestWhatIsLeftBehindIsNotTakenIn(t *testing.T) {
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputFinal} {
		t.Run(string(mode), func(t *testing.T) {
			o := heldOutput(t, mode)
			o.Capture = task.CaptureBoth
			cut := 0
			o.Cut = func(_ *task.Task, written bool) {
				if cut++; !written {
					t.Error("told that nothing was written")
				}
			}
			pids := newFile(t, t.TempDir(), "pids")
			const code = `echo first; sh -c 'echo $$ >>"$0"; while :; do echo more; done' "$1" &
				while ! [ -s "$1" ]; do sleep 0.01; done; exit 3`
			r := script(t, code, pids.Name()).withOutput(o)
			r.task.Status = task.Failed
			if got := r.start().end(); got.Exit != 3 || got.Final {
				t.Errorf("outcome %+v", got)
			}
			text := contents(t, o.Stdout)
			if !strings.HasPrefix(text, "first\n") || len(text) > 128<<20 || cut != 1 {
				t.Errorf("passed on: got %d bytes, told %d times, want the first line, a part of the others, and a word",
					len(text), cut)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(contents(t, pids)))
			testkit.Must(t, err)
			testkit.Eventually(t, "its writer ends", func() bool { return !alive(pid) })
			checkText(t, "afterwards", contents(t, o.Stdout), text)
		})
	}
}

// The tee of a shell's `exec > >(tee log)` writes the last lines after the shell has ended, and a sort there all of
// them.
func TestWhatIsWrittenJustAfterTheEnd(t *testing.T) {
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputFinal} {
		o := heldOutput(t, mode)
		o.Capture = task.CaptureBoth
		o.Cut = func(*task.Task, bool) { t.Error("told that it was cut") }
		r := script(t, `echo first; (while kill -0 $$ 2>/dev/null; do sleep 0.01; done
			head -c 1500000 /dev/zero; echo last) &`).withOutput(o)
		r.task.Status = task.Succeeded
		if got := r.start().end(); !strings.HasSuffix(got.Stdout, "last\n") {
			t.Errorf("%s: got %+v, want the last line", mode, got)
		}
		checkText(t, "passed on", contents(t, o.Stdout), "first\n"+string(make([]byte, 1500000))+"last\n")
	}
}

// Where the output of an attempt is not passed on, nobody misses what was cut of it, but for a condition that looks
// at it.
func TestACutThatNobodyMisses(t *testing.T) {
	for _, looks := range []bool{false, true} {
		o := heldOutput(t, task.OutputFailure)
		told := 0
		o.Cut = func(*task.Task, bool) { told++ }
		r := script(t, `exec 3<&0; sh -c 'read -r _' <&3 & echo out`).withOutput(o)
		if looks {
			condition, err := task.ParseCondition(`stdout contains "out"`)
			testkit.Must(t, err)
			r.task.Policy.SuccessOn = []task.Condition{condition}
		}
		r.task.Status = task.Succeeded
		r.start().check(task.Outcome{Stdout: "out\n"})
		if (told > 0) != looks {
			t.Errorf("with a condition %v: told %d times", looks, told)
		}
	}
}

// Execute does not wait for a daemon that writes nothing.
func TestASilentDaemonIsNotWaitedFor(t *testing.T) {
	o := heldOutput(t, task.OutputFinal)
	told := 0
	o.Cut = func(_ *task.Task, written bool) {
		if told++; written {
			t.Error("told that something was written")
		}
	}
	r := script(t, `exec 3<&0; sh -c 'read -r _' <&3 & echo out; exit 3`).withOutput(o)
	r.task.Status = task.Failed
	r.start().check(task.Outcome{Exit: 3, Stdout: "out\n"})
	checkText(t, "passed on", contents(t, o.Stdout), "out\n")
	if told != 1 {
		t.Errorf("told %d times that it may write more, want once", told)
	}
}

// What is in the pipe when the command ends is passed on. The reader of retry's stdout is too slow to have read it
// before.
func TestLastWordsAreTakenIn(t *testing.T) {
	const size = 100_000 // more than one pipe holds, and less than two
	tests := map[string]string{
		"at once":              "head -c 100000 /dev/zero",
		"by one after another": "for i in 1 2 3 4; do head -c 25000 /dev/zero; done",
		"by several together":  "for i in 1 2 3 4; do head -c 25000 /dev/zero & done; wait",
	}
	for name, code := range tests {
		t.Run(name, func(t *testing.T) {
			r := script(t, "echo $$; "+code)
			r.executor.Output.Capture = task.CaptureBoth
			r.start().endAndReap()
			checkText(t, "passed on", r.rest(), string(make([]byte, size)))
			r.check(task.Outcome{Stdout: r.outcome.Stdout})
		})
	}
}

// A full pipe is not lost when the command ends at the same moment.
func TestLastWordsManyTimes(t *testing.T) {
	o := heldOutput(t, task.OutputFinal)
	r := script(t, "head -c 65536 /dev/zero").withOutput(o)
	r.task.Status = task.Succeeded
	for n := range 50 {
		r.executor.Execute(t.Context(), &r.task, runner.Call{Number: 1})
		_, err := r.executor.Flush(&r.task, nil)
		testkit.Must(t, err)
		if size := len(contents(t, o.Stdout)); size != (n+1)<<16 {
			t.Fatalf("run %d: got %d bytes in all, want %d", n+1, size, (n+1)<<16)
		}
	}
}

// closeReader closes the reader of the command's stdout.
func (r *rig) closeReader() {
	r.Helper()
	testkit.Must(r, r.reader.Close())
}

// If the reader closes stdout, the command gets SIGPIPE, as it would without retry, and is not retried.
func TestReaderGoesAway(t *testing.T) {
	died := task.Outcome{Exit: 141, Signal: "SIGPIPE", Final: true}
	tests := []struct {
		code string
		want task.Outcome
	}{
		{code: "while :; do echo x; done", want: died},
		{code: "trap 'exit 3' PIPE; while echo x; do :; done 2>/dev/null; exit 3", want: task.Outcome{Exit: 3}},
		{code: "(while :; do echo x; done); exit $?", want: task.Outcome{Exit: 141, Final: true}},
	}
	for _, tt := range tests {
		for _, capture := range captures {
			t.Run(fmt.Sprintf("%s %s", tt.code, capture), func(t *testing.T) {
				r := script(t, tt.code)
				r.executor.Output.Capture = capture
				r.start().expect("x")
				r.closeReader()
				got := r.end()
				want := tt.want
				want.Final = want.Final || capture == task.CaptureBoth // retry itself has got EPIPE
				want.Stdout, want.Duration, want.GroupLeft = got.Stdout, got.Duration, got.GroupLeft
				if got != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			})
		}
	}
}

// A SIGPIPE while stdout still has its reader is a failure like others.
func TestOtherBrokenPipesAreTriedAgain(t *testing.T) {
	for _, capture := range captures {
		for _, code := range []string{"kill -PIPE $$", "exit 141"} {
			r := script(t, code)
			r.executor.Output.Capture = capture
			if o := r.start().end(); o.Exit != 141 || o.Final {
				t.Errorf("%s %s: got %+v, want exit 141, not final", code, capture, o)
			}
		}
	}
}

func TestReaderOfHeldOutputIsGone(t *testing.T) {
	for _, code := range heldScripts {
		r := script(t, code)
		r.executor.Output.Mode, r.executor.Output.Temporary, r.task.Status = task.OutputFinal, temporary(t),
			task.Succeeded
		r.closeReader()
		if o := r.start().end(); o.Exit != 0 || !errors.Is(r.lost, syscall.EPIPE) {
			t.Errorf("got %+v, error %v; want exit 0, error %v", o, r.lost, syscall.EPIPE)
		}
	}
}

// A closed reader of stderr does not make the attempt final, and loses nothing.
func TestReaderOfStderrGoesAway(t *testing.T) {
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputFinal} {
		read, write := pipe(t)
		r := script(t, "echo out; echo err >&2; echo err >&2; exit 3")
		r.executor.Output.Mode, r.executor.Output.Capture, r.executor.Output.Stderr = mode, task.CaptureBoth, write
		r.task.Status = task.Failed
		testkit.Must(t, read.Close())
		text := r.start().rest()
		if r.outcome.Final || r.lost != nil || text != "out\n" {
			t.Errorf("%s: got %q, %+v, error %v; want the text, not final, no error", mode, text, r.outcome, r.lost)
		}
	}
}

// The file of held output is closed, whether the output was passed on or not: where another attempt is to follow, when
// that begins.
func TestHeldFilesAreClosed(t *testing.T) {
	for _, status := range []task.Status{task.Pending, task.Succeeded} {
		var made []*os.File
		o := heldOutput(t, task.OutputFinal)
		o.Temporary = func() (*os.File, error) {
			file, err := spool.Temporary(t.TempDir())
			made = append(made, file)
			return file, err
		}
		r := script(t, "head -c 2000000 /dev/zero").withOutput(o)
		r.task.Status = status
		r.start().end()
		if _, err := r.executor.Output.Open(&r.task); err != nil {
			t.Fatal(err)
		}
		if len(made) != 1 || !errors.Is(made[0].Close(), os.ErrClosed) {
			t.Errorf("%s: got %d files, want one that is closed", status, len(made))
		}
	}
}
