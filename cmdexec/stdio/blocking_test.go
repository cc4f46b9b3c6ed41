//go:build unix

package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
)

// inheritedPipe returns a pipe as a process inherits it: it blocks, until somebody sets O_NONBLOCK.
func inheritedPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	var fds [2]int
	testkit.Must(t, syscall.Pipe(fds[:]))
	read, write = os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	for _, fd := range fds {
		testkit.Must(t, syscall.SetNonblock(fd, true))
	}
	return read, write
}

// The feed of an attempt may wait for its source for long after that has ended: where the source fails then, the number
// of the attempt's processes may be that of others.
func TestReplayKillsNobodyLater(t *testing.T) {
	stranger := exec.Command("sleep", "60")
	testkit.Must(t, stranger.Start())
	for range 20 {
		pipe, feed, err := newFeed()
		testkit.Must(t, err, pipe.Close())
		r := ReplayKept(spool.New(1, nil))
		r.broken = errors.New("reset")
		a := &feeding{target: stranger.Process.Pid, over: make(chan struct{}), done: true}
		close(a.over)
		r.feed(feed, a, nil)
	}
	testkit.Must(t, stranger.Process.Signal(syscall.SIGTERM))
	_ = stranger.Wait()
	if got := stranger.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGTERM {
		t.Errorf("got %v, want that this test has ended it", got)
	}
}

// Of a message that is longer than a read, the rest would be lost.
func TestReaderOfMessages(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Skipf("no sockets of packets: %v", err)
	}
	read, write := os.NewFile(uintptr(pair[0]), "read"), os.NewFile(uintptr(pair[1]), "write")
	defer func() { _ = read.Close() }()
	for _, message := range []string{"abcd", "abcde"} {
		_, err := write.WriteString(message)
		testkit.Must(t, err)
	}
	testkit.Must(t, write.Close())
	for _, want := range []error{nil, errTruncated, io.EOF} {
		if _, err := NewReader(read).Read(make([]byte, 4)); !errors.Is(err, want) {
			t.Errorf("got error %v, want %v", err, want)
		}
	}
}

// The writer waits for room, and the reader for the writer.
func TestBlockingWaitsWhereTheFileDoesNot(t *testing.T) {
	read, write := inheritedPipe(t)
	if _, err := read.Read(make([]byte, 1)); err == nil {
		t.Fatal("got no error of a plain file, want EAGAIN")
	}
	wrote := make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond) // the reader most likely waits by then
		_, err := Blocking{write}.Write(big)
		_ = write.Close()
		wrote <- err
	}()
	got, err := io.ReadAll(Blocking{read})
	if err != nil || !bytes.Equal(got, big) {
		t.Errorf("read: got %d bytes, error %v, want %d", len(got), err, len(big))
	}
	testkit.Must(t, <-wrote)
}

func TestBlockingEndsWithItsReader(t *testing.T) {
	read, write := inheritedPipe(t)
	wrote := make(chan error, 1)
	go func() {
		_, err := Blocking{write}.Write(big)
		wrote <- err
	}()
	_, err := io.ReadFull(Blocking{read}, make([]byte, 1))
	testkit.Must(t, err)
	testkit.Must(t, read.Close())
	if err := <-wrote; err == nil {
		t.Error("got no error, want EPIPE")
	}
}

// Held output is passed on whole, and a stdin is replayed whole.
func TestStreamsThatDoNotBlock(t *testing.T) {
	read, write := inheritedPipe(t)
	held := captureTo(write, &forwarding{}, func() (*os.File, error) { return spool.Temporary(t.TempDir()) })
	held.handle(big)
	go func() {
		time.Sleep(20 * time.Millisecond) // the reader most likely waits by then
		held.flush()
		_ = write.Close()
	}()
	stdin := Replay(NewReader(read), spool.New(len(big), nil), nil)
	got := make([]byte, 0, len(big))
	for buffer := make([]byte, 4096); ; {
		n, err := stdin.next(buffer, int64(len(got)), &feeding{})
		got = append(got, buffer[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		testkit.Must(t, err)
	}
	if err := held.failure(); err != nil || !bytes.Equal(got, big) {
		t.Errorf("got %d bytes, error %v, want %d", len(got), err, len(big))
	}
}
