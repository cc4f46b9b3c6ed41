package stdio

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
)

// What an attempt has read from a pipe may come again, and look as if it had stayed there.
func TestReadBeforeAnEqualWrite(t *testing.T) {
	read, write := pipe(t)
	send(t, write, "x\n")
	stdin := &InheritedStdin{File: read}
	defer stdin.Release()
	a := open(t, stdin)
	if got := a.read(2); string(got) != "x\n" {
		t.Fatalf("got %q, want what was there", got)
	}
	testkit.Eventually(t, "the read is seen", func() bool { return stdin.reads.events.read.Load() })
	send(t, write, "x\nyyy\n")
	if err := a.end(); !errors.Is(err, ErrRead) {
		t.Errorf("got %v, want ErrRead", err)
	}
}

// A command that ignores a pipe which still fills is tried again, however much comes.
func TestWritesAreNoReads(t *testing.T) {
	for _, writes := range []int{1, 2, manyEvents - 1, manyEvents, 2 * manyEvents} {
		read, write := pipe(t)
		send(t, write, "first\n")
		stdin := &InheritedStdin{File: read}
		for range 2 {
			a := open(t, stdin)
			for range writes {
				send(t, write, "more\n")
			}
			if err := a.end(); err != nil {
				t.Errorf("%d writes: got %v, want no error", writes, err)
			}
		}
		stdin.Release()
	}
}

// A FIFO that has no writer any more, or none yet, may get another one.
func TestNamedPipeWithoutAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	testkit.Must(t, syscall.Mkfifo(path, 0o600))
	read, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	testkit.Must(t, err)
	defer func() { _ = read.Close() }()
	stdin := &InheritedStdin{File: read}
	defer stdin.Release()
	openWriter := func() *os.File {
		write, err := os.OpenFile(path, os.O_WRONLY, 0)
		testkit.Must(t, err)
		return write
	}
	testkit.Must(t, open(t, stdin).end())
	testkit.Must(t, openWriter().Close())
	testkit.Eventually(t, "the end is seen", func() bool { return stateOf(read).ended })
	if got := stdin.Source(); !got.Pipe {
		t.Errorf("got %+v, want a pipe", got)
	}
	in, err := stdin.Open()
	testkit.Must(t, err)
	write := openWriter()
	send(t, write, "line\n")
	_, err = io.ReadFull(read, make([]byte, 5))
	testkit.Must(t, err)
	testkit.Must(t, write.Close())
	if err := in.Close(); !errors.Is(err, ErrRead) {
		t.Errorf("got %v, want ErrRead", err)
	}
}

// What an attempt has left running may read from a file whenever it likes. So the next attempt has its own offset,
// unless a lock was taken through the file, and nothing has it open.
func TestFileIsOpenedAgain(t *testing.T) {
	tests := []struct {
		name         string
		locked, held bool
		want         bool
	}{
		{name: "not locked", want: true},
		{name: "locked", locked: true},
		{name: "locked and held", locked: true, held: true, want: true},
	}
	for _, tt := range tests {
		file := newFile(t, t.TempDir(), "in")
		send(t, file, "one\ntwo\n")
		_, err := file.Seek(4, io.SeekStart)
		testkit.Must(t, err)
		stdin := &InheritedStdin{File: file}
		for i := range 3 {
			in, err := stdin.Open()
			testkit.Must(t, err)
			if got, want := in.File != file, tt.want && i > 0; got != want {
				t.Errorf("%s, attempt %d: got that it was opened again: %v, want %v", tt.name, i+1, got, want)
			}
			if at, err := in.File.Seek(0, io.SeekCurrent); err != nil || at != 4 {
				t.Errorf("%s, attempt %d: got offset %d, %v, want 4", tt.name, i+1, at, err)
			}
			if tt.locked && i == 0 {
				testkit.Must(t, unix.Flock(int(in.File.Fd()), unix.LOCK_EX))
			}
			in.Started()
			in.Wait(func(os.FileInfo) bool { return tt.held })
			testkit.Must(t, in.Close())
		}
	}
}

// A pipe of another user cannot be opened again, and its signals go to one process only. The inner one of nested retry
// leaves them to the outer one.
func TestSharedPipeIsWatchedByOne(t *testing.T) {
	read, write := pipe(t)
	watched := func() *InheritedStdin {
		return &InheritedStdin{File: read, reads: &readWatch{stream: read, pipe: read}}
	}
	outer, inner := watched(), watched()
	warned := false
	inner.Lost = func(error) { warned = true }
	outside := open(t, outer)
	inside := open(t, inner)
	send(t, write, "line\n")
	if got := inside.read(5); string(got) != "line\n" {
		t.Fatalf("got %q, want the line", got)
	}
	if err := inside.end(); err != nil {
		t.Errorf("the inner one: got %v, want no error", err)
	}
	if open(t, inner); !warned {
		t.Error("the inner one began again without a warning")
	}
	inner.Release()
	if err := outside.end(); !errors.Is(err, ErrRead) {
		t.Errorf("the outer one: got %v, want ErrRead", err)
	}
	outer.Release()
}

// Two retry may have the same socket. Where one ends while the other runs an attempt, nobody knows what that has read.
func TestSharedSocketIsNoLongerCounted(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	read, write := os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
	defer func() { _, _ = read.Close(), write.Close() }()
	send(t, write, "one\n")
	first, second := &InheritedStdin{File: read}, &InheritedStdin{File: read}
	defer second.Release()
	warned := false
	second.Lost = func(error) { warned = true }
	testkit.Must(t, open(t, first).end())
	a := open(t, second)
	first.Release()
	if got := a.read(4); string(got) != "one\n" {
		t.Fatalf("got %q, want the line", got)
	}
	send(t, write, "two\n")
	testkit.Must(t, a.end())
	if testkit.Must(t, open(t, second).end()); !warned {
		t.Error("the second attempt began without a warning")
	}
}

// Where no more signals can be queued, the watch ends all the same, and what it has missed is no sign that nobody read.
func TestSignalsThatCannotBeQueued(t *testing.T) {
	var before unix.Rlimit
	testkit.Must(t, unix.Prlimit(0, unix.RLIMIT_SIGPENDING, nil, &before))
	testkit.Must(t, unix.Prlimit(0, unix.RLIMIT_SIGPENDING, &unix.Rlimit{Max: before.Max}, nil))
	defer func() { testkit.Must(t, unix.Prlimit(0, unix.RLIMIT_SIGPENDING, &before, nil)) }()
	read, write := pipe(t)
	stdin := &InheritedStdin{File: read}
	defer stdin.Release()
	warned := false
	stdin.Lost = func(error) { warned = true }
	testkit.Must(t, open(t, stdin).end())
	a := open(t, stdin)
	send(t, write, "line\n")
	if got := a.read(5); string(got) != "line\n" {
		t.Fatalf("got %q, want the line", got)
	}
	if err := a.end(); err != nil && !errors.Is(err, ErrRead) {
		t.Errorf("got %v, want nothing or ErrRead", err)
	} else if _, again := stdin.Open(); err == nil && again == nil && !warned {
		t.Error("an attempt that follows one that has read began without a warning")
	}
}

// What an attempt has left running may read, and end, at any time until the next attempt has begun.
func TestReadByWhatAnAttemptHasLeft(t *testing.T) {
	tests := []struct {
		name string
		look int // the read comes while something that has the pipe open is looked for; 0: between the looks
		end  error
		next error
	}{
		{"before the end", 1, ErrRead, nil},
		{"between the attempts", 0, nil, ErrRead},
		{"before the next attempt", 2, nil, ErrRead},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			read, write := pipe(t)
			stdin := &InheritedStdin{File: read}
			defer stdin.Release()
			looks := 0
			readOne := func() {
				send(t, write, "x")
				_, err := io.ReadFull(read, make([]byte, 1))
				testkit.Must(t, err)
			}
			in, err := stdin.Open()
			testkit.Must(t, err)
			in.Started()
			in.Wait(func(os.FileInfo) bool {
				if looks++; looks == tt.look {
					readOne()
				}
				return looks != tt.look
			})
			if err := in.Close(); !errors.Is(err, tt.end) {
				t.Errorf("at the end: got %v, want %v", err, tt.end)
			}
			if tt.end != nil { // the last attempt
				return
			}
			if tt.look == 0 {
				readOne()
			}
			if _, err := stdin.Open(); !errors.Is(err, tt.next) {
				t.Errorf("at the next attempt: got %v, want %v", err, tt.next)
			}
		})
	}
}

// A signal that comes during a look changes nothing of what is seen.
func TestPollBesideSignals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGWINCH) // Go ignores it
			}
		}
	}()
	read, write := pipe(t)
	defer func() { _, _ = read.Close(), write.Close() }()
	send(t, write, "some")
	for i := range 50_000 {
		if s := stateOf(read); s.available != 4 || s.ended || ReaderGone(write) {
			t.Fatalf("look %d: got %+v, want 4 bytes and a reader", i, s)
		}
		if happened, err := poll(write, 0, 0); happened != 0 || err != nil {
			t.Fatalf("look %d: got %d, %v, want nothing", i, happened, err)
		}
	}
}

// Whoever asks for the signals of a stream that retry has read from gets the usual one.
func TestTakenStreamSendsTheUsualSignal(t *testing.T) {
	events := make(chan os.Signal, 1)
	signal.Notify(events, unix.SIGIO)
	defer signal.Stop(events)
	read, write := pipe(t)
	setTaken(read, true)
	if !isTaken(read) {
		t.Fatal("the stream is not taken")
	}
	for _, set := range [][2]int{{unix.F_SETOWN, os.Getpid()}, {unix.F_SETFL, unix.O_ASYNC}} {
		_, err := unix.FcntlInt(read.Fd(), set[0], set[1])
		testkit.Must(t, err)
	}
	send(t, write, "x")
	testkit.Eventually(t, "the signal comes", func() bool { return len(events) > 0 })
}
