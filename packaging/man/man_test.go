package man_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/packaging/man"
)

var update = flag.Bool("update", false, "write the pages anew")

const docs = "../../docs"

// made returns what each file should hold, by its path.
func made(t *testing.T) map[string]string {
	t.Helper()
	commands, err := cli.Commands()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := policies.Schema()
	if err != nil {
		t.Fatal(err)
	}
	files, err := man.Pages(&man.Sources{Commands: commands, Schema: schema, Docs: docs})
	if err != nil {
		t.Fatal(err)
	}
	files[filepath.Join(docs, "reference.md")] = man.Reference(commands)
	return files
}

// The pages in the tree are what the commands and the docs say. The date of a page is that of its last change.
func TestPagesAreNotStale(t *testing.T) {
	today := time.Now().UTC().Format("January 2, 2006")
	for path, want := range made(t) {
		text, err := os.ReadFile(path)
		if err != nil && !(*update && errors.Is(err, fs.ErrNotExist)) {
			t.Error(err)
			continue
		}
		first, rest, _ := strings.Cut(string(text), "\n")
		isPage := strings.HasPrefix(want, ".Dd\n")
		got := string(text)
		if isPage && strings.HasPrefix(first, ".Dd ") {
			got = ".Dd\n" + rest
		}
		switch {
		case got == want:
		case *update:
			if isPage {
				want = strings.Replace(want, ".Dd", ".Dd "+today, 1)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s is stale: make man writes it anew", path)
		}
	}
}

// mandoc finds nothing to complain about.
func TestPagesAreGood(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		if os.Getenv("TEST_MANDOC") == "required" {
			t.Fatalf("%v, and TEST_MANDOC=required", err)
		}
		t.Skip(err)
	}
	for path := range made(t) {
		if filepath.Ext(path) == ".md" {
			continue
		}
		out, err := exec.Command(mandoc, "-T", "lint", path).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}
