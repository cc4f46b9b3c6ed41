package cmdexec

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

func offset(t *testing.T, file *os.File) int64 {
	t.Helper()
	at, err := file.Seek(0, io.SeekCurrent)
	testkit.Must(t, err)
	return at
}

// Other processes may read from the descriptor, after retry and at the same time.
func TestSharedOffsetOnlyMovesOn(t *testing.T) {
	file := fileWith(t, fourLines)
	expectText(t, file, "one\n")
	stdin := &stdio.InheritedStdin{File: file}
	steps := []struct {
		code, want string
		after      int64
	}{
		{code: copyOneLine, want: "two\n", after: 8},
		{code: copyOneLine, want: "two\n", after: 8},
		{code: "read -r x; " + copyOneLine, want: "three\n", after: 14},
		{code: copyOneLine, want: "two\n", after: 14},
		{code: "exec <&-", after: 14},
		{code: "cat", want: "two\nthree\nfour\n", after: 19},
		{code: copyOneLine, want: "two\n", after: 19},
	}
	for i, tt := range steps {
		checkAttempt(t, stdin, tt.code, tt.want)
		if got := offset(t, file); got != tt.after {
			t.Errorf("shared offset after attempt %d: got %d, want %d", i+1, got, tt.after)
		}
	}
}

// A loop that reads the same descriptor while an attempt runs gets each line once.
func TestSharedOffsetWhileAnAttemptRuns(t *testing.T) {
	file := fileWith(t, fourLines)
	stdin := &stdio.InheritedStdin{File: file}
	checkAttempt(t, stdin, copyOneLine, "one\n")
	r := script(t, copyOneLine+"; "+copyOneLine+"; trap 'exit 0' TERM"+untilStopped).withStdin(stdin)
	r.start().expect("one", "two", "ready")
	expectText(t, file, "two\nthree\n")
	r.send(syscall.SIGTERM)
	r.check(task.Outcome{Stop: syscall.SIGTERM})
	expectText(t, file, "four\n")
}

// A file that was locked and not read is not opened again: the lock is the same for all attempts.
func TestLockedFileIsShared(t *testing.T) {
	file := fileWith(t, fourLines)
	testkit.Must(t, unix.Flock(int(file.Fd()), unix.LOCK_EX))
	stdin := &stdio.InheritedStdin{File: file}
	for range 3 {
		in, err := stdin.Open()
		testkit.Must(t, err)
		if in.File != file {
			t.Error("the file was opened again")
		}
		testkit.Must(t, in.Close())
	}
	checkAttempt(t, stdin, copyOneLine, "one\n")
	checkAttempt(t, stdin, copyOneLine, "one\n")
}

// A stdin that was opened for writing too (<>file) can be written to by each attempt.
func TestFileIsOpenedAgainInTheSameMode(t *testing.T) {
	file, err := os.OpenFile(fileWith(t, fourLines).Name(), os.O_RDWR, 0)
	testkit.Must(t, err)
	defer file.Close()
	stdin := &stdio.InheritedStdin{File: file}
	checkAttempt(t, stdin, "cat; echo five >&0", fourLines)
	checkAttempt(t, stdin, "cat; echo six >&0", fourLines+"five\n")
	checkAttempt(t, stdin, "cat", fourLines+"five\nsix\n")
}

// If the file may not be opened again, the next attempts read a copy: a loop that reads on from the shared offset must
// not see a line twice. Where nothing was read, they share the file.
func TestFileThatCannotBeOpenedAgain(t *testing.T) {
	file := fileWith(t, fourLines)
	expectText(t, file, "one\n")
	stdin := &stdio.InheritedStdin{File: file}
	checkAttempt(t, stdin, "cat", "two\nthree\nfour\n")
	testkit.Must(t, file.Chmod(0))
	for range 2 {
		in := openAsNobody(t, stdin)
		expectText(t, in.File, "two\n")
		testkit.Must(t, in.Close())
		if got := offset(t, file); got != 19 {
			t.Errorf("offset afterwards: got %d, want 19, the end", got)
		}
	}
	_, err := file.Seek(4, io.SeekStart)
	testkit.Must(t, err)
	if in := openAsNobody(t, stdin); in.File != file {
		t.Error("got another file where nothing was read, want the same")
	}
}

// openAsNobody opens a stdin on a thread with the permissions of the user nobody.
func openAsNobody(t *testing.T, stdin stdio.Stdin) *stdio.Input {
	t.Helper()
	const nobody = 65534
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := unix.SetfsuidRetUid(nobody)
	defer func() { _ = unix.Setfsuid(before) }()
	in, err := stdin.Open()
	testkit.Must(t, err)
	return in
}

// streamProbe writes how the streams of a process were opened, and all of its descriptors.
const streamProbe = `for n in 0 1 2; do grep flags /proc/self/fdinfo/$n; done; ls /proc/self/fd`

// A process expects streams that block, and only these three.
func TestPipesAreAsFromAShell(t *testing.T) {
	bare := outputOf(t, []string{"sh", "-c", streamProbe})
	for _, mode := range []task.OutputMode{task.OutputStream, task.OutputFinal} {
		r := script(t, streamProbe).withStdin(stdio.Replay(stdio.NewReader(fileWith(t, "")), inMemory(t), nil))
		r.executor.Output.Mode, r.executor.Output.Capture = mode, task.CaptureBoth
		text, _ := r.run()
		flags, descriptors := splitProbe(t, text)
		for n, bits := range flags {
			if bits&unix.O_NONBLOCK != 0 {
				t.Errorf("%s: descriptor %d does not block", mode, n)
			}
		}
		if _, want := splitProbe(t, bare); descriptors != want {
			t.Errorf("%s: descriptors: got %q, want %q", mode, descriptors, want)
		}
	}
}

func splitProbe(t *testing.T, text string) (flags [3]int64, descriptors string) {
	t.Helper()
	lines := strings.SplitN(text, "\n", len(flags)+1)
	for i := range flags {
		octal := strings.TrimSpace(strings.TrimPrefix(lines[i], "flags:"))
		bits, err := strconv.ParseInt(octal, 8, 64)
		testkit.Must(t, err)
		flags[i] = bits
	}
	return flags, lines[len(flags)]
}

// A file that cannot grow is like a full disk.
func TestReplayOnAFullDisk(t *testing.T) {
	tests := map[string]struct{ memory, room int }{
		"no room at all":            {},
		"room for the first bytes":  {room: 100_000},
		"none for what memory held": {memory: 100_000, room: 70_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kept := spool.New(tt.memory, func() (*os.File, error) { return fileWithRoom(t, tt.room), nil })
			checkWithoutRoom(t, kept, notKept+"write spool: operation not permitted")
		})
	}
}

// fileWithRoom returns a file that cannot grow beyond size.
func fileWithRoom(t *testing.T, size int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("spool", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	testkit.Must(t, err)
	testkit.Must(t, unix.Ftruncate(fd, int64(size)))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	testkit.Must(t, err)
	file := os.NewFile(uintptr(fd), "spool")
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// failingTerminal returns a terminal that gives text. After cut, reading from it fails with EIO.
func failingTerminal(t *testing.T, text string) (read *os.File, cut func()) {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _, _ = master.Close(), terminal.Close() })
	writeText(t, terminal, text)
	return master, func() { testkit.Must(t, terminal.Close()) }
}

// If stdin could not be read, the command is killed: it must not take that for the end. It is not retried.
func TestReplayOfASourceThatFails(t *testing.T) {
	const brokenOff = "read stdin: read /dev/ptmx: input/output error"
	read, cut := failingTerminal(t, "one ")
	var done completeCalls
	stdin := stdio.Replay(stdio.NewReader(read), inMemory(t), done.call)
	ended := filepath.Join(t.TempDir(), "ended")
	r := script(t, "cat; touch "+ended).withStdin(stdin).start()
	expectText(t, r.stdout, "one ")
	cut()
	r.check(incompleteStdin(brokenOff))
	for _, code := range []string{"cat", "cat; touch " + ended} {
		r := script(t, code).withStdin(stdin)
		if got, _ := r.run(); got != "one " && got != "" {
			t.Errorf("a later attempt: got %q, want %q at most", got, "one ")
		}
		r.check(incompleteStdin(brokenOff))
	}
	if _, err := os.Stat(ended); err == nil {
		t.Error("got a command that took the failure for the end of its input")
	}
	done.check(t, stdin, 0)
}

// A signal that asks to stop counts even if stdin could not be read.
func TestReplayOfASourceThatFailsBesideASignal(t *testing.T) {
	read, cut := failingTerminal(t, "one ")
	r := script(t, "trap 'cat; exit 9' TERM"+untilStopped).withStdin(stdio.Replay(stdio.NewReader(read), inMemory(t), nil)).start()
	r.expect("ready")
	r.send(syscall.SIGTERM)
	expectText(t, r.stdout, "one ")
	cut()
	if o := r.end(); o.Stop != syscall.SIGTERM || o.Error != task.ErrorStart {
		t.Errorf("outcome %+v", o)
	}
}

// TestStreamsLeaveNothingBehind is TestLeavesNothingBehind for captured, held and replayed streams.
func TestStreamsLeaveNothingBehind(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector would close forgotten files
	read, write := pipe(t)                           // empty, so that the feed of each attempt waits
	e := Executor{Stdin: stdio.Replay(stdio.NewReader(read), inMemory(t), nil)}
	attempt := func(i int) {
		e.Output = heldOutput(t, task.OutputFinal)
		code := []string{"exit", "read -r x", "head -c 2000000 /dev/zero", "kill -9 $$"}[i%4]
		tk := task.Task{Command: []string{"sh", "-c", code}}
		if i%3 == 0 {
			tk.Command = []string{[]string{"/no/such/command", "/"}[i%2]}
		}
		tk.Status = []task.Status{task.Pending, task.Failed}[i%2]
		if i%4 == 1 && i%3 != 0 {
			writeText(t, write, "a line\n")
		}
		e.Execute(t.Context(), &tk, runner.Call{Number: 1})
		for _, status := range []task.Status{tk.Status, task.Cancelled} { // after an attempt, and after the last one
			tk.Status = status
			_, err := e.Flush(&tk, nil)
			testkit.Must(t, err)
		}
		_, _ = e.Output.Stdout.Close(), e.Output.Stderr.Close()
	}
	for i := range 12 { // sets up what is set up only once
		attempt(i)
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for i := range 60 {
		attempt(i)
	}
	// The feed of the latest attempt closes its pipe in a goroutine: there may be one file less than when they were
	// counted.
	testkit.Eventually(t, "no more files than before", func() bool { return openFiles(t) <= files })
	testkit.Eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// Each later attempt opens the file again, and closes it.
func TestFileStdinLeavesNothingBehind(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	stdin := &stdio.InheritedStdin{File: fileWith(t, fourLines)}
	checkAttempt(t, stdin, copyOneLine, "one\n")
	files := openFiles(t)
	for _, command := range []string{"true", "false", "/no/such/command", "/"} {
		e := Executor{Stdin: stdin}
		e.Execute(t.Context(), &task.Task{Command: []string{command}}, runner.Call{Number: 2})
	}
	if n := openFiles(t); n != files {
		t.Errorf("open files: got %d, want %d", n, files)
	}
}

// The feed ends with the attempt, even if the command has not read everything.
func TestFeedFromAFileEnds(t *testing.T) {
	kept := onDisk(t)
	writeText(t, kept, bigText)
	stdin := stdio.ReplayKept(kept)
	goroutines := runtime.NumGoroutine()
	for range 10 {
		checkAttempt(t, stdin, "exec true", "")
		checkAttempt(t, stdin, "head -c 1", bigText[:1])
		checkAttempt(t, stdin, "cat", bigText)
	}
	testkit.Eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// largeSize is what an enlarged pipe holds beside the first line.
const largeSize = 1<<20 - 8<<10

// helperEnlarge makes its stdout as large as a process may without privileges, and fills it.
func helperEnlarge() error {
	if _, err := unix.FcntlInt(1, unix.F_SETPIPE_SZ, 1<<20); err != nil {
		return err
	}
	fmt.Println(os.Getpid())
	_, err := io.WriteString(os.Stdout, strings.Repeat("x", largeSize))
	return err
}

// A command can enlarge its pipe, fill it, and end.
func TestLastWordsInALargePipe(t *testing.T) {
	r := newRig(t, helperCommand("enlarge")...)
	r.executor.Output.Capture = task.CaptureBoth
	r.start().endAndReap()
	checkText(t, "passed on", r.rest(), strings.Repeat("x", largeSize))
}

// A writer that is blocked in one long write fills the pipe again without a wake-up of its readers.
func TestReadFromAFullPipe(t *testing.T) {
	read, write := openStream["pipe"](t)
	defer func() { _, _ = read.Close(), write.Close() }()
	go func() { _, _ = write.Write(make([]byte, 4*pipeCapacity)) }()
	full := func() bool {
		n, err := unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
		return err == nil && n == pipeCapacity
	}
	testkit.Eventually(t, "the pipe is full", full)
	err := openAndClose(t, inherit(t, read), func() {
		_, err := io.ReadFull(read, make([]byte, 4096))
		testkit.Must(t, err)
		testkit.Eventually(t, "the pipe is full again", full)
	})
	if !errors.Is(err, stdio.ErrRead) {
		t.Errorf("got %v, want ErrRead", err)
	}
	_, _ = io.CopyN(io.Discard, read, 3*pipeCapacity)
}

// A process that waits for the stream takes what comes at once, and several retry can watch it: one inside the other,
// or one beside the other, of which one ends first.
func TestAReaderThatWaits(t *testing.T) {
	for kind, open := range openStream {
		t.Run(kind, func(t *testing.T) {
			read, write := open(t)
			defer func() { _, _ = read.Close(), write.Close() }()
			outer, inner, brief := inherit(t, read), inherit(t, read), inherit(t, read)
			for _, stdin := range []*stdio.InheritedStdin{brief, outer, inner} {
				testkit.Must(t, openAndClose(t, stdin, func() {}))
			}
			brief.Release()
			reader := exec.Command("head", "-c", "1")
			reader.Stdin = read
			testkit.Must(t, reader.Start())
			waits := func() bool {
				state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", reader.Process.Pid))
				return err == nil && strings.Contains(string(state), "(head) S")
			}
			err := openAndClose(t, outer, func() {
				err := openAndClose(t, inner, func() {
					testkit.Eventually(t, "the reader waits", waits)
					writeZeros(t, write, 1)
					testkit.Must(t, reader.Wait())
				})
				if !errors.Is(err, stdio.ErrRead) {
					t.Errorf("the inner one: got %v, want ErrRead", err)
				}
			})
			if !errors.Is(err, stdio.ErrRead) {
				t.Errorf("the outer one: got %v, want ErrRead", err)
			}
		})
	}
}

// More may come while the watch begins: it is not taken for what an attempt has read.
func TestReadWhereMoreComesAtTheBeginning(t *testing.T) {
	for range 500 {
		read, write := openStream["pipe"](t)
		writeZeros(t, write, 5)
		written := make(chan struct{})
		go func() { writeZeros(t, write, 5); close(written) }()
		stdin := &stdio.InheritedStdin{File: read}
		err := openAndClose(t, stdin, func() {
			<-written
			_, err := io.ReadFull(read, make([]byte, 5))
			testkit.Must(t, err)
		})
		stdin.Release()
		_, _ = read.Close(), write.Close()
		if !errors.Is(err, stdio.ErrRead) {
			t.Fatalf("got %v, want ErrRead", err)
		}
	}
}

// An attempt that has set O_NONBLOCK, and was killed, leaves it to nobody: the next one would take EAGAIN for the end.
func TestModeOfAPipeIsSetBack(t *testing.T) {
	read, write := openStream["pipe"](t)
	defer func() { _, _ = read.Close(), write.Close() }()
	blocks := func(f *os.File) bool {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		testkit.Must(t, err)
		return flags&unix.O_NONBLOCK == 0
	}
	stdin, output := inherit(t, read), stdio.Output{Stdout: write, Stderr: write}
	for range 3 {
		streams, err := output.Open(&task.Task{})
		testkit.Must(t, err)
		testkit.Must(t, openAndClose(t, stdin, func() {
			if !blocks(read) || !blocks(streams.Stdout) {
				t.Errorf("got a stdin that blocks: %v, a stdout: %v; want both", blocks(read), blocks(streams.Stdout))
			}
			testkit.Must(t, unix.SetNonblock(int(read.Fd()), true), unix.SetNonblock(int(write.Fd()), true))
		}))
	}
}

// A file that is written anew in place, as a dump or a list is, is another input even where its size is the same.
func TestFileThatIsWrittenAnewBetweenAttempts(t *testing.T) {
	file := fileWith(t, fourLines)
	stdin := &stdio.InheritedStdin{File: file}
	checkAttempt(t, stdin, copyOneLine, "one\n")
	checkAttempt(t, stdin, copyOneLine, "one\n")
	testkit.Must(t, os.WriteFile(file.Name(), []byte(strings.ToUpper(fourLines)), 0o600),
		os.Chtimes(file.Name(), time.Time{}, time.Unix(1, 0)))
	if _, err := stdin.Open(); !errors.Is(err, stdio.ErrRead) {
		t.Errorf("got %v, want ErrRead", err)
	}
}

// A log that has grown while an attempt read it is another one where it is shorter then, however short it was before.
func TestFileThatGrowsAndIsCutBetweenAttempts(t *testing.T) {
	file := fileWith(t, fourLines)
	stdin := &stdio.InheritedStdin{File: file}
	checkAttempt(t, stdin, `for i in 1 2 3; do echo more; done >>"`+file.Name()+`"; cat`, fourLines+"more\nmore\nmore\n")
	testkit.Must(t, os.Truncate(file.Name(), int64(len(fourLines))+5))
	if _, err := stdin.Open(); !errors.Is(err, stdio.ErrRead) {
		t.Errorf("got %v, want ErrRead", err)
	}
}

// A line that was read, and after which an equal one came, is not taken for the one that was there: lines of a log or
// of a queue are often equal.
func TestReadBeforeTheSameCameAgain(t *testing.T) {
	read, write := openStream["pipe"](t)
	defer func() { _, _ = read.Close(), write.Close() }()
	say := func(lines string) {
		_, err := write.WriteString(lines)
		testkit.Must(t, err)
	}
	say("job\n")
	stdin := inherit(t, read)
	testkit.Must(t, openAndClose(t, stdin, func() { say("stop\n") })) // more came, and nobody has read
	expectText(t, read, "job\n")
	expectText(t, read, "stop\n")
	say("job\n")
	stdin = inherit(t, read)
	err := openAndClose(t, stdin, func() {
		time.Sleep(300 * time.Millisecond) // by then the watch looks seldom how much the pipe holds
		expectText(t, read, "job\n")
		say("job\nstop\n")
	})
	if !errors.Is(err, stdio.ErrRead) {
		t.Errorf("got %v, want ErrRead", err)
	}
	expectText(t, read, "job\nstop\n")
	say("job\n")
	stdin = inherit(t, read)
	err = openAndClose(t, stdin, func() { // as a command does that is given /dev/stdin
		time.Sleep(300 * time.Millisecond)
		again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", read.Fd()))
		testkit.Must(t, err)
		expectText(t, again, "job\n")
		testkit.Must(t, again.Close())
		say("job\nstop\n")
	})
	if !errors.Is(err, stdio.ErrRead) {
		t.Errorf("opened anew: got %v, want ErrRead", err)
	}
}

// A retry inside of an attempt looks at a pipe, and does not read it.
func TestLooksOfANestedRetry(t *testing.T) {
	read, write := openStream["pipe"](t)
	defer func() { _, _ = read.Close(), write.Close() }()
	say := func(lines string) {
		_, err := write.WriteString(lines)
		testkit.Must(t, err)
	}
	say("one\n")
	testkit.Must(t, openAndClose(t, inherit(t, read), func() {
		inner := inherit(t, read)
		for _, line := range []string{"two\n", "three\n"} {
			testkit.Must(t, openAndClose(t, inner, func() { say(line) }))
		}
	}))
	expectText(t, read, "one\ntwo\nthree\n")
}

// What a daemon of an attempt reads after its end is gone for the next one.
func TestReadBetweenAttempts(t *testing.T) {
	read, write := openStream["pipe"](t)
	defer func() { _, _ = read.Close(), write.Close() }()
	writeZeros(t, write, 10)
	stdin := inherit(t, read)
	testkit.Must(t, openAndClose(t, stdin, func() {}))
	_, err := io.ReadFull(read, make([]byte, 1))
	testkit.Must(t, err)
	if _, err := stdin.Open(); !errors.Is(err, stdio.ErrRead) {
		t.Errorf("got %v, want ErrRead", err)
	}
}

// connection returns both ends of one over TCP.
func connection(t *testing.T) (read *os.File, write net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	write, err = net.Dial("tcp", listener.Addr().String())
	testkit.Must(t, err)
	accepted, err := listener.Accept()
	testkit.Must(t, err)
	read, err = accepted.(*net.TCPConn).File()
	testkit.Must(t, err, accepted.Close(), listener.Close())
	return read, write
}

// Where the system does not show reads, more bytes than before may hide one, and an idle stream is only warned of.
func TestStreamThatShowsNoReads(t *testing.T) {
	tests := []struct {
		name   string
		came   int
		want   error
		unseen int // warnings
	}{
		{name: "idle", unseen: 1},
		{name: "more came", came: 5, want: stdio.ErrRead},
	}
	for _, tt := range tests {
		read, write := connection(t)
		unseen, stdin := 0, inherit(t, read)
		stdin.Lost = func(error) { unseen++ }
		err := openAndClose(t, stdin, func() {
			writeZeros(t, write, tt.came)
			testkit.Eventually(t, "it came", func() bool {
				n, err := unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
				return err == nil && n == tt.came
			})
		})
		for range 2 {
			testkit.Must(t, openAndClose(t, stdin, func() {}))
		}
		if !errors.Is(err, tt.want) || tt.want == nil && unseen != tt.unseen {
			t.Errorf("%s: got %v and %d warnings, want %v and %d", tt.name, err, unseen, tt.want, tt.unseen)
		}
		_, _ = read.Close(), write.Close()
	}
}

// The error of a connection that was reset goes to one reader: the next one would find an empty input.
func TestConnectionThatWasReset(t *testing.T) {
	for _, reset := range []bool{true, false} {
		read, write := connection(t)
		err := openAndClose(t, inherit(t, read), func() {
			if reset {
				testkit.Must(t, write.(*net.TCPConn).SetLinger(0))
			}
			testkit.Must(t, write.Close())
			buffer := make([]byte, 1)
			_, _ = unix.Read(int(read.Fd()), buffer)
		})
		if errors.Is(err, stdio.ErrRead) != reset {
			t.Errorf("reset %v: got %v, want ErrRead after a reset alone", reset, err)
		}
		_ = read.Close()
	}
}

// A connection that was reset is not an empty one: a resume must not take it for that.
func TestSourceOfAConnection(t *testing.T) {
	for _, reset := range []bool{true, false} {
		read, write := connection(t)
		if reset {
			testkit.Must(t, write.(*net.TCPConn).SetLinger(0))
		}
		testkit.Must(t, write.Close())
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(read.Fd()), Events: unix.POLLIN}}, 10_000)
		testkit.Must(t, err)
		if got := inherit(t, read).Source(); got.Pipe != reset {
			t.Errorf("reset %v: got %+v, want a stream after a reset alone", reset, got)
		}
		_ = read.Close()
	}
}

// A terminal that was closed is an empty input from then on.
func TestTerminalThatWasClosed(t *testing.T) {
	master, terminal, err := pty.Open()
	testkit.Must(t, err)
	defer func() { _ = terminal.Close() }()
	var lost []error
	stdin := inherit(t, terminal)
	stdin.Lost = func(err error) { lost = append(lost, err) }
	for range 2 {
		testkit.Must(t, openAndClose(t, stdin, func() {}))
	}
	if len(lost) != 0 {
		t.Errorf("while it is open: got warnings %v, want none", lost)
	}
	testkit.Must(t, master.Close())
	for range 2 {
		testkit.Must(t, openAndClose(t, stdin, func() {}))
	}
	if len(lost) != 1 || !strings.Contains(lost[0].Error(), "was closed") {
		t.Errorf("got warnings %v, want one", lost)
	}
}

// A peek offset falls no lower than 0, and a nested retry counts by the same one.
func TestManyBytesReadFromASocket(t *testing.T) {
	const most = 1 << 30 // as many as are counted
	read, write := openStream["socket"](t)
	defer func() { _, _ = read.Close(), write.Close() }()
	outer, inner := inherit(t, read), inherit(t, read)
	if err := openAndClose(t, outer, func() {}); err != nil {
		t.Fatalf("before it was read: got %v, want no error", err)
	}
	for _, n := range []int64{most/2 + 1, most} {
		err := openAndClose(t, outer, func() {
			innerErr := openAndClose(t, inner, func() {
				go func() { _, _ = io.CopyN(write, zeros{}, n) }()
				_, err := io.CopyN(io.Discard, read, n)
				testkit.Must(t, err)
			})
			if !errors.Is(innerErr, stdio.ErrRead) {
				t.Errorf("%d bytes, inner: got %v, want that it was read", n, innerErr)
			}
		})
		if !errors.Is(err, stdio.ErrRead) {
			t.Errorf("%d bytes, outer: got %v, want that it was read", n, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
