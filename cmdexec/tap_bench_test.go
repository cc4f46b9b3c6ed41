//go:build unix

package cmdexec

import (
	"io"
	"os"
	"testing"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// BenchmarkTap is how fast a stream goes from one pipe through a tap into another, or into a file.
func BenchmarkTap(b *testing.B) {
	for _, to := range []string{"pipe", "file"} {
		for mode, on := range map[string]bool{"stream": true, "held": false} {
			b.Run(mode+" to "+to, func(b *testing.B) { benchmarkTap(b, to, on) })
		}
	}
}

func benchmarkTap(b *testing.B, to string, on bool) {
	const size = 256 << 20
	b.SetBytes(size)
	for b.Loop() {
		dir := b.TempDir()
		read, sink := sinkOf(b, to)
		held := spool.New(spool.MemoryLimit, func() (*os.File, error) { return spool.Temporary(dir) })
		tap := &tap{to: sink, passing: &passing{on: on}, held: held, tail: spool.NewTail(task.Kept), done: make(chan struct{})}
		var err error
		tap.read, tap.write, err = os.Pipe()
		ok(b, err)
		go flood(tap.write, size)
		go func() {
			tap.run()
			tap.release()
			_, _ = sink.Close(), held.Close()
		}()
		n := int64(size)
		if read != nil {
			n, err = io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{read})
			_ = read.Close()
		}
		<-tap.done
		if n != size || err != nil {
			b.Fatalf("%d bytes, %v", n, err)
		}
	}
}

// sinkOf is something to write to, and its other end if it is a pipe.
func sinkOf(b *testing.B, kind string) (read, sink *os.File) {
	b.Helper()
	var err error
	if kind == "pipe" {
		read, sink, err = os.Pipe()
	} else {
		sink, err = spool.Temporary(b.TempDir())
	}
	ok(b, err)
	return read, sink
}

func flood(to *os.File, size int) {
	buffer := make([]byte, 128<<10)
	for range size / len(buffer) {
		_, _ = to.Write(buffer)
	}
	_ = to.Close()
}
