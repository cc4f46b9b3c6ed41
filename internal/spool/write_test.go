package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inAFile is a spool that holds content in a file.
func inAFile(t testing.TB, content []byte) *Spool {
	t.Helper()
	s := New(0, func() (*os.File, error) { return Temporary(t.TempDir()) })
	t.Cleanup(func() { _ = s.Close() })
	_, err := s.Write(content)
	must(t, err)
	return s
}

// much is more than a pipe holds, with no two pages alike.
func much() []byte {
	content := make([]byte, 300_001)
	for i := range content {
		content[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return content
}

// pipe is one that blocks, as those that a shell makes, or one that Go waits for.
func pipe(t testing.TB, blocks bool) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	must(t, err)
	if blocks {
		write.Fd()
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

// Whatever is written to gets what follows the offset, the same bytes again each time.
func TestWriteFrom(t *testing.T) {
	spools := map[string]*Spool{"memory": New(MemoryLimit, nil), "file": inAFile(t, much())}
	_, err := spools["memory"].Write(much())
	must(t, err)
	writers := map[string]func(t *testing.T, write func(io.Writer)) []byte{
		"buffer":        toBuffer,
		"file":          toFile,
		"pipe":          func(t *testing.T, write func(io.Writer)) []byte { return throughPipe(t, false, write) },
		"blocking pipe": func(t *testing.T, write func(io.Writer)) []byte { return throughPipe(t, true, write) },
	}
	for held, s := range spools {
		for to, written := range writers {
			for _, offset := range []int64{0, 1, 4096, 100_000, 300_000, 300_001} {
				got := written(t, func(w io.Writer) {
					if n, err := s.WriteFrom(offset, w); n != 300_001-offset || err != nil {
						t.Errorf("%s to %s from %d: %d, %v", held, to, offset, n, err)
					}
				})
				if !bytes.Equal(got, much()[offset:]) {
					t.Errorf("%s to %s from %d: %d bytes came, or others", held, to, offset, len(got))
				}
			}
		}
	}
}

func toBuffer(_ *testing.T, write func(io.Writer)) []byte {
	var b bytes.Buffer
	write(&b)
	return b.Bytes()
}

func toFile(t *testing.T, write func(io.Writer)) []byte {
	file, err := Temporary(t.TempDir())
	must(t, err)
	defer file.Close()
	write(file)
	got, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
	must(t, err)
	return got
}

func throughPipe(t *testing.T, blocks bool, write func(io.Writer)) []byte {
	read, to := pipe(t, blocks)
	go func() {
		write(to)
		_ = to.Close()
	}()
	got, err := io.ReadAll(read)
	must(t, err)
	return got
}

func TestWriteToAClosedPipe(t *testing.T) {
	s := inAFile(t, much())
	gone, toNobody := pipe(t, false)
	must(t, gone.Close())
	if n, err := s.WriteTo(toNobody); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %d, %v; want 0, %v", n, err, syscall.EPIPE)
	}
}
