package cli

import (
	"os"
	"testing"

	"github.com/10f93571/retry/cli/session"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// names are what is in a directory.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func testProcess(environ ...string) *Process {
	return &Process{Host: session.Host{Environ: environ, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}}
}
