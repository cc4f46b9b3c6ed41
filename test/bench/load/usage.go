package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"time"
)

// usage is the processor time that a system has taken so far.
type usage struct{ worker, server time.Duration }

// used reads the processor time of a system's processes. Only Linux tells it: elsewhere it is always 0.
func used(s System) (u usage, err error) {
	worker, server := s.Processes()
	if u.worker, err = ProcessorTime(worker); err != nil {
		return u, err
	}
	u.server, err = ProcessorTime(server)
	return u, err
}

// since are the figures of what a system has used since before, per attempt.
func (u usage) since(before usage, attempts int) (numbers []Number) {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(attempts) }
	if u.worker > before.worker {
		numbers = append(numbers, Number{Name: processorTime, Unit: "µs", Value: each(u.worker - before.worker)})
	}
	if u.server > before.server {
		numbers = append(numbers, Number{Name: "server's", Unit: "µs", Value: each(u.server - before.server)})
	}
	return numbers
}

// tick is the unit of processor times in /proc: USER_HZ is 100 on every architecture that Go has.
const tick = 10 * time.Millisecond

// ProcessorTime is the user and system time of a process, of its children that were reaped and of those that live.
// PostgreSQL has a child for each connection. Without a process, and on other systems than Linux, it is 0.
func ProcessorTime(pid int) (time.Duration, error) {
	if pid == 0 || runtime.GOOS != "linux" {
		return 0, nil
	}
	_, total, err := processStat(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range all {
		if parent, ticks, err := processStat(path); err == nil && parent == pid { // some have ended meanwhile
			total += ticks
		}
	}
	return total, nil
}

// processStat reads a process's parent, and its processor time with that of its reaped children.
func processStat(path string) (parent int, total time.Duration, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	rest := string(text[bytes.LastIndexByte(text, ')')+1:]) // a command's name may hold anything
	var state string
	var skipped [9]int64
	var times [4]int64 // utime, stime, cutime, cstime
	args := []any{&state, &parent}
	for i := range skipped {
		args = append(args, &skipped[i])
	}
	for i := range times {
		args = append(args, &times[i])
	}
	_, err = fmt.Sscan(rest, args...)
	return parent, time.Duration(times[0]+times[1]+times[2]+times[3]) * tick, err
}
