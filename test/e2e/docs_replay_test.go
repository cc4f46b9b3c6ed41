//go:build unix

package e2e

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

var prompted = regexp.MustCompile(`^( {4,8})\$ (retry .*)$`)

// replayed is a page in whose indented blocks what follows a command line, up to the next one or the end of the block, is what it says now.
func replayed(page string, says func(line string) string) string {
	var out []string
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		m := prompted.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		out = append(out, indented(m[1], says(m[2]))...)
		after := i + 1
		for ; i+1 < len(lines) && !prompted.MatchString(lines[i+1]) && (lines[i+1] == "" || strings.HasPrefix(lines[i+1], m[1])); i++ {
			if lines[i+1] != "" {
				after = i + 2
			}
		}
		out = append(out, lines[after:i+1]...) // the empty ones
	}
	return strings.Join(out, "\n")
}

func indented(indent, text string) (lines []string) {
	if text == "" {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line != "" {
			line = indent + line
		}
		lines = append(lines, line)
	}
	return lines
}

func TestReplayed(t *testing.T) {
	const page = "text\n\n    $ retry a\n    one\n\n      two\n\n- item:\n\n        $ retry b\n        three\n        $ retry c\n        four\ntext\n"
	want := strings.NewReplacer("one\n\n      two", "<retry a>\n\n      2", "three", "<retry b>\n\n          2", "four", "<retry c>\n\n          2").Replace(page)
	if got := replayed(page, func(line string) string { return "<" + line + ">\n\n  2\n" }); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var update = flag.Bool("update", false, "write what the pages show anew")

// The pages show what retry prints.
func TestPagesShowWhatRetryPrints(t *testing.T) {
	testkit.Slow(t, "it runs every example that shows output")
	bench, tried := newDocsBench(t), 0
	for _, path := range append(policyFiles(t), filepath.Join("docs", "conditions.md")) {
		page := readPage(t, path)
		shown := replayed(page, func(line string) string {
			tried++
			return bench.says(t, line)
		})
		sameOrUpdated(t, path, page, shown)
	}
	if tried < 15 {
		t.Errorf("only %d command lines were tried", tried)
	}
}

// sameOrUpdated compares a file with what it should be, or makes it so.
func sameOrUpdated(t *testing.T, path, is, want string) {
	t.Helper()
	if is == want {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(a), len(b))-1 && a[i] == b[i] {
		i++
	}
	t.Errorf("%s:%d: has %.200q and should have %.200q: look at it, then run go test -run %s -update .", path, i+1, a[i], b[i], t.Name())
}

// says returns what a real retry prints for the command line.
func (b *docsBench) says(t *testing.T, line string) string {
	t.Helper()
	lists, err := b.taken(line)
	if err != nil || len(lists) != 1 {
		t.Fatalf("%s: %v, %v", line, lists, err)
	}
	said, err := b.command(lists[0]...).CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return strings.TrimRight(string(said), "\n")
}
