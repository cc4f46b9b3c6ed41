//go:build unix

package cmdexec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// tapTo is a tap that nothing is piped into. It holds 100 bytes in memory.
func tapTo(to *os.File, p *passing, create func() (*os.File, error)) *tap {
	return &tap{to: to, passing: p, held: spool.New(100, create), tail: spool.NewTail(task.Kept), done: make(chan struct{})}
}

// fixture is two taps of one attempt, and what they are to come to.
type fixture struct {
	taps   [2]*tap
	want   [2][]byte
	total  int64
	limit  int64
	called int
}

func newFixture(t *rapid.T, dir string, limit int64) *fixture {
	f := &fixture{limit: limit}
	p := &passing{limit: limit, outgrown: func(int64) { f.called++ }}
	for i := range f.taps {
		to, err := spool.Temporary(dir)
		if err != nil {
			t.Fatal(err)
		}
		f.taps[i] = tapTo(to, p, func() (*os.File, error) { return spool.Temporary(dir) })
	}
	return f
}

func (f *fixture) close() {
	for _, tap := range f.taps {
		_, _ = tap.to.Close(), tap.held.Close()
	}
}

func (f *fixture) take(t *rapid.T, stream int, chunk []byte) {
	if !f.taps[stream].take(chunk) {
		t.Fatal(f.taps[stream].failure())
	}
	f.want[stream] = append(f.want[stream], chunk...)
	f.total += int64(len(chunk))
}

// passed returns what has come to a stream.
func (f *fixture) passed(t *rapid.T, stream int) []byte {
	got, err := io.ReadAll(io.NewSectionReader(f.taps[stream].to, 0, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestTapProperty: what two streams carry is held, until it is together more than the limit; from then on everything has been
// passed on, in order, whenever the stream has carried something. In the end a release passes on the rest.
func TestTapProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t, dir, rapid.Int64Range(0, 400).Draw(t, "limit"))
		defer f.close()
		for range rapid.IntRange(0, 20).Draw(t, "chunks") {
			stream, chunk := rapid.IntRange(0, 1).Draw(t, "stream"), rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "chunk")
			f.take(t, stream, chunk)
			outgrown := f.limit > 0 && f.total > f.limit
			if f.called > 1 || (f.called == 1) != outgrown {
				t.Fatalf("with %d bytes of at most %d outgrown %d times", f.total, f.limit, f.called)
			}
			var want []byte
			if outgrown && len(chunk) > 0 {
				want = f.want[stream]
			}
			if got := f.passed(t, stream); len(chunk) > 0 && !bytes.Equal(got, want) {
				t.Fatalf("stream %d got %q, want %q", stream, got, want)
			}
		}
		for i, tap := range f.taps {
			for range 2 {
				tap.release()
			}
			if got := f.passed(t, i); !bytes.Equal(got, f.want[i]) {
				t.Fatalf("stream %d has %q in the end, want %q", i, got, f.want[i])
			}
			if text := tap.tail.String(); text != string(f.want[i]) {
				t.Fatalf("stream %d: the tail is %q", i, text)
			}
		}
	})
}

// Two streams outgrow the limit at the same time.
func TestTapsTogether(t *testing.T) {
	for range 20 {
		called := 0
		p := &passing{limit: 3000, outgrown: func(int64) { called++ }}
		dir := t.TempDir()
		taps := []*tap{}
		for _, name := range []string{"stdout", "stderr"} {
			taps = append(taps, tapTo(sink(t, dir, name), p, func() (*os.File, error) { return spool.Temporary(dir) }))
		}
		var both sync.WaitGroup
		for _, tap := range taps {
			both.Go(func() {
				for i := range 100 {
					tap.take([]byte(big[100*i:][:100]))
				}
			})
		}
		both.Wait()
		for _, tap := range taps {
			tap.release()
			checkText(t, "passed on", contents(t, tap.to), big[:10_000])
		}
		if called != 1 {
			t.Errorf("outgrown %d times", called)
		}
	}
}

// A stream that takes nothing ends the tap. What it held is not tried again and again.
func TestTapOfAStreamThatFails(t *testing.T) {
	for _, on := range []bool{false, true} {
		to := sink(t, t.TempDir(), "stdout")
		tap := tapTo(to, &passing{on: false}, nil)
		tap.take([]byte("held"))
		tap.passing.on = on
		ok(t, to.Close())
		if on && tap.take([]byte("more")) {
			t.Error("it goes on")
		}
		tap.release()
		if err := tap.failure(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("failed with %v", err)
		}
	}
}

// The first failure is the one that matters.
func TestTapRemembersTheFirstFailure(t *testing.T) {
	tap := tapTo(nil, &passing{}, nil)
	for _, err := range []error{nil, syscall.EPIPE, nil, task.ErrStopped} {
		tap.fail(err)
	}
	if err := tap.failure(); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("failed with %v", err)
	}
}

// Where the taps are stopped, they take what is there.
func TestTapStops(t *testing.T) {
	for _, there := range []int{0, 1, tapSize, pipeCapacity} {
		tap := tapTo(sink(t, t.TempDir(), "stdout"), &passing{on: true}, nil)
		tap.read, tap.write = source(t)
		say(t, tap.write, big[:there])
		tap.stop()
		tap.run()
		checkText(t, "taken", contents(t, tap.to), big[:there])
		if _, err := tap.write.WriteString("more"); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("afterwards a write ends with %v", err)
		}
	}
}

// A pipe may be filled again as fast as it is read, for ever.
func TestTapStopsAFlood(t *testing.T) {
	tap := tapTo(nil, &passing{on: true}, nil)
	tap.read, tap.write = source(t)
	flood := exec.Command("cat", "/dev/zero")
	flood.Stdout = tap.write
	ok(t, flood.Start())
	read, to := source(t)
	say(t, to, big[:pipeCapacity]) // so that what the tap passes on waits for us
	tap.to = to
	areFull := func() bool { return min(streamOf(tap.read).available, streamOf(read).available) >= pipeCapacity }
	eventually(t, "the pipes are full", areFull)
	tap.stop()
	go func() {
		tap.run()
		_ = to.Close()
	}()
	taken := -pipeCapacity
	for buffer := make([]byte, pipeCapacity); taken <= largestPipe; {
		eventually(t, "the pipes are full again", func() bool { return areFull() || isOver(tap.done) })
		n, err := read.Read(buffer)
		taken += n
		if err == io.EOF {
			break
		}
		ok(t, err)
	}
	if taken <= 0 || taken > largestPipe {
		t.Errorf("%d bytes were taken", taken)
	}
	_, _, _ = tap.read.Close(), tap.write.Close(), read.Close() // which ends both
	_ = flood.Wait()
	receive(t, tap.done)
}

func isOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
