package blobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// age makes a file as old as a day.
func age(t testing.TB, s *Store, name string) {
	t.Helper()
	old := time.Now().Add(-24 * time.Hour)
	testkit.Must(t, os.Chtimes(s.path(name), old, old))
}

func none(Info) (bool, error) { return false, nil }

// aWhileAgo is the time before which blobs are swept in these tests.
func aWhileAgo() time.Time { return time.Now().Add(-time.Hour) }

func TestSweep(t *testing.T) {
	s := newStore(t)
	young, used, unused, kept := put(t, s, "young"), put(t, s, "used"), put(t, s, "unused"), put(t, s, "kept")
	again, left, leftUsed := put(t, s, "again"), put(t, s, "left"), put(t, s, "left, used")
	for _, hash := range []string{used, unused, kept, again, left, leftUsed} {
		age(t, s, hash)
	}
	testkit.Must(t, os.Rename(s.path(left), s.path(left+outgoing))) // as a crash within a sweep leaves them
	testkit.Must(t, os.Rename(s.path(leftUsed), s.path(leftUsed+outgoing)))
	if _, err := s.Keep(kept); err != nil {
		t.Errorf("keep: got %v, want none", err)
	}
	put(t, s, "again")
	for _, name := range []string{"2cf24dba.1.tmp", "2cf24dba.2.tmp", "README"} {
		testkit.Write(t, s.path(name), "half")
	}
	age(t, s, "2cf24dba.1.tmp")
	age(t, s, "README")

	var asked []string
	swept, err := s.Sweep(t.Context(), aWhileAgo(), func(b Info) (bool, error) {
		asked = append(asked, b.Hash)
		return b.Hash == used || b.Hash == leftUsed, nil
	})
	if want := (Swept{Blobs: 2, Bytes: int64(len("unused") + len("left"))}); err != nil || swept != want {
		t.Errorf("got %+v, %v, want %+v", swept, err, want)
	}
	want := []string{young, used, kept, again, leftUsed, "2cf24dba.2.tmp", "README"}
	slices.Sort(want)
	if got := testkit.Names(t, s.dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, hash := range []string{young, kept, again} {
		if slices.Contains(asked, hash) {
			t.Errorf("asked for %s, which is young", hash)
		}
	}
}

func TestList(t *testing.T) {
	s := newStore(t)
	old := put(t, s, "old")
	age(t, s, old)
	put(t, s, "new")
	testkit.Write(t, s.path("x.tmp"), "")
	age(t, s, "x.tmp")
	var got []string
	for info, err := range s.List(aWhileAgo()) {
		testkit.Must(t, err)
		got = append(got, fmt.Sprint(info.Hash, " ", info.Size))
	}
	if want := []string{old + " 3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What cannot be asked for stays, and the others are swept.
func TestSweepErrors(t *testing.T) {
	s := newStore(t)
	first, second := put(t, s, "first"), put(t, s, "second")
	age(t, s, first)
	age(t, s, second)
	broken := errors.New("the journal is locked")
	swept, err := s.Sweep(t.Context(), aWhileAgo(), func(b Info) (bool, error) {
		if b.Hash == first {
			return false, broken
		}
		return false, nil
	})
	if got := testkit.Names(t, s.dir); !errors.Is(err, broken) || swept.Blobs != 1 || !slices.Equal(got, []string{first}) {
		t.Errorf("got %+v, %v and %q, want the first left", swept, err, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Sweep(ctx, time.Now().Add(time.Hour), none)
	if !errors.Is(err, context.Canceled) || len(testkit.Names(t, s.dir)) != 1 {
		t.Errorf("got %v, want Canceled and nothing removed", err)
	}
}

// A blob that is kept while the sweep asks for it is not removed, whenever in that time it is.
func TestKeepDuringASweep(t *testing.T) {
	for _, moment := range []int{1, 2} { // the sweep asks twice: before it takes the blob away, and after
		s := newStore(t)
		hash := put(t, s, "x")
		age(t, s, hash)
		asked := 0
		_, err := s.Sweep(t.Context(), aWhileAgo(), func(Info) (bool, error) {
			if asked++; asked == moment {
				if _, err := s.Keep(hash); moment == 1 && err != nil || moment == 2 && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("keep at question %d: got %v", moment, err)
				}
				if got := read(t, s, hash); got != "x" {
					t.Errorf("read at question %d: got %q, want x", moment, got)
				}
				if moment == 2 { // the client was told that it is gone, and sends it again
					put(t, s, "x")
				}
			}
			return false, nil
		})
		if got := testkit.Names(t, s.dir); err != nil || !slices.Equal(got, []string{hash}) {
			t.Errorf("question %d: got %q, %v, want the blob", moment, got, err)
		}
	}
}

// Nobody who has kept a blob loses it to a sweep, however they meet.
func TestKeepAgainstSweeps(t *testing.T) {
	s := newStore(t)
	const text = "x"
	hash := Hash([]byte(text))
	var kept atomic.Bool
	var wait sync.WaitGroup
	for range 100 {
		kept.Store(false)
		put(t, s, text)
		age(t, s, hash)
		for range 2 {
			wait.Go(func() {
				if _, err := s.Sweep(t.Context(), aWhileAgo(), none); err != nil {
					t.Errorf("sweep: got %v, want none", err)
				}
			})
		}
		wait.Go(func() {
			_, err := s.Keep(hash)
			kept.Store(err == nil)
		})
		wait.Wait()
		if _, err := s.Stat(hash); kept.Load() && err != nil {
			t.Fatalf("got %v, want the blob that was kept", err)
		}
		if got := testkit.Names(t, s.dir); len(got) > 1 || len(got) == 1 && strings.HasSuffix(got[0], outgoing) {
			t.Fatalf("got %q, want at most the blob", got)
		}
	}
}
