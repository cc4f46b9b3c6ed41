package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// peakRuns is how many runs of each command are watched for their memory.
const peakRuns = 10

// peaks is each command's largest resident set, in KiB, 0 where the system has no /proc, or where it says nothing. These runs are not timed.
func (g group) peaks(ctx context.Context, devNull *os.File) ([]int64, error) {
	peaks := make([]int64, len(g.commands))
	if g.unwatched {
		return peaks, nil
	}
	for range peakRuns {
		for i, c := range g.commands {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			peak, err := c.peak(devNull)
			if err != nil {
				return nil, err
			}
			peaks[i] = max(peaks[i], peak)
		}
	}
	return peaks, nil
}

// peak reads the kernel's high-water mark until the process is gone. The rusage of Wait would be too high: there
// Linux counts the memory shared with the parent between fork and exec, which is this program's own.
func (c command) peak(devNull *os.File) (int64, error) {
	cmd := c.prepare(devNull, devNull)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", c.label, err)
	}
	peak := watch(cmd)
	return peak, c.ended(cmd.Wait())
}

func watch(cmd *exec.Cmd) int64 {
	path := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
	var peak int64
	for {
		status, err := os.ReadFile(path)
		now, ok := statusLine(status, "VmHWM")
		if err != nil || !ok {
			return peak
		}
		peak = max(peak, now)
	}
}

// statusLine finds a number of KiB in a /proc/PID/status. A process that has ended has none.
func statusLine(status []byte, name string) (kib int64, ok bool) {
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte(name+":")); found {
			number, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
			kib, err := strconv.ParseInt(string(number), 10, 64)
			return kib, err == nil
		}
	}
	return 0, false
}
