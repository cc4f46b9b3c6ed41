//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// buildRetry compiles the program: a test's own binary also initialises what tests import.
func buildRetry(tb testing.TB) string {
	tb.Helper()
	binary := filepath.Join(tb.TempDir(), "retry")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		tb.Fatalf("build retry: %v\n%s", err, out)
	}
	return binary
}

// initialisation is what the packages of a program do before main.
type initialisation struct {
	clock         float64 // milliseconds
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
	trace, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	most := 0.0
	for lines := bufio.NewScanner(trace); lines.Scan(); {
		var name string
		var at, clock float64
		var bytes, allocs int
		if _, err := fmt.Sscanf(lines.Text(), "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &bytes, &allocs); err != nil {
			continue
		}
		sum.clock, sum.bytes, sum.allocs = sum.clock+clock, sum.bytes+bytes, sum.allocs+allocs
		if clock > most {
			most, sum.costliest = clock, lines.Text()
		}
	}
	if err := cmd.Wait(); err != nil || sum.allocs == 0 {
		t.Fatalf("trace %s: %v, %d allocations", binary, err, sum.allocs)
	}
	return sum
}

// Packages initialise at every start, so also for a run that uses none of them. The aim is 0.5 ms; what is counted hardly varies, and the
// best of many clocks has ten times that before it fails, also on a busy machine.
func TestPackagesInitialiseLittle(t *testing.T) {
	const maxBytes, maxAllocs, maxClock = 200_000, 1200, 5.0
	binary := buildRetry(t)
	best := traceInit(t, binary)
	for range 20 {
		if again := traceInit(t, binary); again.clock < best.clock {
			best = again
		}
	}
	t.Logf("%.2f ms, %d bytes, %d allocations; the costliest: %s", best.clock, best.bytes, best.allocs, strings.TrimSpace(best.costliest))
	if best.bytes > maxBytes || best.allocs > maxAllocs || best.clock > maxClock {
		t.Errorf("packages initialise in %.2f ms, %d bytes and %d allocations, more than %.0f, %d and %d; the costliest: %s",
			best.clock, best.bytes, best.allocs, maxClock, maxBytes, maxAllocs, best.costliest)
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
