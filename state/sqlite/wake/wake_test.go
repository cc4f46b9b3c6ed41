package wake

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/10f93571/retry/state"
)

func next(t *testing.T, changes <-chan state.Change) state.Change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(30 * time.Second):
		t.Fatal("got no change, want one")
	}
	return state.Change{}
}

// What cannot be read is a change that was lost, and does not keep the next ones from being heard.
func TestADatagramThatIsNoChange(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such sockets")
	}
	p := New(t.TempDir())
	defer p.Close()
	changes := p.Listen(t.Context())
	for _, text := range []string{"", "{", `{"Number": "x"}`, "\xff\x00", `[{"Number": 1e400}]`} {
		path, done := shortPath(filepath.Dir(p.file), filepath.Base(p.file))
		socket, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
		done()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := socket.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = socket.Close()
		if c := next(t, changes); !c.Lost {
			t.Errorf("%q: got %+v, want that something was lost", text, c)
		}
	}
	TellOthers(p.dir, []state.Change{{Number: 7}})
	if c := next(t, changes); c.Number != 7 {
		t.Errorf("got %+v, want task 7", c)
	}
}

// Who closes leaves no socket; who tells afterwards finds nobody.
func TestCloseRemovesTheSocket(t *testing.T) {
	dir := t.TempDir()
	p, other := New(dir), New(dir)
	p.Listen(t.Context())
	p.Close()
	if entries, _ := os.ReadDir(filepath.Join(dir, DirName)); len(entries) != 0 {
		t.Errorf("got %v left, want nothing", entries)
	}
	other.Tell([]state.Change{{Number: 7}})
	other.Close()
}

// A process that tells often reads the directory again only when it has changed, and finds who has come since.
func TestWhoComesLaterIsTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such sockets")
	}
	dir := t.TempDir()
	p := New(dir)
	defer p.Close()
	p.Listen(t.Context())
	long := time.Now().Add(-time.Hour) // the directory has not changed for so long
	if err := os.Chtimes(filepath.Join(dir, DirName), long, long); err != nil {
		t.Fatal(err)
	}
	p.Tell([]state.Change{{Number: 1}})
	if p.sockets.changed.IsZero() {
		t.Fatal("got a list that is read again each time, want one that is kept")
	}
	for number := range int64(3) {
		other := New(dir)
		changes := other.Listen(t.Context())
		p.Tell([]state.Change{{Number: 10 + number}})
		if c := next(t, changes); c.Number != 10+number {
			t.Errorf("got %+v, want task %d", c, 10+number)
		}
		other.Close()
	}
}
