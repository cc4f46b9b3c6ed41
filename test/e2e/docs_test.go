//go:build unix

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// An example stands alone in an indented line, as a shell, a crontab or a unit would have it, or in the text between backticks. There,
// `retry cancel` alone is but the name of the command.
var (
	exampleLine = regexp.MustCompile(`^ {4}(?:\$ |ExecStart=\S*/|@\w+\s+|(?:[\d*/,-]+\s+){5})?(retry\s.*)$`)
	exampleSpan = regexp.MustCompile(`^retry\s+\S+\s`)
)

// examples returns the command lines of a page.
func examples(page string) (lines []string) {
	for paragraph := range strings.SplitSeq(page, "\n\n") {
		if !strings.HasPrefix(paragraph, "    ") {
			lines = append(lines, spans(paragraph)...)
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			if m := exampleLine.FindStringSubmatch(line); m != nil {
				lines = append(lines, m[1])
			}
		}
	}
	return lines
}

// spans returns the examples of a paragraph of text; one may go on in the next line.
func spans(paragraph string) (found []string) {
	for i, text := range strings.Split(paragraph, "`") {
		if i%2 == 1 && exampleSpan.MatchString(text) {
			found = append(found, strings.Join(strings.Fields(text), " "))
		}
	}
	return found
}

func TestExamples(t *testing.T) {
	const page = "text\n\n" +
		"    retry -- a # why\n" +
		"    $ retry status\n    retry: a line of its output\n" +
		"    */10 * * 1-5 1,2 retry -q -- b\n" +
		"    @reboot      retry resume --all\n\n" +
		"    ExecStart=/usr/local/bin/retry stats\n\n" +
		"`retry` does `retry -- c`, and `retry doctor --json` more than `retry\ndoctor`; `a`retry b c`d`, `retry\n-q -- e`.\n" +
		"retry is no example here.\n"
	want := []string{"retry -- a # why", "retry status", "retry -q -- b", "retry resume --all", "retry stats", "retry -- c", "retry doctor --json", "retry -q -- e"}
	if got := examples(page); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What the pages tell people to type is accepted.
func TestDocsAreAccepted(t *testing.T) {
	testkit.Slow(t, "it runs every example of the docs")
	bench := newDocsBench(t)
	for _, path := range pages(t) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range examples(string(page)) {
			if err := bench.accepted(line); err != nil {
				t.Errorf("%s: %s\n%v", path, line, err)
			}
			bench.tried++
		}
	}
	if bench.tried < 50 {
		t.Errorf("only %d examples were found", bench.tried)
	}
}

// A test that accepted everything would not find what it is for.
func TestDocsCanBeRefused(t *testing.T) {
	bench := newDocsBench(t)
	for _, line := range []string{
		"retry -q -b 20s -- sync", "retry --no-such-flag -- a", "retry -- a | retry -n x -- b", "retry status --since tomorrow", "retry resume", "retry nightly.log |",
	} {
		if bench.accepted(line) == nil {
			t.Errorf("%s was accepted", line)
		}
	}
	for _, line := range []string{"retry -q -b constant:20s -- sync", "retry logs nightly # no such task", "retry -- a | retry -- b"} {
		if err := bench.accepted(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Each job of a crontab is silent while all is well, and mails what its last attempt wrote when it has failed; in both cases the journal
// can tell it, too.
func TestCronLinesLeaveATrace(t *testing.T) {
	testkit.Slow(t, "it runs every crontab line of the docs")
	bench := newDocsBench(t)
	for _, path := range []string{"README.md", filepath.Join("docs", "cron.md")} {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range examples(string(page)) {
			args, err := bench.taken(line)
			if err != nil {
				t.Fatal(err)
			}
			if id := slices.Index(args[0], "--id"); id >= 0 && slices.Contains(args[0], "--if-running") {
				bench.checkTrace(t, line, args[0], args[0][id+1])
				bench.tried++
			}
		}
	}
	if bench.tried < 3 {
		t.Errorf("only %d jobs were found", bench.tried)
	}
}

func (b *docsBench) checkTrace(t *testing.T, line string, args []string, name string) {
	t.Helper()
	flags := args[:slices.Index(args, "--")]
	for exit, mail := range []string{"", "said\n"} {
		job := slices.Concat(flags, []string{"-n", "1", "--", "/bin/sh", "-c", fmt.Sprintf("echo said; exit %d", exit)})
		cron := b.command(job...)
		if said, _ := cron.Output(); string(said) != mail || cron.ProcessState.ExitCode() != exit {
			t.Errorf("%s\nwith exit %d the mail is %q: %v", line, exit, said, cron.ProcessState)
		}
		if said, err := b.command("logs", name).Output(); err != nil || !strings.Contains(string(said), "said") {
			t.Errorf("%s\nafter exit %d retry logs %s: %q, %v", line, exit, name, said, err)
		}
	}
}

// pages are the README and what lies in docs.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(paths, "README.md")
}
