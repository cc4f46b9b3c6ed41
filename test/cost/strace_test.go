//go:build linux && cgo

package cost

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// findStrace returns its path, or none where it is missing or may not trace.
func findStrace(t *testing.T) string {
	path, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(path, "-o", os.DevNull, "true").Run()
	}
	if err != nil && os.Getenv("TEST_STRACE") == "required" {
		t.Fatalf("strace: %v", err)
	}
	if err != nil {
		return ""
	}
	return path
}

// ofGo are the calls of Go's scheduler, memory and signals, which depend on when its threads wake.
var ofGo = regexp.MustCompile(`^(futex|nanosleep|clock_nanosleep|epoll_\w+|sched_\w+|tgkill|rt_sig\w+|sigaltstack|` +
	`madvise|mmap|munmap|mprotect|clone3?|gettid|getpid|set_robust_list|rseq|exit|restart_syscall|eventfd2|prctl)$`)

var straceLine = regexp.MustCompile(`^(\d+) +(\w+)\(`)

// traced returns how many system calls the program makes, without those of the commands that it runs.
func (b *bench) traced(u unit, dir string, n int) float64 {
	log, program := filepath.Join(filepath.Dir(dir), "strace"), b.binary
	script := filepath.Join(filepath.Dir(dir), "traced")
	testkit.Write(b, script, "#!/bin/sh\nexec "+b.strace+" -f -o "+log+" "+program+` "$@"`+"\n")
	testkit.Must(b, os.Chmod(script, 0o700))
	b.binary = script
	defer func() { b.binary = program }()
	u.run(b, dir, n)
	first, other, calls := "", map[string]bool{}, 0
	for line := range strings.Lines(testkit.Contents(b, log)) {
		m := straceLine.FindStringSubmatch(line)
		switch {
		case m == nil || other[m[1]]:
		case m[2] == "execve" && first == "":
			first = m[1]
		case m[2] == "execve":
			other[m[1]] = true // from here on it is the command
		case !ofGo.MatchString(m[2]):
			calls++
		}
	}
	return float64(calls)
}
