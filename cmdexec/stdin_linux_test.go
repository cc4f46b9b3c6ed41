package cmdexec

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/task"
)

func offset(t *testing.T, file *os.File) int64 {
	t.Helper()
	at, err := file.Seek(0, io.SeekCurrent)
	ok(t, err)
	return at
}

// Others may read from the descriptor after retry, and beside it.
func TestSharedOffsetOnlyMovesOn(t *testing.T) {
	file := fileWith(t, fourLines)
	take(t, file, "one\n")
	stdin := &stdio.InheritedStdin{File: file}
	steps := []struct {
		code, want string
		after      int64
	}{
		{firstLine, "two\n", 8},
		{firstLine, "two\n", 8},
		{"read -r x; " + firstLine, "three\n", 14},
		{firstLine, "two\n", 14},
		{"exec <&-", "", 14},
		{"cat", "two\nthree\nfour\n", 19},
		{firstLine, "two\n", 19},
	}
	for i, tt := range steps {
		gets(t, stdin, tt.code, tt.want)
		if got := offset(t, file); got != tt.after {
			t.Errorf("after attempt %d the shared offset is %d, want %d", i+1, got, tt.after)
		}
	}
}

// A loop that reads the same descriptor while an attempt runs gets each line once.
func TestSharedOffsetWhileAnAttemptRuns(t *testing.T) {
	file := fileWith(t, fourLines)
	stdin := &stdio.InheritedStdin{File: file}
	gets(t, stdin, firstLine, "one\n")
	r := script(t, firstLine+"; "+firstLine+"; trap 'exit 0' TERM"+untilStopped).with(stdin)
	r.start().expect("one", "two", "ready")
	take(t, file, "two\nthree\n")
	r.send(syscall.SIGTERM)
	r.check(task.Outcome{Stop: syscall.SIGTERM})
	take(t, file, "four\n")
}

// What nobody has read is not opened again: a lock that the command takes on it is one for all attempts.
func TestFileThatWasNotReadIsShared(t *testing.T) {
	file := fileWith(t, fourLines)
	stdin := &stdio.InheritedStdin{File: file}
	for range 3 {
		in, err := stdin.Open()
		ok(t, err)
		if in.File != file {
			t.Error("the file was opened again")
		}
		ok(t, in.Close())
	}
	gets(t, stdin, firstLine, "one\n")
	gets(t, stdin, firstLine, "one\n")
}

// A stdin that can be written to, as of <>file, can be in each attempt.
func TestFileIsOpenedAgainInTheSameMode(t *testing.T) {
	file, err := os.OpenFile(fileWith(t, fourLines).Name(), os.O_RDWR, 0)
	ok(t, err)
	defer file.Close()
	stdin := &stdio.InheritedStdin{File: file}
	gets(t, stdin, "cat; echo five >&0", fourLines)
	gets(t, stdin, "cat; echo six >&0", fourLines+"five\n")
	gets(t, stdin, "cat", fourLines+"five\nsix\n")
}

// Without the right to open the file again, the shared offset has to go back.
func TestFileThatCannotBeOpenedAgain(t *testing.T) {
	file := fileWith(t, fourLines)
	take(t, file, "one\n")
	stdin := &stdio.InheritedStdin{File: file}
	gets(t, stdin, "cat", "two\nthree\nfour\n")
	ok(t, file.Chmod(0))
	for range 2 {
		in := openAsNobody(t, stdin)
		if in.File != file {
			t.Fatal("the file was opened again: nothing is shown")
		}
		take(t, in.File, "two\n")
		ok(t, in.Close())
		if got := offset(t, file); got != 8 {
			t.Errorf("afterwards the offset is %d, want 8", got)
		}
	}
}

// openAsNobody opens a stdin on a thread that has no right to files of others.
func openAsNobody(t *testing.T, stdin stdio.Stdin) *stdio.Input {
	t.Helper()
	const nobody = 65534
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := unix.SetfsuidRetUid(nobody)
	defer func() { _ = unix.Setfsuid(before) }()
	in, err := stdin.Open()
	ok(t, err)
	return in
}

// streamProbe writes how the streams of a process were opened, and all of its descriptors.
const streamProbe = `for n in 0 1 2; do grep flags /proc/self/fdinfo/$n; done; ls /proc/self/fd`

// A process expects streams that make it wait, and only those three.
func TestPipesAreAsFromAShell(t *testing.T) {
	bare := output(t, []string{"sh", "-c", streamProbe})
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputFinal} {
		r := script(t, streamProbe).with(stdio.Replay(fileWith(t, ""), memory(t), nil))
		r.executor.Output.Mode, r.executor.Output.Capture = mode, task.CaptureBoth
		text, _ := r.run()
		flags, descriptors := splitProbe(t, text)
		for n, bits := range flags {
			if bits&unix.O_NONBLOCK != 0 {
				t.Errorf("%s: descriptor %d does not block", mode, n)
			}
		}
		if _, want := splitProbe(t, bare); descriptors != want {
			t.Errorf("%s: the command's descriptors are %q, without retry %q", mode, descriptors, want)
		}
	}
}

func splitProbe(t *testing.T, text string) (flags [3]int64, descriptors string) {
	t.Helper()
	lines := strings.SplitN(text, "\n", len(flags)+1)
	for i := range flags {
		octal := strings.TrimSpace(strings.TrimPrefix(lines[i], "flags:"))
		bits, err := strconv.ParseInt(octal, 8, 64)
		ok(t, err)
		flags[i] = bits
	}
	return flags, lines[len(flags)]
}
