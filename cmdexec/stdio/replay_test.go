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

// A pipe that ends after a signal to retry, however long after it, may have been cut off by that. So may one that ends
// a moment before.
func TestIsCutOff(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		stopped, ended time.Time // zero for a file, which no signal ends
		want           bool
	}{
		"a minute after":   {now.Add(-time.Minute), now, true},
		"at once":          {now, now, true},
		"a moment before":  {now, now.Add(-EndGrace / 2), true},
		"long before":      {now, now.Add(-time.Second), false},
		"a file":           {now, time.Time{}, false},
		"without a signal": {time.Time{}, now, false},
	} {
		r := Replay(NewReader(os.Stdin), nil, nil)
		r.endedAt = test.ended
		a := &feeding{over: make(chan struct{}), stopped: make(chan time.Time, 1)}
		if !test.stopped.IsZero() {
			a.stopped <- test.stopped
		}
		if got := a.isCutOff(r.awaitGrace(a)); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
