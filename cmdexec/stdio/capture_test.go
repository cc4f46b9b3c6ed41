//go:build unix

package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

func newForwarding(enabled bool) *forwarding {
	f := &forwarding{}
	f.enabled.Store(enabled)
	return f
}

// captureTo is a capture without a pipe. It holds 100 bytes in memory.
func captureTo(destination *os.File, f *forwarding, create func() (*os.File, error)) *capture {
	return &capture{
		destination: destination, forwarding: f, done: make(chan struct{}),
		held: spool.New(100, create), tail: spool.NewTail(task.StoredTail),
	}
}

func contents(t *testing.T, file *os.File) []byte {
	t.Helper()
	data, err := os.ReadFile(file.Name())
	testkit.Must(t, err)
	return data
}

// model is two captures of one attempt, and what they must pass on.
type model struct {
	captures [2]*capture
	want     [2][]byte
	total    int64
	limit    int64
	exceeded int // calls
}

func newModel(t *rapid.T, dir string, limit int64) *model {
	m := &model{limit: limit}
	f := &forwarding{limit: limit, limitExceeded: func(int64) { m.exceeded++ }}
	for i := range m.captures {
		to, err := spool.Temporary(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.captures[i] = captureTo(to, f, func() (*os.File, error) { return spool.Temporary(dir) })
	}
	return m
}

func (m *model) close() {
	for _, c := range m.captures {
		_, _ = c.destination.Close(), c.held.Close()
	}
}

func (m *model) handle(t *rapid.T, stream int, chunk []byte) {
	if !m.captures[stream].handle(chunk) {
		t.Fatal(m.captures[stream].failure())
	}
	m.want[stream] = append(m.want[stream], chunk...)
	m.total += int64(len(chunk))
}

// forwarded returns what was passed on to a stream.
func (m *model) forwarded(t *rapid.T, stream int) []byte {
	got, err := io.ReadAll(io.NewSectionReader(m.captures[stream].destination, 0, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestCaptureProperty: the output of two streams is held until both together exceed the limit. From then on, a stream
// passes on everything, in order, whenever something is written to it. In the end, flush passes on the rest.
func TestCaptureProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, dir, rapid.Int64Range(0, 400).Draw(t, "limit"))
		defer m.close()
		for range rapid.IntRange(0, 20).Draw(t, "chunks") {
			stream, chunk := rapid.IntRange(0, 1).Draw(t, "stream"),
				rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "chunk")
			m.handle(t, stream, chunk)
			exceeded := m.limit > 0 && m.total > m.limit
			if m.exceeded > 1 || (m.exceeded == 1) != exceeded {
				t.Fatalf("%d bytes, limit %d: got %d calls, want one: %v", m.total, m.limit, m.exceeded, exceeded)
			}
			var want []byte
			if exceeded {
				want = m.want[stream]
			}
			if got := m.forwarded(t, stream); len(chunk) > 0 && !bytes.Equal(got, want) {
				t.Fatalf("stream %d: got %q, want %q", stream, got, want)
			}
		}
		for i, c := range m.captures {
			for range 2 {
				_ = c.flush()
			}
			if got := m.forwarded(t, i); !bytes.Equal(got, m.want[i]) {
				t.Fatalf("stream %d in the end: got %q, want %q", i, got, m.want[i])
			}
			if got := c.tail.String(); got != string(m.want[i]) {
				t.Fatalf("tail of stream %d: got %q, want %q", i, got, m.want[i])
			}
		}
	})
}

// Two streams exceed the limit at the same time.
func TestCapturesTogether(t *testing.T) {
	for range 20 {
		calls := 0
		f := &forwarding{limit: 3000, limitExceeded: func(int64) { calls++ }}
		dir := t.TempDir()
		captures := []*capture{}
		for _, name := range []string{"stdout", "stderr"} {
			create := func() (*os.File, error) { return spool.Temporary(dir) }
			captures = append(captures, captureTo(newFile(t, dir, name), f, create))
		}
		var both sync.WaitGroup
		for _, c := range captures {
			both.Go(func() {
				for i := range 100 {
					c.handle(big[100*i:][:100])
				}
			})
		}
		both.Wait()
		for _, c := range captures {
			_ = c.flush()
			if got := contents(t, c.destination); !bytes.Equal(got, big[:10_000]) {
				t.Errorf("got %d bytes, want the first 10000 of those written", len(got))
			}
		}
		if calls != 1 {
			t.Errorf("limit exceeded: got %d calls, want 1", calls)
		}
	}
}

// A failed write loses output, and the command goes on.
func TestCaptureToAStreamThatFails(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		to := newFile(t, t.TempDir(), "stdout")
		c := captureTo(to, &forwarding{}, nil)
		c.handle([]byte("held"))
		c.forwarding.enabled.Store(enabled)
		testkit.Must(t, to.Close())
		if enabled && !c.handle([]byte("more")) {
			t.Error("handle after a failed write: got false, want true")
		}
		_ = c.flush()
		if err := c.failure(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("got failure %v, want %v", err, os.ErrClosed)
		}
	}
}

func TestCaptureRemembersTheFirstFailure(t *testing.T) {
	c := captureTo(nil, &forwarding{}, nil)
	for _, err := range []error{nil, syscall.EPIPE, nil, task.ErrStopped} {
		c.fail(err)
	}
	if err := c.failure(); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got failure %v, want %v", err, syscall.EPIPE)
	}
}

// After stop, a capture reads what is in the pipe, then closes it.
func TestCaptureStops(t *testing.T) {
	for _, size := range []int{0, 1, pipeCapacity} {
		c := captureTo(newFile(t, t.TempDir(), "stdout"), newForwarding(true), nil)
		c.read, c.write = pipe(t)
		send(t, c.write, string(big[:size]))
		_ = c.read.SetReadDeadline(time.Unix(1, 0))
		c.run()
		if got := contents(t, c.destination); !bytes.Equal(got, big[:size]) {
			t.Errorf("got %d bytes, want the %d in the pipe", len(got), size)
		}
		if _, err := c.write.WriteString("more"); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write afterwards: got error %v, want %v", err, syscall.EPIPE)
		}
	}
}

// mostAfterEnd is what a capture reads of a flood: a read that was under way, and what was in the pipe at its end.
const mostAfterEnd = 2 * pipeCapacity

// A reader of the output that stops for a while does not make a capture miss the end of its pipe.
func TestCaptureOfALateReader(t *testing.T) {
	c := captureTo(nil, newForwarding(true), nil)
	c.read, c.write = pipe(t)
	read, to := pipe(t)
	send(t, to, string(big[:pipeCapacity]))
	c.destination = to
	send(t, c.write, string(big[:pipeCapacity]))
	testkit.Must(t, c.write.Close())
	_ = c.read.SetReadDeadline(time.Unix(1, 0))
	go func() {
		c.run()
		_ = to.Close()
	}()
	got, err := io.ReadAll(read)
	if err != nil || len(got) != 2*pipeCapacity || c.cut {
		t.Errorf("got %d bytes, error %v, cut %v, want %d, not cut", len(got), err, c.cut, 2*pipeCapacity)
	}
}

// A process left behind may fill the pipe as fast as it is read, for ever.
func TestCaptureStopsAFlood(t *testing.T) {
	c := captureTo(nil, newForwarding(true), nil)
	c.read, c.write = pipe(t)
	flood := exec.Command("cat", "/dev/zero")
	flood.Stdout = c.write
	testkit.Must(t, flood.Start())
	read, to := pipe(t)
	send(t, to, string(big[:pipeCapacity])) // so that the capture waits for this test to read
	c.destination = to
	areFull := func() bool { return min(stateOf(c.read).available, stateOf(read).available) >= pipeCapacity }
	testkit.Eventually(t, "the pipes are full", areFull)
	_ = c.read.SetReadDeadline(time.Unix(1, 0))
	go func() {
		c.run()
		_ = to.Close()
	}()
	total := -pipeCapacity
	for buffer := make([]byte, pipeCapacity); total <= mostAfterEnd; {
		testkit.Eventually(t, "the pipes are full again", func() bool { return areFull() || isClosed(c.done) })
		n, err := read.Read(buffer)
		total += n
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
	}
	if total <= 0 || total > mostAfterEnd {
		t.Errorf("got %d bytes, want 1 to %d", total, mostAfterEnd)
	}
	_, _, _ = c.read.Close(), c.write.Close(), read.Close() // which ends both
	_ = flood.Wait()
	testkit.Eventually(t, "the capture ends", func() bool { return isClosed(c.done) })
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// A signal that comes when everything is done belongs to whoever reads signals next.
func TestSignalAfterTheLastByte(t *testing.T) {
	done := make(chan struct{})
	close(done)
	for range 100 {
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		if sig := waitOrStop(done, signals); sig != nil || len(signals) != 1 {
			t.Fatalf("got signal %v, want none", sig)
		}
	}
}

// BenchmarkCapture measures the throughput from one pipe through a capture into another pipe or into a file.
func BenchmarkCapture(b *testing.B) {
	for _, to := range []string{"pipe", "file"} {
		for mode, enabled := range map[string]bool{"stream": true, "held": false} {
			b.Run(mode+" to "+to, func(b *testing.B) { benchmarkCapture(b, to, enabled) })
		}
	}
}

func benchmarkCapture(b *testing.B, to string, enabled bool) {
	const size = 256 << 20
	b.SetBytes(size)
	for b.Loop() {
		var read, destination *os.File
		var err error
		if to == "pipe" {
			read, destination, err = os.Pipe()
		} else {
			destination, err = spool.Temporary(b.TempDir())
		}
		testkit.Must(b, err)
		c := captureTo(destination, newForwarding(enabled), nil)
		c.held = spool.New(spool.MemoryLimit, func() (*os.File, error) { return spool.Temporary(b.TempDir()) })
		c.read, c.write, err = os.Pipe()
		testkit.Must(b, err)
		go func() {
			buffer := make([]byte, 128<<10)
			for range size / len(buffer) {
				_, _ = c.write.Write(buffer)
			}
			_ = c.write.Close()
		}()
		go func() {
			c.run()
			_ = c.flush()
			_, _ = destination.Close(), c.held.Close()
		}()
		n := int64(size)
		if read != nil {
			n, err = io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{read})
			_ = read.Close()
		}
		<-c.done
		if n != size || err != nil {
			b.Fatalf("got %d bytes, %v; want %d", n, err, size)
		}
	}
}
