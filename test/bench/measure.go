package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// measure runs each command once a round, in a random order, so that a busy moment of the machine affects all alike.
func (g group) measure(ctx context.Context, dir string) error {
	fmt.Fprintln(os.Stderr, "bench:", g.title)
	said, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	defer said.Close()
	warmups := 1 + min(4, g.runs/10) // rounds that are not counted
	for round := range warmups + g.runs {
		for _, i := range rand.Perm(len(g.commands)) {
			if err := cmp.Or(ctx.Err(), g.commands[i].time(g.atOnce, said, round >= warmups)); err != nil {
				text, _ := os.ReadFile(said.Name())
				return fmt.Errorf("run %s: %w\n%s", g.commands[i].label, err, text[max(0, len(text)-1000):])
			}
		}
	}
	return g.check(said.Name(), (warmups+g.runs)*g.atOnce)
}

// check wants no warning, and of processes that ran at once each one's task in their journal.
func (g group) check(said string, tasks int) error {
	if text, err := os.ReadFile(said); err != nil || bytes.Contains(text, []byte("warning:")) {
		return errors.Join(err, fmt.Errorf("measure %s: got warnings, want none:\n%s", g.name, text))
	}
	for _, c := range g.commands {
		if g.atOnce == 1 || c.state == "" || slices.Contains(c.argv, "--no-state") {
			continue
		}
		status := c.process(nil)
		status.Args = []string{c.argv[0], "status", "--json", "--limit", "0"}
		out, err := status.Output()
		if got := bytes.Count(out, []byte(`"SUCCEEDED"`)); err != nil || got != tasks {
			return errors.Join(err, fmt.Errorf("read the journal of %s: got %d succeeded tasks, want %d", c.label, got, tasks))
		}
	}
	return nil
}

// time runs processes of the command together: wall is the time until all were reaped, cpu the sum of theirs.
func (c *command) time(atOnce int, said io.Writer, counts bool) error {
	var cmds []*exec.Cmd
	for range atOnce {
		cmds = append(cmds, c.process(said))
	}
	var failures []error
	var cpu time.Duration
	start := time.Now()
	for _, cmd := range cmds {
		if err := cmd.Start(); err != nil {
			return err // the caller names the command
		}
	}
	for _, cmd := range cmds {
		_ = cmd.Wait() // the exit code is compared below
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if got := cmd.ProcessState.ExitCode(); got != c.exit {
			failures = append(failures, fmt.Errorf("got exit code %d, want %d", got, c.exit))
		}
	}
	wall := time.Since(start)
	if counts {
		c.wall, c.cpu = append(c.wall, wall.Seconds()*1000), append(c.cpu, cpu.Seconds()*1000)
	}
	return errors.Join(failures...)
}

// process makes one process of the command, without the caller's settings of retry, without a config file or a CI.
func (c *command) process(stderr io.Writer) *exec.Cmd {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Stderr = stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "RETRY_") })
	cmd.Env = append(cmd.Env, "GITHUB_ACTIONS=", "GITLAB_CI=", "XDG_CONFIG_HOME=/nonexistent", "RETRY_STATE_DIR="+c.state)
	return cmd
}

// waiting prints the private memory (without pages of files) of processes that wait for an hour. Only Linux tells it.
func (p plan) waiting(out io.Writer, settle time.Duration) error {
	fmt.Fprintln(os.Stderr, "bench: memory while waiting")
	g := group{name: "waiting"}
	g.add(p, "debian", "Debian's retry --delay=3600 -- false", "")
	g.add(p, "retry", "retry -b constant:1h -- false", "≤ 4 MiB")
	g.add(p, "retry", "retry --no-state -b constant:1h -- false", "≤ 4 MiB")
	var waiting []*exec.Cmd
	for _, c := range g.commands {
		cmd := c.process(nil)
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("run %s: %w", c.label, err)
		}
		defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
		waiting = append(waiting, cmd)
	}
	time.Sleep(settle)
	fmt.Fprint(out, "\n| Private memory while waiting (RssAnon) | MiB | to reach |\n|---|--:|--:|\n")
	for i, c := range g.commands {
		var kib float64
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", waiting[i].Process.Pid))
		_, rest, _ := strings.Cut(string(status), "RssAnon:")
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			return fmt.Errorf("read the memory of %s, which should wait: %w", c.label, err)
		}
		fmt.Fprintf(out, "| `%s` | %.1f | %s |\n", c.label, kib/1024, cmp.Or(c.reach, "–"))
	}
	return nil
}
