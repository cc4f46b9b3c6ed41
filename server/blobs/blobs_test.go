package blobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/10f93571/retry/internal/testkit"
)

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := New(filepath.Join(t.TempDir(), "blobs"))
	testkit.Must(t, err)
	return s
}

// put keeps a text, and returns its hash.
func put(t testing.TB, s *Store, text string) (hash string) {
	t.Helper()
	hash = Hash([]byte(text))
	size, _, err := s.Put(t.Context(), hash, strings.NewReader(text), 1<<20)
	if err != nil || size != int64(len(text)) {
		t.Fatalf("put: got %d, %v, want %d", size, err, len(text))
	}
	return hash
}

// read returns the text of a blob.
func read(t testing.TB, s *Store, hash string) string {
	t.Helper()
	file, size, err := s.Open(hash)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(file)
	if err != nil || int64(len(content)) != size {
		t.Fatalf("read: got %d bytes, %v, want %d", len(content), err, size)
	}
	return string(content)
}

func TestPut(t *testing.T) {
	s := newStore(t)
	const hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	for i, want := range []bool{true, false} {
		size, created, err := s.Put(t.Context(), hash, strings.NewReader("hello"), 5)
		if size != 5 || created != want || err != nil {
			t.Errorf("put %d: got %d, %v, %v, want 5, %v", i, size, created, err, want)
		}
	}
	if got := read(t, s, hash); got != "hello" {
		t.Errorf("got %q, want hello", got)
	}
	if got := testkit.Names(t, s.dir); len(got) != 1 || got[0] != hash {
		t.Errorf("got %q, want one file", got)
	}
	for path, want := range map[string]fs.FileMode{s.dir: 0o700, s.path(hash): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got mode %v, %v, want %o", path, info.Mode(), err, want)
		}
	}
	empty := put(t, s, "")
	if info, err := s.Stat(empty); err != nil || info.Size != 0 || info.Hash != empty || info.Used.IsZero() {
		t.Errorf("empty: got %+v, %v, want 0 bytes", info, err)
	}
	testkit.Must(t, s.Remove(hash), s.Remove(hash))
	if _, _, err := s.Open(hash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: got %v, want ErrNotExist", err)
	}
}

// What is refused leaves nothing behind, not even for a moment under its name.
func TestPutRefuses(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	hash := Hash([]byte("hello"))
	tests := []struct {
		name string
		ctx  context.Context
		hash string
		body io.Reader
		want func(error) bool
	}{
		{name: "another content", body: strings.NewReader("hellO"), want: func(err error) bool {
			mismatch := (*MismatchError)(nil)
			return errors.As(err, &mismatch) && mismatch.Want == hash && mismatch.Got == Hash([]byte("hellO"))
		}},
		{name: "cut off", body: strings.NewReader("hell"), want: func(err error) bool {
			return errors.As(err, new(*MismatchError))
		}},
		{name: "too large", body: strings.NewReader("hello, world"), want: func(err error) bool {
			tooLarge := (*TooLargeError)(nil)
			return errors.As(err, &tooLarge) && tooLarge.Limit == 10
		}},
		{name: "reader fails", body: io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(io.ErrUnexpectedEOF)),
			want: func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrUnwritable) }},
		{name: "context ended", ctx: ended, body: strings.NewReader("hello"), want: func(err error) bool {
			return errors.Is(err, context.Canceled)
		}},
		{name: "path", hash: "../" + hash[3:], body: strings.NewReader("hello"), want: isName},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			if tt.hash == "" {
				tt.hash = hash
			}
			size, created, err := s.Put(tt.ctx, tt.hash, tt.body, 10)
			if !tt.want(err) || size != 0 || created {
				t.Errorf("got %d, %v, %v, want another error", size, created, err)
			}
			if got := testkit.Names(t, s.dir); len(got) != 0 {
				t.Errorf("got %q in the directory, want nothing", got)
			}
		})
	}
}

func isName(err error) bool { return errors.Is(err, ErrName) }

// No call leaves the directory, whatever a client names.
func TestNames(t *testing.T) {
	s := newStore(t)
	testkit.Write(t, filepath.Join(filepath.Dir(s.dir), strings.Repeat("a", 61)), "precious")
	for _, name := range []string{"", ".", "..", "../" + strings.Repeat("a", 61), "/etc/passwd", strings.Repeat("A", 64),
		strings.Repeat("a", 63), strings.Repeat("a", 65), strings.Repeat("a", 63) + "\x00", strings.Repeat("a", 64) + ".tmp",
		strings.Repeat("a", 63) + "/"} {
		_, _, errPut := s.Put(t.Context(), name, strings.NewReader(""), 1)
		_, _, errOpen := s.Open(name)
		_, errStat := s.Stat(name)
		_, errKeep := s.Keep(name)
		_, errRef := ParseRef(Ref(name))
		for call, err := range map[string]error{"Put": errPut, "Open": errOpen, "Stat": errStat, "Keep": errKeep,
			"Remove": s.Remove(name), "ParseRef": errRef} {
			if !isName(err) {
				t.Errorf("%s %q: got %v, want ErrName", call, name, err)
			}
		}
	}
	hash := put(t, s, "x")
	if got, err := ParseRef(Ref(hash)); got != hash || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, hash)
	}
	for _, ref := range []string{hash, "sha512:" + hash, "SHA256:" + hash, ""} {
		if _, err := ParseRef(ref); err == nil {
			t.Errorf("%q: got no error, want one", ref)
		}
	}
}

// Many that put the same content at once make one file, and one of them made it.
func TestPutAtOnce(t *testing.T) {
	s := newStore(t)
	text := strings.Repeat("x", 100_000)
	hash := Hash([]byte(text))
	var made atomic.Int32
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			size, created, err := s.Put(t.Context(), hash, iotest.HalfReader(strings.NewReader(text)), 1<<20)
			if err != nil || size != int64(len(text)) {
				t.Errorf("got %d, %v, want %d", size, err, len(text))
			}
			if created {
				made.Add(1)
			}
			if got, err := s.Stat(hash); err != nil || got.Size != size {
				t.Errorf("after put: got %+v, %v, want it there", got, err)
			}
		})
	}
	wait.Wait()
	if got := testkit.Names(t, s.dir); made.Load() != 1 || len(got) != 1 || read(t, s, hash) != text {
		t.Errorf("got %d created and %q, want one of each", made.Load(), got)
	}
}

// A reader that has a blob open reads all of it, though it is put again and removed.
func TestOpenBlobStays(t *testing.T) {
	s := newStore(t)
	hash := put(t, s, "hello")
	file, _, err := s.Open(hash)
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	put(t, s, "hello")
	testkit.Must(t, s.Remove(hash))
	if content, err := io.ReadAll(file); err != nil || string(content) != "hello" {
		t.Errorf("got %q, %v, want hello", content, err)
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Chmod(dir, 0o755))
	if _, err := New(dir); err == nil || !strings.Contains(err.Error(), "\nhint: chmod 700 ") {
		t.Errorf("directory that others may read: got %v, want a hint", err)
	}
	testkit.Must(t, os.Chmod(dir, 0o700))
	if _, err := New(dir); err != nil {
		t.Errorf("directory of ours: got %v, want none", err)
	}
	testkit.Write(t, filepath.Join(dir, "file"), "")
	if _, err := New(filepath.Join(dir, "file")); err == nil {
		t.Error("file: got no error, want one")
	}
}

// A directory that is gone is an error of the store, not of the client.
func TestUnwritable(t *testing.T) {
	s := newStore(t)
	testkit.Must(t, os.RemoveAll(s.dir))
	_, _, err := s.Put(t.Context(), Hash(nil), bytes.NewReader(nil), 1)
	if !errors.Is(err, ErrUnwritable) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrUnwritable", err)
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add("sha256:" + strings.Repeat("0", 64))
	f.Add("sha256:../..")
	f.Fuzz(func(t *testing.T, ref string) {
		hash, err := ParseRef(ref)
		if err == nil && (len(hash) != 64 || Ref(hash) != ref || filepath.Base(hash) != hash) {
			t.Errorf("%q: got %q, want it refused", ref, hash)
		}
	})
}
