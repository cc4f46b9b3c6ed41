package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// TestSpoolHoldsWhatWasWritten compares a spool with a plain buffer, through its way from memory to a file.
func TestSpoolHoldsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 100).Draw(t, "limit")
		s := New(limit, func() (*os.File, error) { return Temporary(dir) })
		defer func() { _ = s.Close() }()
		var model []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 60)).Draw(t, "chunks") {
			if n, err := s.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("write %d bytes: %d, %v", len(chunk), n, err)
			}
			model = append(model, chunk...)
			if s.Size() != int64(len(model)) {
				t.Fatalf("size %d, want %d", s.Size(), len(model))
			}
			if inFile := s.file != nil; inFile != (len(model) > limit) {
				t.Fatalf("with %d of %d bytes: in a file %v", len(model), limit, inFile)
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
		t.Fatalf("read at %d: %q, %v; want %q, %v", offset, p[:n], err, q[:m], wantErr)
	}
}

func TestSpoolTellsThatThereIsNoRoom(t *testing.T) {
	full := errors.New("no room")
	s := New(3, func() (*os.File, error) { return nil, full })
	if _, err := s.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write([]byte("d")); n != 0 || !errors.Is(err, full) {
		t.Errorf("write over the limit: %d, %v", n, err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(s, 0, s.Size())); string(got) != "abc" || err != nil {
		t.Errorf("after the error it holds %q, %v", got, err)
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
		t.Fatalf("size %d, %v", s.Size(), err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(s, 3, s.Size()-3)); string(got) != "tent" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedSpoolMakesNoFile(t *testing.T) {
	s := New(0, func() (*os.File, error) {
		t.Error("a file is made")
		return nil, nil
	})
	_ = s.Close()
	if _, err := s.Write([]byte("late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func TestTemporaryLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	file, err := Temporary(dir)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 0 || err != nil {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	_ = file.Close()
	if _, err := Temporary(filepath.Join(dir, "missing")); err == nil {
		t.Error("no error in a directory that is not there")
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
				t.Fatalf("tail %q, want %q", got, want)
			}
			if len(tail.buffer) > 3*limit {
				t.Fatalf("it holds %d bytes for a limit of %d", len(tail.buffer), limit)
			}
		}
	})
}
