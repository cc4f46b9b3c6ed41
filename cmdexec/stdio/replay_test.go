package stdio

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/internal/testkit"
)

// A file may be written anew while an attempt reads what was kept of it: the rest is that of another input then. A file
// that has grown is no other one for the attempt that reads it, but no later one gets the same.
func TestReplayOfAFileThatChanges(t *testing.T) {
	const size = 3 * pipeCapacity
	path := filepath.Join(t.TempDir(), "dump")
	write := func(b byte, size int) {
		testkit.Must(t, os.WriteFile(path, bytes.Repeat([]byte{b}, size), 0o600),
			os.Chtimes(path, time.Time{}, time.Unix(int64(b), 0)))
	}
	replay := func() (*ReplayedStdin, func(offset int, a *feeding) error) {
		write('a', size)
		file, err := os.Open(path)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = file.Close() })
		r := Replay(NewReader(file), spool.New(10*size, nil), nil)
		testkit.Must(t, r.changed())
		return r, func(offset int, a *feeding) error {
			_, err := r.next(make([]byte, pipeCapacity), int64(offset), a)
			return err
		}
	}
	for name, change := range map[string]func(){
		"the same size": func() { write('b', size) }, "larger": func() { write('b', 2*size) }, "cut": func() { write('b', 1) },
	} {
		_, next := replay()
		testkit.Must(t, next(0, &feeding{}))
		second := &feeding{}
		testkit.Must(t, next(0, second))
		change()
		if err := next(pipeCapacity, second); err == nil {
			t.Errorf("%s: got no error, want that the file has changed", name)
		}
	}
	r, next := replay()
	first := &feeding{}
	testkit.Must(t, next(0, first))
	write('a', size+1)
	for offset := pipeCapacity; next(offset, first) == nil; {
		offset = int(r.kept.Size())
	}
	if r.incomplete() != nil || r.lost() == nil {
		t.Errorf("got incomplete %v, lost %v; want only that no other attempt has it", r.incomplete(), r.lost())
	}
}

// A pipe that has ended when retry was asked to stop may have been cut off by that, and one after a signal to all of a
// job by that. What comes after the first look has not ended it, and nothing ends a file.
func TestWhatMayHaveEndedAPipe(t *testing.T) {
	signalled, stopped := false, false
	stdin := func(endedAt time.Time) *ReplayedStdin {
		r := Replay(NewReader(os.Stdin), nil, nil)
		r.endedAt = endedAt
		r.Signalled, r.Stopped = func(time.Time) bool { return signalled }, func() bool { return stopped }
		return r
	}
	check := func(what string, r *ReplayedStdin, bySignal, byStop bool) {
		t.Helper()
		if gotSignal, gotStop := r.judge(); gotSignal != bySignal || gotStop != byStop {
			t.Errorf("%s: got %v, %v; want %v, %v", what, gotSignal, gotStop, bySignal, byStop)
		}
	}
	whole := stdin(time.Now())
	check("nothing", whole, false, false)
	signalled, stopped = true, true
	check("both", stdin(time.Now()), true, true)
	check("both after the first look", whole, false, false)
	check("a file", stdin(time.Time{}), false, false)
	signalled = false
	halved := stdin(time.Now())
	check("a stop", halved, false, true)
	check("the same for the next attempt", halved, false, true)
}
