package main

import (
	"path/filepath"
	"testing"
	"time"
)

func TestAddUp(t *testing.T) {
	const trace = "init internal/bytealg @0.004 ms, 0.002 ms clock, 0 bytes, 0 allocs\n" +
		"another line\n" +
		"init os @0.3 ms, 0.05 ms clock, 5424 bytes, 20 allocs\n" +
		"init a.b/c @1.5 ms, 1 ms clock, 16 bytes, 1 allocs\n"
	if clock, size, allocs := addUp([]byte(trace)); clock != 1052*time.Microsecond || size != 5440 || allocs != 21 {
		t.Errorf("addUp = %v, %d bytes, %d allocations", clock, size, allocs)
	}
	if clock, _, allocs := addUp(nil); clock != 0 || allocs != 0 {
		t.Errorf("addUp of nothing = %v, %d", clock, allocs)
	}
}

// Any program in Go tells what its packages do.
func TestInitialise(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "empty")
	if err := buildFloor(t.Context(), "empty", binary); err != nil {
		t.Fatal(err)
	}
	if s, err := initialise(t.Context(), binary, 2); err != nil || s.Median <= 0 || s.Median < s.P10 {
		t.Errorf("initialise = %+v, %v", s, err)
	}
	if s, err := initialise(t.Context(), "go", 1); err == nil {
		t.Errorf("initialise = %+v of a program that refuses --version", s)
	}
}
