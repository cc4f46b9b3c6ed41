package request

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// What can be read only once, what its name says for this process alone, and what does not tell its size is kept by the
// caller; an empty file is one.
func TestStampOfStreams(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{empty: false, "file_test.go": false}
	if runtime.GOOS == "linux" {
		files["/proc/version"], files["/dev/fd/2"], files["/proc/self/status"] = true, true, true
	}
	for name, want := range files {
		err := Stamp(&Request{Body: []Part{{File: name}}})
		if got := errors.As(err, new(*StreamError)); got != want || !want && err != nil {
			t.Errorf("%s: got %v, want a stream %v", name, err, want)
		}
	}
}
