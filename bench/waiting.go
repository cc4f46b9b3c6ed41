package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// before is how many attempts the last one of those that wait has made.
const before = 2000

// settle is how long they wait before they are looked at: what a wait gives back is gone by then.
const settle = 3 * time.Second

// waiting is the memory of a process during a long delay, in KiB.
type waiting struct {
	Name     string `json:"name"`
	Command  string `json:"command"`
	Peak     int64  `json:"peak_kib"`      // VmHWM
	Resident int64  `json:"resident_kib"`  // VmRSS
	Own      int64  `json:"anonymous_kib"` // RssAnon: not the pages of the program's file
}

// waiting starts all, and looks at them when each has long been in its delay. A system without /proc gives nothing.
func (p plan) waiting(ctx context.Context) (all []waiting, err error) {
	fmt.Fprintln(os.Stderr, "bench: waiting: memory")
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return nil, nil
	}
	hour := []string{"-n", "3", "-j", "none", "-b", "constant:1h", "--", "false"}
	list := "list:" + strings.Repeat("0s,", before) + "1h"
	var started []*exec.Cmd
	defer func() { end(started) }()
	commands := group{commands: []command{
		{name: debian, label: "Debian's retry --delay=3600 -- false", argv: []string{p.debian, "--delay=3600", "--", "false"}},
		{name: "retry", label: "retry -b constant:1h -- false", argv: append([]string{p.retry}, hour...), state: p.journal("waiting")},
		{name: "no-state", label: "retry --no-state -b constant:1h -- false", argv: append([]string{p.retry, "--no-state"}, hour...)},
		{name: "long", label: fmt.Sprintf("retry, after %d attempts without delay", before), state: p.journal("waiting"),
			argv: []string{p.retry, "-n", "0", "-j", "none", "-b", list, "--", "false"}},
	}}.present().commands
	for _, c := range commands {
		cmd, err := c.intoDelay(ctx)
		if err != nil {
			return nil, err
		}
		started = append(started, cmd)
	}
	time.Sleep(settle)
	for i, c := range commands {
		all = append(all, c.look(started[i].Process.Pid))
	}
	return all, nil
}

// intoDelay starts a command, and returns when it says how long it will wait: "next in 1h", or in 3600 seconds.
func (c command) intoDelay(ctx context.Context) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = c.environment()
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.label, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", c.label, err)
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), " in 1h") || strings.Contains(lines.Text(), " 3600 seconds") {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return cmd, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("run %s: it does not wait", c.label), cmd.Wait())
}

func (c command) look(pid int) waiting {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return c.looked(status)
}

func (c command) looked(status []byte) waiting {
	w := waiting{Name: c.name, Command: c.label}
	w.Peak, _ = statusLine(status, "VmHWM")
	w.Resident, _ = statusLine(status, "VmRSS")
	w.Own, _ = statusLine(status, "RssAnon")
	return w
}

func end(started []*exec.Cmd) {
	for _, cmd := range started {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
