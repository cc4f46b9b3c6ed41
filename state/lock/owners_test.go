package lock

import (
	"strings"
	"testing"
)

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
