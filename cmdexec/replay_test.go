//go:build unix

package cmdexec

import (
	"bufio"
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/10f93571/retry/cmdexec/stdio"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// inMemory returns a spool that must not need a file.
func inMemory(t *testing.T) *spool.Spool {
	return spool.New(spool.MemoryLimit, func() (*os.File, error) {
		t.Error("got a file, want none")
		return nil, os.ErrInvalid
	})
}

// onDisk returns a spool that keeps everything in a file.
func onDisk(t *testing.T) *spool.Spool {
	kept := spool.New(0, func() (*os.File, error) { return spool.Temporary(t.TempDir()) })
	t.Cleanup(func() { _ = kept.Close() })
	return kept
}

// pipe returns the ends of a pipe, which are closed when the test is over.
func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	testkit.Must(t, err)
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

// pipeWith returns a pipe that contains text, then ends.
func pipeWith(t *testing.T, text string) *os.File {
	t.Helper()
	read, write := pipe(t)
	go func() {
		_, _ = io.WriteString(write, text)
		_ = write.Close()
	}()
	return read
}

func writeText(t *testing.T, to io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(to, text)
	testkit.Must(t, err)
}

// copyLines is a script that copies stdin to stdout line by line.
const copyLines = `while read -r x; do echo "$x"; done`

func TestReplayPassesOnAsItComes(t *testing.T) {
	read, write := pipe(t)
	stdin := stdio.Replay(stdio.NewReader(read), inMemory(t), nil)
	r := script(t, copyLines).withStdin(stdin).start()
	writeText(t, write, "one\n")
	r.expect("one")
	writeText(t, write, "two\nthr")
	r.expect("two")
	writeText(t, write, "ee\n")
	r.expect("three")
	testkit.Must(t, write.Close())
	r.check(task.Outcome{})
	checkAttempt(t, stdin, "cat", "one\ntwo\nthree\n")
}

// The feed of an attempt that has ended may still be reading: the next attempt gets what it reads.
func TestReplayGivesEachAttemptTheSame(t *testing.T) {
	for name, kept := range map[string]*spool.Spool{"memory": inMemory(t), "disk": onDisk(t)} {
		t.Run(name, func(t *testing.T) {
			read, write := pipe(t)
			stdin := stdio.Replay(stdio.NewReader(read), kept, nil)
			writeText(t, write, "one\n")
			for range 3 {
				checkAttempt(t, stdin, copyOneLine, "one\n")
			}
			r := script(t, copyLines).withStdin(stdin).start()
			r.expect("one")
			writeText(t, write, "two\n")
			r.expect("two")
			r.send(syscall.SIGKILL)
			r.end()
			r = script(t, copyLines).withStdin(stdin).start()
			r.expect("one", "two")
			writeText(t, write, "three\n")
			r.expect("three")
			testkit.Must(t, write.Close())
			r.check(task.Outcome{})
			for range 2 {
				checkAttempt(t, stdin, "cat", "one\ntwo\nthree\n")
			}
		})
	}
}

// From an endless source only so much is read as the attempt wants.
func TestReplayReadsNoMoreThanIsWanted(t *testing.T) {
	read, write := pipe(t)
	go func() {
		for line := bytes.Repeat([]byte("y\n"), 1<<10); ; {
			if _, err := write.Write(line); err != nil {
				return
			}
		}
	}()
	kept := inMemory(t)
	stdin := stdio.Replay(stdio.NewReader(read), kept, nil)
	for range 5 {
		checkAttempt(t, stdin, copyOneLine, "y\n")
	}
	const most = 3 * pipeCapacity // in the pipe of the attempt, in the buffer of its feed, and one more read
	if n := kept.Size(); n > most {
		t.Errorf("read for one line: got %d bytes, want at most %d", n, most)
	}
}

// bigText is more than the pipes hold, and no two parts of it are the same.
var bigText = func() string {
	data := make([]byte, 300<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return string(data)
}()

func TestReplayToWhoDoesNotRead(t *testing.T) {
	for _, code := range []string{
		"exit 3", "exec <&-; exit 3", "exec <&-; sleep 0.05; exit 3", "read -r x; exit 3",
		"head -c 100000 >/dev/null; exit 3", "exec </dev/null; cat; exit 3",
	} {
		t.Run(code, func(t *testing.T) {
			stdin := stdio.Replay(stdio.NewReader(pipeWith(t, bigText)), inMemory(t), nil)
			for range 2 {
				script(t, code).withStdin(stdin).start().check(task.Outcome{Exit: 3})
			}
			checkAttempt(t, stdin, "cat", bigText)
			checkAttempt(t, stdin, "cat", bigText)
		})
	}
}

// The stdin of a process that an attempt has left running ends with the attempt, and nobody waits for the process.
func TestReplayToADaemon(t *testing.T) {
	read, write := pipe(t)
	stdin := stdio.Replay(stdio.NewReader(read), inMemory(t), nil)
	writeText(t, write, "one\ntwo\n") // the source stays open
	r := script(t, `exec 3<&0; sh -c "$1; echo end" <&3 & exit 3`, copyLines).withStdin(stdin).start()
	r.check(task.Outcome{Exit: 3})
	if rest := r.rest(); !strings.HasSuffix(rest, "end\n") { // its end shows that the daemon has closed stdout
		t.Errorf("the daemon: got %q, want the end of its stdin", rest)
	}
	checkAttempt(t, stdin, copyOneLine, "one\n")
}

func TestReplayOfMuch(t *testing.T) {
	made := 0
	kept := spool.New(1000, func() (*os.File, error) {
		made++
		return spool.Temporary(t.TempDir())
	})
	defer kept.Close()
	stdin := stdio.Replay(stdio.NewReader(pipeWith(t, bigText)), kept, nil)
	for range 3 {
		checkAttempt(t, stdin, "cat", bigText)
	}
	if made != 1 {
		t.Errorf("files: got %d, want 1", made)
	}
}

func TestReplayOfNothing(t *testing.T) {
	completed := atomic.Int32{}
	stdin := stdio.Replay(stdio.NewReader(pipeWith(t, "")), inMemory(t), func() error { completed.Add(1); return nil })
	for range 3 {
		checkAttempt(t, stdin, "cat; echo end", "end\n")
	}
	stdin.Wait()
	if n := completed.Load(); n != 1 {
		t.Errorf("calls of complete: got %d, want 1", n)
	}
}

// The source can be a file, which is read from its current offset.
func TestReplayOfAFile(t *testing.T) {
	file := fileWith(t, fourLines)
	expectText(t, file, "one\n")
	stdin := stdio.Replay(stdio.NewReader(file), inMemory(t), nil)
	for range 2 {
		checkAttempt(t, stdin, "cat", "two\nthree\nfour\n")
	}
}

func TestReplayKept(t *testing.T) {
	inMemory, inFile, empty := inMemory(t), onDisk(t), onDisk(t)
	writeText(t, inMemory, bigText)
	writeText(t, inFile, bigText)
	of, err := spool.Of(fileWith(t, bigText))
	testkit.Must(t, err)
	for name, tt := range map[string]struct {
		kept *spool.Spool
		want string
	}{
		"memory":           {kept: inMemory, want: bigText},
		"disk":             {kept: inFile, want: bigText},
		"a file of before": {kept: of, want: bigText},
		"nothing":          {kept: empty},
	} {
		t.Run(name, func(t *testing.T) {
			stdin := stdio.ReplayKept(tt.kept)
			script(t, "exit 3").withStdin(stdin).start().check(task.Outcome{Exit: 3})
			checkAttempt(t, stdin, "cat", tt.want)
			checkAttempt(t, stdin, copyOneLine+" >/dev/null", "")
			checkAttempt(t, stdin, "cat", tt.want)
			stdin.Wait()
		})
	}
}

// Somebody may truncate the kept file. An attempt must neither take the rest for all of it, nor wait for ever.
func TestReplayKeptThatWasCut(t *testing.T) {
	file := fileWith(t, bigText)
	kept, err := spool.Of(file)
	testkit.Must(t, err)
	testkit.Must(t, os.Truncate(file.Name(), 1000))
	r := script(t, "cat").withStdin(stdio.ReplayKept(kept))
	if got, _ := r.run(); !strings.HasPrefix(bigText[:1000], got) {
		t.Errorf("got %d bytes, want the first 1000 at most", len(got))
	}
	r.check(incompleteStdin("read stdin: unexpected EOF"))
}

func incompleteStdin(message string) task.Outcome {
	return task.Outcome{Exit: 125, Error: task.ErrorStart, Message: message}
}

// completeCalls counts the calls of complete.
type completeCalls struct{ calls atomic.Int32 }

func (c *completeCalls) call() error {
	c.calls.Add(1)
	return nil
}

func (c *completeCalls) check(t *testing.T, stdin *stdio.ReplayedStdin, want int32) {
	t.Helper()
	stdin.Wait()
	if got := c.calls.Load(); got != want {
		t.Errorf("calls of complete: got %d, want %d", got, want)
	}
}

func TestReplayCompletesOnce(t *testing.T) {
	read, write := pipe(t)
	var done completeCalls
	stdin := stdio.Replay(stdio.NewReader(read), inMemory(t), done.call)
	writeText(t, write, "one\n")
	checkAttempt(t, stdin, copyOneLine, "one\n")
	done.check(t, stdin, 0)
	r := script(t, copyLines).withStdin(stdin).start()
	r.expect("one")
	testkit.Must(t, write.Close())
	r.rest()
	done.check(t, stdin, 1)
	for range 3 {
		checkAttempt(t, stdin, "cat", "one\n")
	}
	done.check(t, stdin, 1)
}

const notKept = "its stdin could not be kept for another attempt: "

func noFile() (*os.File, error) {
	return nil, &os.PathError{Op: "open", Path: "spool", Err: syscall.ENOSPC}
}

// The attempt that runs when the disk becomes full does not notice. The next one cannot have its stdin.
func TestReplayWithoutRoom(t *testing.T) {
	for _, limit := range []int{0, 1, 100, 200 << 10} {
		checkWithoutRoom(t, spool.New(limit, noFile), notKept+"open spool: no space left on device")
	}
}

// Room that becomes free later does not help: the bytes between are lost.
func TestReplayWithRoomAgain(t *testing.T) {
	tries := 0
	checkWithoutRoom(t, spool.New(100, func() (*os.File, error) {
		if tries++; tries == 1 {
			return noFile()
		}
		return spool.Temporary(t.TempDir())
	}), notKept+"open spool: no space left on device")
}

func checkWithoutRoom(t *testing.T, kept *spool.Spool, message string) {
	t.Helper()
	var done completeCalls
	stdin := stdio.Replay(stdio.NewReader(pipeWith(t, bigText)), kept, done.call)
	checkAttempt(t, stdin, "cat", bigText)
	done.check(t, stdin, 0)
	for range 2 {
		r := script(t, "echo started").withStdin(stdin)
		if text := r.start().rest(); text != "" {
			t.Errorf("the next attempt: got output %q, want no start", text)
		}
		r.check(incompleteStdin(message))
		if code := r.outcome.ExitCode(); code != task.ExitInternal {
			t.Errorf("exit code: got %d, want %d", code, task.ExitInternal)
		}
	}
}

// Keeping fails while the second attempt reads: it gets everything, the third attempt does not.
func TestReplayWithoutRoomForTheThird(t *testing.T) {
	read, write := pipe(t)
	kept := spool.New(pipeCapacity+2000, noFile) // more than the feed of the first attempt can read
	stdin := stdio.Replay(stdio.NewReader(read), kept, nil)
	writeText(t, write, bigText[:1000])
	checkAttempt(t, stdin, "head -c 1000", bigText[:1000])
	r := script(t, "cat").withStdin(stdin).start()
	go func() {
		_, _ = io.WriteString(write, bigText[1000:])
		_ = write.Close()
	}()
	if got := r.rest(); got != bigText {
		t.Errorf("the second attempt: got %d bytes, want %d", len(got), len(bigText))
	}
	r.check(task.Outcome{})
	r = script(t, "echo started").withStdin(stdin)
	r.start().end()
	if r.outcome.Error != task.ErrorStart || !strings.HasPrefix(r.outcome.Message, notKept) {
		t.Errorf("the third attempt: got %+v, want %q", r.outcome, notKept)
	}
}

// A run must not grow with its attempts while nothing comes on stdin for days.
func TestReplayOfASilentSourceLeavesNothingBehind(t *testing.T) {
	read, write := pipe(t)
	stdin := stdio.Replay(stdio.NewReader(read), inMemory(t), nil)
	writeText(t, write, "one\n")
	checkAttempt(t, stdin, copyOneLine, "one\n")
	goroutines := runtime.NumGoroutine()
	for range 50 {
		checkAttempt(t, stdin, copyOneLine, "one\n")
	}
	testkit.Eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
	testkit.Must(t, write.Close())
}

func TestReplayOfMuchTakesLittleMemory(t *testing.T) {
	const size, most = 100 << 20, 8 << 20
	stdin := stdio.Replay(stdio.NewReader(pipeOfSize(t, size)), onDisk(t), nil)
	want := crc32.NewIEEE()
	_, err := io.CopyN(want, endlessBytes(), size)
	testkit.Must(t, err)
	for attempt := range 2 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := script(t, "cat").withStdin(stdin).start()
		got := crc32.NewIEEE()
		n, err := io.CopyBuffer(got, struct{ io.Reader }{r.stdout}, make([]byte, 64<<10))
		testkit.Must(t, err)
		r.check(task.Outcome{})
		runtime.ReadMemStats(&after)
		if n != size || got.Sum32() != want.Sum32() {
			t.Errorf("attempt %d: got %d bytes, want the %d that were written", attempt+1, n, size)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("attempt %d: got %d allocated bytes, want at most %d", attempt+1, took, most)
		}
	}
}

// endlessBytes returns an endless stream that is always the same.
func endlessBytes() io.Reader {
	return bufio.NewReaderSize(rand.NewChaCha8([32]byte{1}), 64<<10)
}

// pipeOfSize returns a pipe with size bytes of endlessBytes.
func pipeOfSize(t *testing.T, size int64) *os.File {
	read, write := pipe(t)
	go func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{write}, io.LimitReader(endlessBytes(), size), make([]byte, 64<<10))
		_ = write.Close()
	}()
	return read
}
