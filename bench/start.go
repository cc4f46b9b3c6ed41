package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// start is what the packages of retry do before main, by GODEBUG=inittrace=1.
type start struct {
	Median float64 `json:"median_ms"`
	P10    float64 `json:"p10_ms"`
	Bytes  int     `json:"bytes"`
	Allocs int     `json:"allocs"`
}

// initialise asks a program so often.
func initialise(ctx context.Context, program string, runs int) (*start, error) {
	fmt.Fprintln(os.Stderr, "bench: start: package initialisation")
	var clocks []time.Duration
	var s start
	for range runs {
		cmd := exec.CommandContext(ctx, program, "--version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("trace the start: %w", err)
		}
		var clock time.Duration
		clock, s.Bytes, s.Allocs = addUp(trace.Bytes())
		clocks = append(clocks, clock)
	}
	s.Median, s.P10 = ms(median(clocks)), ms(percentile(clocks, 10))
	return &s, nil
}

// addUp adds the lines of a trace:
//
//	init NAME @0.5 ms, 0.1 ms clock, 144 bytes, 3 allocs
func addUp(trace []byte) (clock time.Duration, size, allocs int) {
	for line := range bytes.Lines(trace) {
		var name string
		var at, took float64
		var b, a int
		if _, err := fmt.Sscanf(string(line), "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &took, &b, &a); err == nil {
			clock, size, allocs = clock+time.Duration(took*float64(time.Millisecond)), size+b, allocs+a
		}
	}
	return clock, size, allocs
}
