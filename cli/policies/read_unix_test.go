//go:build unix

package policies

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

func TestReadFindsNothing(t *testing.T) {
	dir := t.TempDir()
	testkit.Write(t, filepath.Join(dir, "file"), "")
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "none", "none"),
		filepath.Join(dir, "file", "below")} {
		if _, _, err := Read(path); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want ErrAbsent with the path", path, err)
		}
	}
}

// What is no config file is refused at once, without a wait for whoever might write to it.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	pipe, large, closed := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "closed")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Write(t, large, "#"+strings.Repeat("x", maxFileSize))
	testkit.Write(t, closed, "")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "is a directory", pipe: "not a regular file", large: "larger than",
		closed: "permission denied", "/dev/zero": "not a regular file"} {
		if path == closed && os.Geteuid() == 0 {
			continue // root may read it
		}
		_, _, err := Read(path)
		if err == nil || errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%s: got %v, want %q and a hint", path, err, want)
		}
	}
}

func TestReadTakesNull(t *testing.T) {
	file, mistakes, err := Read(os.DevNull)
	if err != nil || mistakes != nil || file.Names() != nil {
		t.Errorf("got %v, %v, %v, want a file without policies", file, mistakes, err)
	}
}

func TestReadAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	testkit.Write(t, path, "#"+strings.Repeat("x", maxFileSize-13)+"\n[policy.a]\n")
	file, mistakes, err := Read(path)
	if err != nil || mistakes != nil || file.Place("policy", "a") != path+":2" {
		t.Errorf("got %v, %v, %v, want the policy at line 2", file, mistakes, err)
	}
}
