package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// A token that is removed is gone from the file, and nothing else is.
func TestRemoveLeavesTheOtherLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	testkit.Must(t, os.WriteFile(file, []byte("# ours\nwrong line\n"), 0o600))
	if _, err := List(file); err == nil {
		t.Error("got no error, want one for the wrong line")
	}
	testkit.Must(t, os.WriteFile(file, []byte("# ours\n"), 0o600))
	for _, name := range []string{"a", "b"} {
		if _, err := Add(file, name, Write); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, Remove(file, "a"))
	list, err := List(file)
	testkit.Must(t, err)
	if len(list) != 1 || list[0].Name != "b" || list[0].Scope != Write {
		t.Errorf("got %v, want b alone", list)
	}
	content, err := os.ReadFile(file)
	testkit.Must(t, err)
	if !strings.HasPrefix(string(content), "# ours\n") {
		t.Errorf("got %q, want the comment kept", content)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("got mode %v (%v), want it private", info.Mode(), err)
	}
	if err := Remove(file, "a"); !errors.Is(err, ErrNoToken) {
		t.Errorf("got %v, want ErrNoToken", err)
	}
	if err := Remove(file+"x", "a"); !errors.Is(err, ErrNoToken) {
		t.Errorf("got %v, want ErrNoToken", err)
	}
}
