//go:build unix

package stdio

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// attempt plays a process that reads its stdin.
type attempt struct {
	t     testing.TB
	input *Input
	stdin *os.File // the descriptor of the process
}

func open(t testing.TB, stdin Stdin) *attempt {
	t.Helper()
	in, err := stdin.Open()
	testkit.Must(t, err)
	return start(t, in)
}

func start(t testing.TB, in *Input) *attempt {
	t.Helper()
	fd, err := syscall.Dup(int(in.File.Fd()))
	testkit.Must(t, err)
	in.Started()
	return &attempt{t: t, input: in, stdin: os.NewFile(uintptr(fd), "stdin")}
}

// read reads at most n bytes, and less at the end of stdin.
func (a *attempt) read(n int) []byte {
	a.t.Helper()
	got, err := io.ReadAll(io.LimitReader(a.stdin, int64(n)))
	testkit.Must(a.t, err)
	return got
}

// end ends the process and returns the error of its stdin.
func (a *attempt) end() error {
	_ = a.stdin.Close()
	return a.input.Close()
}

// inMemory is a spool that needs no file.
func inMemory() *spool.Spool { return spool.New(spool.MemoryLimit, nil) }

func noFile() (*os.File, error) {
	return nil, &os.PathError{Op: "open", Path: "spool", Err: syscall.ENOSPC}
}

func TestWaitWaitsForComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin := Replay(NewReader(nil), nil, func() error { time.Sleep(time.Hour); return nil })
		start := time.Now()
		stdin.Wait()
		if got := time.Since(start); got != 0 {
			t.Errorf("before the end: waited %v, want 0", got)
		}
		stdin.finish(io.EOF)
		stdin.Wait()
		if got := time.Since(start); got != time.Hour {
			t.Errorf("after the end: waited %v, want 1h", got)
		}
	})
}

// endWhileFeedWaits runs an attempt that reads text and ends while its feed waits for more.
func endWhileFeedWaits(t *testing.T, stdin *ReplayedStdin, text string) {
	t.Helper()
	a := open(t, stdin)
	if got := a.read(len(text)); string(got) != text {
		t.Fatalf("the attempt read %q, want %q", got, text)
	}
	testkit.Eventually(t, "the feed waits for the source", func() bool { return len(stdin.reading) == 1 })
	testkit.Must(t, a.end())
}

// The source may end during Wait, when no attempt runs any more.
func TestReplayEndsDuringWait(t *testing.T) {
	for range 10 {
		read, write := pipe(t)
		var completed atomic.Int32
		stdin := Replay(NewReader(read), inMemory(), func() error { completed.Add(1); return nil })
		send(t, write, "one\n")
		endWhileFeedWaits(t, stdin, "one\n")
		go func() { _ = write.Close() }()
		testkit.Eventually(t, "the end is noticed", func() bool { stdin.Wait(); return completed.Load() == 1 })
	}
}

// The feed of an attempt that has ended reads on, and its bytes cannot be kept. The attempt that waits for them must
// not get the bytes after them.
func TestReplayLeavesNoGap(t *testing.T) {
	const text = "0123456789"
	read, write := pipe(t)
	stdin := Replay(NewReader(read), spool.New(len(text), noFile), nil)
	send(t, write, text)
	endWhileFeedWaits(t, stdin, text)
	second := open(t, stdin)
	if got := second.read(len(text)); string(got) != text {
		t.Fatalf("the second attempt read %q, want %q", got, text)
	}
	send(t, write, "lost")
	testkit.Eventually(t, "it cannot be kept", func() bool { return stdin.lost() != nil })
	send(t, write, "rest")
	testkit.Must(t, write.Close())
	if got := second.read(100); len(got) > 0 {
		t.Errorf("the second attempt read %q after the gap, want nothing", got)
	}
	const want = "read stdin: open spool: no space left on device"
	if err := second.end(); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// If retry could read the pipe itself, it would not notice that the process does not.
func TestReplayClosesItsReader(t *testing.T) {
	read, write := pipe(t)
	testkit.Must(t, write.Close())
	in, err := Replay(NewReader(read), inMemory(), nil).Open()
	testkit.Must(t, err)
	in.Started()
	if err := in.File.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("close the reader again: got %v, want %v", err, os.ErrClosed)
	}
	testkit.Must(t, in.Close())
}

// TestReplayProperty has attempts that stop reading anywhere. Each gets a prefix of the same bytes, whatever the chunks
// in which they come. An attempt that gets less than it reads gets an error.
func TestReplayProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		chunks := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 5000), 0, 20).Draw(rt, "chunks")
		data := bytes.Join(chunks, nil)
		hasRoom := rapid.Bool().Draw(rt, "has room")
		kept := spool.New(rapid.IntRange(0, 20_000).Draw(rt, "memory"), func() (*os.File, error) {
			if !hasRoom {
				return nil, syscall.ENOSPC
			}
			return spool.Temporary(dir)
		})
		defer func() { _ = kept.Close() }()
		read, write, err := os.Pipe()
		testkit.Must(t, err)
		defer func() { _ = read.Close() }()
		go func() {
			for _, c := range chunks {
				_, _ = write.Write(c)
			}
			_ = write.Close()
		}()
		var completed atomic.Int32
		stdin := Replay(NewReader(read), kept, func() error { completed.Add(1); return nil })
		stops := rapid.SliceOfN(rapid.IntRange(0, len(data)), 0, 6).Draw(rt, "stops")
		for _, n := range append(stops, len(data)+1) {
			in, err := stdin.Open()
			if err != nil && !hasRoom {
				continue
			}
			testkit.Must(t, err)
			a := start(t, in)
			got := a.read(n)
			err = a.end()
			if !bytes.HasPrefix(data, got) {
				rt.Fatalf("got %d bytes that are no prefix of the %d that were written", len(got), len(data))
			}
			if want := min(n, len(data)); len(got) < want && err == nil {
				rt.Fatalf("got %d bytes and no error, want %d", len(got), want)
			}
			if hasRoom && err != nil {
				rt.Fatal(err)
			}
		}
		stdin.Wait()
		if got := completed.Load(); hasRoom && got != 1 || got > 1 {
			rt.Fatalf("completed %d times, want once if there is room", got)
		}
	})
}

func TestBlockDeviceIsAFile(t *testing.T) {
	devices, err := filepath.Glob("/dev/loop[0-9]*")
	testkit.Must(t, err)
	for _, name := range devices {
		if device, err := os.Open(name); err == nil {
			defer device.Close()
			if got := kindOf(device); got != kindFile {
				t.Errorf("%s: got kind %v, want %v", name, got, kindFile)
			}
			return
		}
	}
	t.Skip("there is no block device that may be opened")
}

// What a resume opens is the same file, at the same place, or nothing.
func TestReopen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say where the file is")
	}
	path := filepath.Join(t.TempDir(), "in \"put\"")
	write := func(text string) { testkit.Must(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("one\ntwo\n")
	file, err := os.Open(path)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(4, io.SeekStart)
	testkit.Must(t, err)
	stat, err := file.Stat()
	testkit.Must(t, err)
	source := (&InheritedStdin{File: file}).Source()

	replace := func() {
		testkit.Must(t, os.Remove(path))
		write("one\nTWO\n")
		testkit.Must(t, os.Chtimes(path, time.Time{}, stat.ModTime()))
	}
	tests := []struct {
		name   string
		change func()
		want   string // the error; empty for none
	}{
		{name: "the same", change: func() {}},
		{name: "written in place", change: func() { write("one\nTWO\n") }, want: "changed"},
		{name: "replaced", change: replace, want: "changed"},
		{name: "longer", change: func() { write("one\ntwo\nthree\n") }, want: "changed"},
		{name: "gone", change: func() { testkit.Must(t, os.Remove(path)) }, want: "gone"},
		{name: "a pipe", change: func() { testkit.Must(t, syscall.Mkfifo(path, 0o600)) }, want: "changed"},
	}
	for _, tt := range tests {
		tt.change()
		again, err := Reopen(source)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got error %v, want one with %q", tt.name, err, tt.want)
			}
			continue
		}
		testkit.Must(t, err)
		if got, err := io.ReadAll(again); err != nil || string(got) != "two\n" {
			t.Errorf("%s: got %q, %v, want the rest", tt.name, got, err)
		}
		_ = again.Close()
	}
}

// terminal opens a terminal; where none can be had, the test is skipped.
func terminal(t *testing.T) *os.File {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	return terminal
}

// A device other than a terminal is opened again by its name.
func TestReopenDevice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say where the device is")
	}
	zero, err := os.Open("/dev/zero")
	testkit.Must(t, err)
	defer func() { _ = zero.Close() }()
	again, err := Reopen((&InheritedStdin{File: zero}).Source())
	testkit.Must(t, err)
	defer func() { _ = again.Close() }()
	got := []byte("text")
	if _, err := io.ReadFull(again, got); err != nil || !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("got %q, %v, want zeros", got, err)
	}
}

func TestSourceOfWhatIsNoFile(t *testing.T) {
	full, write := pipe(t)
	send(t, write, "x")
	open, _ := pipe(t)
	ended, write := pipe(t)
	testkit.Must(t, write.Close())
	null, err := os.Open(os.DevNull)
	testkit.Must(t, err)
	tests := []struct {
		name string
		file *os.File
		want task.Source
	}{
		{name: "a pipe with something in it", file: full, want: task.Source{Pipe: true}},
		{name: "a pipe that may get something", file: open, want: task.Source{Pipe: true}},
		{name: "a pipe that has ended", file: ended},
		{name: "nothing", file: null},
		{name: "a terminal", file: terminal(t), want: task.Source{Terminal: true}},
	}
	for _, tt := range tests {
		got := (&InheritedStdin{File: tt.file}).Source()
		if got.Pipe == (got.Inode == 0) && tt.want.Pipe {
			t.Errorf("%s: got %+v, want the inode of the pipe", tt.name, got)
		}
		if got.Inode = 0; got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
		_ = tt.file.Close()
	}
}

// A resume looks at the file, and may wait long before the attempt begins: the file is looked at again then.
func TestFileThatChangesWhileAResumeWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(path string)
		want   error
	}{
		"nothing":   {change: func(string) {}},
		"it grows":  {change: func(path string) { appendTo(t, path, "three\n") }, want: ErrRead},
		"it is cut": {change: func(path string) { testkit.Must(t, os.Truncate(path, 4)) }, want: ErrRead},
		"rewritten": {change: func(path string) {
			testkit.Must(t, os.WriteFile(path, []byte("ONE\nTWO\n"), 0o600), os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
		}, want: ErrRead},
	} {
		path := filepath.Join(t.TempDir(), "lines")
		testkit.Must(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
		file, err := os.Open(path)
		testkit.Must(t, err)
		stdin := &InheritedStdin{File: file, Known: (&InheritedStdin{File: file}).Source()}
		tt.change(path)
		in, err := stdin.Open()
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
		if err == nil {
			testkit.Must(t, in.Close())
		}
		_ = file.Close()
	}
}

// A signal that may end the writer leaves in doubt what the next attempt would read. Where the writer lives on, that
// begins; where it has ended, none does.
func TestNoAttemptAfterASignalToTheWriter(t *testing.T) {
	read, write := pipe(t)
	defer func() { _ = write.Close() }()
	signalled := false
	stdin := &InheritedStdin{File: read, Signalled: func(time.Time) bool { return signalled }}
	testkit.Must(t, open(t, stdin).end())
	signalled = true
	if !stdin.Unsettled() {
		t.Error("the writer lives, and it is known what it will have written")
	}
	testkit.Must(t, open(t, stdin).end())
	testkit.Must(t, write.Close())
	if stdin.Unsettled() {
		t.Error("the writer has ended, and it is not known what it has written")
	}
	var lost *StdinError
	if in, err := stdin.Open(); !errors.As(err, &lost) {
		t.Errorf("got %v, %v, want an error of stdin", in, err)
	}
}

// A connection is shut as soon as its peer has closed it, though bytes are left in it.
func TestShutConnections(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")}[network]
			listener, err := net.Listen(network, address)
			testkit.Must(t, err)
			defer func() { _ = listener.Close() }()
			peer, err := net.Dial(network, listener.Addr().String())
			testkit.Must(t, err)
			c, err := listener.Accept()
			testkit.Must(t, err)
			defer func() { _ = c.Close() }()
			file, err := c.(interface{ File() (*os.File, error) }).File()
			testkit.Must(t, err)
			defer func() { _ = file.Close() }()
			send(t, peer, "half")
			stdin := &InheritedStdin{File: file, Signalled: func(time.Time) bool { return true }}
			if !stdin.Unsettled() {
				t.Error("shut while its peer lives")
			}
			testkit.Must(t, peer.Close())
			for start := time.Now(); stdin.Unsettled() && time.Since(start) < 10*time.Second; {
				time.Sleep(time.Millisecond)
			}
			if stdin.Unsettled() {
				t.Error("not shut though its peer has closed it")
			}
		})
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	testkit.Must(t, err)
	_, err = file.WriteString(text)
	testkit.Must(t, err, file.Close())
}

// What a killed run has left may read a shared file until the next run begins, which begins where that one did.
func TestContinueWhereNothingWasReadYet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	testkit.Must(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
	file, err := os.Open(path)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	stdin := &InheritedStdin{File: file}
	testkit.Must(t, stdin.Continue((&InheritedStdin{File: file}).Source()))
	_, err = file.Read(make([]byte, 4))
	testkit.Must(t, err)
	a := open(t, stdin)
	if got := a.read(100); string(got) != "one\ntwo\n" {
		t.Errorf("got %q, want both lines", got)
	}
	testkit.Must(t, a.end())
}
