//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// buildRetry compiles the program: a test's own binary also initialises what tests import.
func buildRetry(tb testing.TB) string {
	tb.Helper()
	testkit.Slow(tb, "building the program takes seconds")
	binary := filepath.Join(tb.TempDir(), "retry")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		tb.Fatalf("build retry: %v\n%s", err, out)
	}
	return binary
}

// initialisation is what the packages of a program allocate before main.
type initialisation struct {
	bytes, allocs int
	costliest     string // its line
}

// traceInit adds the lines of GODEBUG=inittrace=1 up:
//
//	init NAME @0.5 ms, 0.1 ms clock, 144 bytes, 3 allocs
func traceInit(t *testing.T, binary string) (sum initialisation) {
	t.Helper()
	cmd := exec.Command(binary, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("trace %s: %v\n%s", binary, err, &trace)
	}
	most := 0
	for line := range strings.Lines(trace.String()) {
		var name string
		var at, clock float64
		var bytes, allocs int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &bytes, &allocs); err != nil {
			continue
		}
		sum.bytes, sum.allocs = sum.bytes+bytes, sum.allocs+allocs
		if bytes > most {
			most, sum.costliest = bytes, strings.TrimSpace(line)
		}
	}
	return sum
}

// Packages initialise at every start, so also for a run that uses none of them. What they allocate hardly varies, as a clock would: 94 kB
// in 705 pieces on Linux, and some 0.3 ms. Of that lipgloss and what it needs take 10.5 kB in 64 pieces, and 0.05 ms. A tenth more than
// all of it is another library that builds tables, or a map of ours.
func TestPackagesInitialiseLittle(t *testing.T) {
	const maxBytes, maxAllocs = 105_500, 784
	sum := traceInit(t, buildRetry(t))
	t.Logf("%d bytes, %d allocations; the costliest: %s", sum.bytes, sum.allocs, sum.costliest)
	if sum.allocs == 0 {
		t.Error("nothing was traced")
	}
	if sum.bytes > maxBytes || sum.allocs > maxAllocs {
		t.Errorf("packages initialise with %d bytes and %d allocations, more than %d and %d; the costliest: %s",
			sum.bytes, sum.allocs, maxBytes, maxAllocs, sum.costliest)
	}
}

func BenchmarkStart(b *testing.B) {
	binary := buildRetry(b)
	b.Setenv("XDG_CONFIG_HOME", b.TempDir())
	for _, args := range []string{"--version", "--no-state -- true", "--state STATE -- true", "--state STATE -n 3 -- true"} {
		b.Run(args, func(b *testing.B) {
			args := strings.Fields(strings.ReplaceAll(args, "STATE", b.TempDir()))
			for b.Loop() {
				if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}
