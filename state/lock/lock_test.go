package lock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/state"
)

// replaceStatfs makes every path lie on one file system until the test ends.
func replaceStatfs(t *testing.T, system FileSystem, err error) {
	t.Helper()
	before := Statfs
	t.Cleanup(func() { Statfs = before })
	Statfs = func(string) (FileSystem, error) { return system, err }
}

// Nothing is created on a network file system.
func TestCreateDirRefusesANetworkFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	replaceStatfs(t, FileSystem{Name: "nfs", Remote: true}, nil)
	err := CreateDir(dir)
	const want = "is on a network file system (nfs), where SQLite cannot share a journal\nhint: use a directory on"
	if !errors.Is(err, state.ErrNetwork) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no directory", err)
	}
}

func TestCreateDirAcceptsAnUnknownFileSystem(t *testing.T) {
	replaceStatfs(t, FileSystem{}, errors.ErrUnsupported)
	if err := CreateDir(filepath.Join(t.TempDir(), "state")); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

func TestStatfsOfALocalDirectory(t *testing.T) {
	got, err := Statfs(t.TempDir())
	if err != nil || got.Remote || got.Free == 0 {
		t.Errorf("got %+v, %v; want a local file system with space", got, err)
	}
}

// Files that cannot be written are mended in another way than a file system.
func TestReadOnlyHint(t *testing.T) {
	tests := []struct {
		name     string
		readOnly bool
		want     string
	}{
		{name: "files", readOnly: false, want: "chmod u+w /j and what is in it"},
		{name: "file system", readOnly: true, want: "mount the file system of /j writable"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			replaceStatfs(t, FileSystem{ReadOnly: test.readOnly}, nil)
			if got := ReadOnlyHint("/j"); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The locks of names lie above those of all tasks and of the queue.
func TestName(t *testing.T) {
	for _, name := range []string{"", "a", "nightly", strings.Repeat("x", 1000), "\xff"} {
		if got := Name(name); got < 1<<62 {
			t.Errorf("%q: got %d, want at least %d", name, got, int64(1<<62))
		}
	}
}

func TestOpenOwnersReadOnlyWithoutAFile(t *testing.T) {
	if got, err := OpenOwnersReadOnly(t.TempDir()); got != nil || err != nil {
		t.Errorf("got %v, %v; want nil, nil", got, err)
	}
}
