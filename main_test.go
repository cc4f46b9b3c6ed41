package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestExitStatus runs the real binary: what goes on inside is tested in test/e2e.
func TestExitStatus(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "retry.exe") // Windows asks for the extension
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	var exit *exec.ExitError
	err := exec.Command(binary, "--no-state", "-n", "1", "--", "go", "no-such-command").Run()
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("got %v, want exit status 2, the command's", err)
	}
}
