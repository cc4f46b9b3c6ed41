//go:build unix

package e2e

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

	"github.com/10f93571/retry/internal/testkit"
)

// quickExit spares a program under the race detector the second that it sleeps before it ends.
const quickExit = "GORACE=atexit_sleep_ms=0"

// sandbox runs examples where they can do no harm: a shell parses them, and the only program in its PATH is a retry
// that records its arguments.
type sandbox struct {
	dir, retry, recorded string
	tried                int
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &sandbox{dir: dir, retry: filepath.Join(dir, "real", "retry"), recorded: filepath.Join(dir, "given")}
	stub := "#!/bin/sh\nprintf '%s\\0' \"$@\" END >>" + b.recorded + "\n"
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "real"), 0o700), os.Symlink(self, b.retry),
		os.Mkdir(filepath.Join(dir, "bin"), 0o700),
		os.MkdirAll(filepath.Join(dir, ".config", "fish", "completions"), 0o700), // where a page writes a file
		os.WriteFile(filepath.Join(dir, "bin", "retry"), []byte(stub), 0o700),
		os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[policy.deploy]\n"), 0o600), // the policy that the pages speak of
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// checkLine returns the errors of a real retry for the command lines in a line of shell.
func (b *sandbox) checkLine(line string) error {
	lists, err := b.arguments(line)
	if err != nil {
		return err
	}
	var failures []error
	for _, args := range lists {
		failures = append(failures, b.parse(args))
	}
	return errors.Join(failures...)
}

// arguments returns the arguments of each retry in a line of shell.
func (b *sandbox) arguments(line string) (lists [][]string, err error) {
	_ = os.Remove(b.recorded)
	shell := exec.Command("/bin/sh", "-c", line)
	shell.Dir, shell.Env = b.dir, []string{"PATH=" + filepath.Join(b.dir, "bin"), "HOME=" + b.dir, quickExit}
	said, _ := shell.CombinedOutput() // other programs are missing
	given, err := os.ReadFile(b.recorded)
	if err != nil {
		return nil, fmt.Errorf("the shell ran no retry: %s", said)
	}
	for list := range strings.SplitSeq(strings.TrimSuffix(string(given), "END\x00"), "END\x00") {
		lists = append(lists, strings.Split(strings.TrimSuffix(list, "\x00"), "\x00"))
	}
	return lists, nil
}

// parse has retry parse arguments, without running a command. There is no journal, so a missing task is no error.
func (b *sandbox) parse(args []string) error {
	said, err := b.command(harmless(args)...).CombinedOutput()
	if err != nil && !strings.Contains(string(said), "no such task") {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// command is a real retry with a journal of its own.
func (b *sandbox) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.retry, args...)
	cmd.Dir, cmd.Env = b.dir, []string{quickExit, "RETRY_STATE_DIR=" + filepath.Join(b.dir, "state"), "RETRY_CONFIG=" + filepath.Join(b.dir, "config.toml")}
	return cmd
}

// reports are the subcommands that change nothing in an empty journal. Everything else gets --dry-run, which they
// refuse.
var reports = []string{"status", "logs", "resume", "cancel", "requeue", "doctor", "stats", "metrics", "prune", "policy",
	"plot", "simulate", "version", "completion"}

// harmless replaces flags that would run a command, need a terminal, write files elsewhere, or take long.
func harmless(args []string) []string {
	if args[0] == "wait" { // nothing that it waits for is here
		return append([]string{"wait", "--gone"}, args[1:]...)
	}
	switch args[0] {
	case "add": // help is printed where the flags are right
		return slices.Concat(args[:1], []string{"--help"}, args[1:])
	case "worker", "serve", "token":
		return append(slices.Clone(args), "--help")
	}
	if !slices.Contains(reports, args[0]) {
		return append([]string{"--dry-run"}, args...)
	}
	var safe []string
	for i, arg := range args {
		switch {
		case arg == "--watch":
		case args[max(0, i-1)] == "--textfile":
			safe = append(safe, "retry.prom")
		case slices.Contains([]string{"--tasks", "--clients"}, args[max(0, i-1)]):
			safe = append(safe, "10")
		default:
			safe = append(safe, arg)
		}
	}
	return safe
}

// An example stands alone in an indented line, as a shell, a crontab or a unit would have it, or in the text between
// backticks. There, `retry cancel` alone is but the name of the command, and what ends in <Tab> is not a whole line.
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
		if i%2 == 1 && exampleSpan.MatchString(text) && !strings.Contains(text, "<Tab>") {
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
		"`retry` does `retry -- c`, and `retry doctor --json` more than `retry\ndoctor`; `a`retry b c`d`, `retry\n-q -- e`, `retry p<Tab> x`.\n" +
		"retry is no example here.\n"
	want := []string{"retry -- a # why", "retry status", "retry -q -- b", "retry resume --all", "retry stats", "retry -- c", "retry doctor --json", "retry -q -- e"}
	if got := examples(page); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Every example in the docs is a valid command line.
func TestDocsAreAccepted(t *testing.T) {
	testkit.Slow(t, "it runs every example of the docs")
	box := newSandbox(t)
	for _, path := range pages(t) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range examples(string(page)) {
			if err := box.checkLine(line); err != nil {
				t.Errorf("%s: %s: got error %v, want none", path, line, err)
			}
			box.tried++
		}
	}
	if box.tried < 50 {
		t.Errorf("got %d examples, want more", box.tried)
	}
}

// The check of examples finds wrong ones.
func TestDocsCanBeRefused(t *testing.T) {
	box := newSandbox(t)
	for _, line := range []string{
		"retry -q -b soon -- sync", "retry --no-such-flag -- a", "retry -- a | retry -n x -- b", "retry status --since tomorrow", "retry add --no-such -- a", "retry worker --concurrency", "retry resume", "retry nightly.log |",
	} {
		if box.checkLine(line) == nil {
			t.Errorf("%s: got no error, want one", line)
		}
	}
	for _, line := range []string{"retry -q -b constant:20s -- sync", "retry logs nightly # no such task", "retry -- a | retry -- b"} {
		if err := box.checkLine(line); err != nil {
			t.Errorf("%s: got error %v, want none", line, err)
		}
	}
}

// A crontab job is silent when it succeeds, and mails the output of its last attempt when it fails. In both cases retry
// logs shows that output.
func TestCronLinesLeaveATrace(t *testing.T) {
	testkit.Slow(t, "it runs every crontab line of the docs")
	box := newSandbox(t)
	for _, path := range []string{"README.md", filepath.Join("docs", "cron.md")} {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range examples(string(page)) {
			args, err := box.arguments(line)
			if err != nil {
				t.Fatal(err)
			}
			if id := slices.Index(args[0], "--id"); id >= 0 && slices.Contains(args[0], "--if-running") {
				box.checkTrace(t, line, args[0], args[0][id+1])
				box.tried++
			}
		}
	}
	if box.tried < 3 {
		t.Errorf("got %d jobs, want more", box.tried)
	}
}

func (b *sandbox) checkTrace(t *testing.T, line string, args []string, name string) {
	t.Helper()
	flags := args[:slices.Index(args, "--")]
	for exit, mail := range []string{"", "said\n"} {
		job := slices.Concat(flags, []string{"-n", "1", "--", "/bin/sh", "-c", fmt.Sprintf("echo said; exit %d", exit)})
		cron := b.command(job...)
		if said, _ := cron.Output(); string(said) != mail || cron.ProcessState.ExitCode() != exit {
			t.Errorf("%s\nwith exit %d: got the mail %q, %v, want %q", line, exit, said, cron.ProcessState, mail)
		}
		if said, err := b.command("logs", name).Output(); err != nil || !strings.Contains(string(said), "said") {
			t.Errorf("%s\nafter exit %d: retry logs %s: got %q, error %v, want what it said", line, exit, name, said, err)
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
