//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// quickExit spares a program under the race detector the second that it sleeps before it ends.
const quickExit = "GORACE=atexit_sleep_ms=0"

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
		os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[policy.deploy]\n"), 0o600), // the policy that the pages speak of
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
	shell.Dir, shell.Env = b.dir, []string{"PATH=" + filepath.Join(b.dir, "bin"), quickExit}
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
	cmd.Dir, cmd.Env = b.dir, []string{quickExit, "RETRY_STATE_DIR=" + filepath.Join(b.dir, "state"), "RETRY_CONFIG=" + filepath.Join(b.dir, "config.toml")}
	return cmd
}

// reports are the subcommands that do nothing, to an empty journal at least. All else is given --dry-run, and a subcommand refuses that.
var reports = []string{"status", "logs", "resume", "cancel", "requeue", "doctor", "stats", "metrics", "prune", "policy", "plot", "simulate"}

// harmless leaves out what would reach beyond the test, a command, a terminal, files elsewhere, and what takes long.
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
		case slices.Contains([]string{"--tasks", "--clients"}, args[max(0, i-1)]):
			safe = append(safe, "10")
		default:
			safe = append(safe, arg)
		}
	}
	return safe
}
