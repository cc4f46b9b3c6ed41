package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/testkit"
)

// TestSpoolHoldsWhatWasWritten compares a spool with a plain buffer, from memory to a file.
func TestSpoolHoldsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 100).Draw(t, "limit")
		s := New(limit, func() (*os.File, error) { return Temporary(dir) })
		defer func() { _ = s.Close() }()
		var model []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 60)).Draw(t, "chunks") {
			if n, err := s.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("write: got %d, %v, want %d", n, err, len(chunk))
			}
			model = append(model, chunk...)
			if s.Size() != int64(len(model)) {
				t.Fatalf("size: got %d, want %d", s.Size(), len(model))
			}
			if inFile := s.file != nil; inFile != (len(model) > limit) {
				t.Fatalf("%d bytes, limit %d: in a file: got %v, want %v", len(model), limit, inFile, !inFile)
			}
			checkReadAt(t, s, model)
		}
	})
}

func checkReadAt(t *rapid.T, s *Spool, model []byte) {
	offset := rapid.Int64Range(0, int64(len(model))+2).Draw(t, "offset")
	p, q := make([]byte, 20), make([]byte, 20)
	n, err := s.ReadAt(p, offset)
	m, wantErr := bytes.NewReader(model).ReadAt(q, offset)
	if n != m || !errors.Is(err, wantErr) || !bytes.Equal(p[:n], q[:m]) {
		t.Fatalf("read at %d: got %q, %v, want %q, %v", offset, p[:n], err, q[:m], wantErr)
	}
}

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{name: "empty", want: true},
		{name: "the same", a: "abcdef", b: "abcdef", want: true},
		{name: "another", a: "abcdef", b: "abcdeF"},
		{name: "a part", a: "abcdef", b: "abc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var spools [2]*Spool
			for i, text := range []string{tt.a, tt.b} { // one in memory, and one in a file
				spools[i] = New(8*i, func() (*os.File, error) { return Temporary(t.TempDir()) })
				defer func() { _ = spools[i].Close() }()
				_, err := spools[i].Write([]byte(text))
				testkit.Must(t, err)
			}
			if got, err := Equal(spools[0], spools[1]); got != tt.want || err != nil {
				t.Errorf("got %v, error %v, want %v", got, err, tt.want)
			}
		})
	}
	closed := New(0, func() (*os.File, error) { return Temporary(t.TempDir()) })
	_, err := closed.Write([]byte("a"))
	testkit.Must(t, err)
	testkit.Must(t, closed.file.Close())
	if _, err := Equal(closed, closed); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: got %v, want %v", err, os.ErrClosed)
	}
}

func TestSpoolWithoutRoom(t *testing.T) {
	full := errors.New("no room")
	s := New(3, func() (*os.File, error) { return nil, full })
	if _, err := s.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write([]byte("d")); n != 0 || !errors.Is(err, full) {
		t.Errorf("write above the limit: got %d, %v, want 0, %v", n, err, full)
	}
	if got, err := io.ReadAll(io.NewSectionReader(s, 0, s.Size())); string(got) != "abc" || err != nil {
		t.Errorf("content after the error: got %q, %v, want %q", got, err, "abc")
	}
}

func TestOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Of(file)
	if err != nil || s.Size() != 7 {
		t.Fatalf("size: got %d, %v, want 7", s.Size(), err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(s, 3, s.Size()-3)); string(got) != "tent" || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, "tent")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedSpoolMakesNoFile(t *testing.T) {
	s := New(0, func() (*os.File, error) {
		t.Error("got a file, want none")
		return nil, nil
	})
	_ = s.Close()
	if _, err := s.Write([]byte("late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: got error %v, want %v", err, os.ErrClosed)
	}
}

func TestClosedSpoolIsNotEmpty(t *testing.T) {
	s := New(1<<10, nil)
	if _, err := s.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if n, err := s.WriteTo(io.Discard); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %d bytes, error %v, want %v", n, err, os.ErrClosed)
	}
}

func TestTemporaryLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	file, err := Temporary(dir)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 0 || err != nil {
		t.Errorf("directory: got %v, %v, want nothing", entries, err)
	}
	_ = file.Close()
	if _, err := Temporary(filepath.Join(dir, "missing")); err == nil {
		t.Error("missing directory: got no error, want one")
	}
}

func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 10).Draw(t, "limit")
		tail, all := NewTail(limit), []byte(nil)
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 30)).Draw(t, "chunks") {
			_, _ = tail.Write(chunk)
			all = append(all, chunk...)
			if got, want := tail.String(), string(all[max(0, len(all)-limit):]); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			if len(tail.buffer) > 3*limit {
				t.Fatalf("buffer: got %d bytes, want at most three times the limit of %d", len(tail.buffer), limit)
			}
		}
	})
}

// inAFile returns a spool that has its content in a file.
func inAFile(t testing.TB, content []byte) *Spool {
	t.Helper()
	s := New(0, func() (*os.File, error) { return Temporary(t.TempDir()) })
	t.Cleanup(func() { _ = s.Close() })
	_, err := s.Write(content)
	testkit.Must(t, err)
	return s
}

// longText returns more bytes than a pipe holds. No two pages are the same.
func longText() []byte {
	content := make([]byte, 300_001)
	for i := range content {
		content[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return content
}

// pipe returns a pipe that blocks, as a shell's does, or one that Go polls.
func pipe(t testing.TB, blocks bool) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	testkit.Must(t, err)
	if blocks {
		write.Fd()
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

// WriteFrom writes the bytes from the offset on to each kind of writer, as often as it is called.
func TestWriteFrom(t *testing.T) {
	spools := map[string]*Spool{"memory": New(MemoryLimit, nil), "file": inAFile(t, longText())}
	_, err := spools["memory"].Write(longText())
	testkit.Must(t, err)
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
						t.Errorf("%s to %s from %d: got %d, %v, want %d", held, to, offset, n, err, 300_001-offset)
					}
				})
				if !bytes.Equal(got, longText()[offset:]) {
					t.Errorf("%s to %s from %d: got %d bytes, want those from the offset on", held, to, offset, len(got))
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
	testkit.Must(t, err)
	defer file.Close()
	write(file)
	got, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
	testkit.Must(t, err)
	return got
}

func throughPipe(t *testing.T, blocks bool, write func(io.Writer)) []byte {
	read, to := pipe(t, blocks)
	go func() {
		write(to)
		_ = to.Close()
	}()
	got, err := io.ReadAll(read)
	testkit.Must(t, err)
	return got
}

func TestWriteToAClosedPipe(t *testing.T) {
	s := inAFile(t, longText())
	gone, toNobody := pipe(t, false)
	testkit.Must(t, gone.Close())
	if n, err := s.WriteTo(toNobody); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %d, %v, want 0, %v", n, err, syscall.EPIPE)
	}
}
