//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	flags := args[:slices.Index(args, "--"):slices.Index(args, "--")]
	for exit, mail := range []string{"", "said\n"} {
		job := append(flags, "-n", "1", "--", "/bin/sh", "-c", fmt.Sprintf("echo said; exit %d", exit))
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

// docsBench tries examples where they can do no harm: a shell takes them apart, with a retry in its PATH that only writes down what it
// was given, and nothing else.
type docsBench struct {
	dir, retry, given string
	tried             int
}

func newDocsBench(t *testing.T) *docsBench {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &docsBench{dir: dir, retry: filepath.Join(dir, "real", "retry"), given: filepath.Join(dir, "given")}
	stub := "#!/bin/sh\nprintf '%s\\0' \"$@\" END >>" + b.given + "\n"
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "real"), 0o700), os.Symlink(self, b.retry),
		os.Mkdir(filepath.Join(dir, "bin"), 0o700), os.WriteFile(filepath.Join(dir, "bin", "retry"), []byte(stub), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// accepted returns what a real retry has against one of the command lines in a line of shell.
func (b *docsBench) accepted(line string) error {
	lists, err := b.taken(line)
	if err != nil {
		return err
	}
	var failures []error
	for _, args := range lists {
		failures = append(failures, b.parsed(args))
	}
	return errors.Join(failures...)
}

// taken returns the arguments of each retry in a line of shell.
func (b *docsBench) taken(line string) (lists [][]string, err error) {
	_ = os.Remove(b.given)
	shell := exec.Command("/bin/sh", "-c", line)
	shell.Dir, shell.Env = b.dir, []string{"PATH=" + filepath.Join(b.dir, "bin")}
	said, _ := shell.CombinedOutput() // other programs are missing
	given, err := os.ReadFile(b.given)
	if err != nil {
		return nil, fmt.Errorf("the shell ran no retry: %s", said)
	}
	for list := range strings.SplitSeq(strings.TrimSuffix(string(given), "END\x00"), "END\x00") {
		lists = append(lists, strings.Split(strings.TrimSuffix(list, "\x00"), "\x00"))
	}
	return lists, nil
}

// parsed has retry read arguments without a command running. There is no journal, so that it is right not to find a task.
func (b *docsBench) parsed(args []string) error {
	said, err := b.command(harmless(args)...).CombinedOutput()
	if err != nil && !strings.Contains(string(said), "no such task") {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// command is a real retry with a journal of its own.
func (b *docsBench) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.retry, args...)
	cmd.Dir, cmd.Env = b.dir, []string{"RETRY_STATE_DIR=" + filepath.Join(b.dir, "state")}
	return cmd
}

// reports are the subcommands that do nothing to an empty journal. All else is given --dry-run, and a subcommand refuses that.
var reports = []string{"status", "logs", "resume", "cancel", "requeue", "doctor", "stats", "metrics", "prune"}

// harmless leaves out what would reach beyond the test: a command, a terminal, files elsewhere.
func harmless(args []string) []string {
	if !slices.Contains(reports, args[0]) {
		return append([]string{"--dry-run"}, args...)
	}
	var safe []string
	for i, arg := range args {
		switch {
		case arg == "--watch":
		case args[max(0, i-1)] == "--textfile":
			safe = append(safe, "retry.prom")
		default:
			safe = append(safe, arg)
		}
	}
	return safe
}
