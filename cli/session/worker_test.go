package session

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// The limit moves with what needs memory, and comes back. With too low a one the collector would run all the time.
func TestBoundMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(math.MaxInt64)
	boundMemory()
	limit := func() int64 { runtime.GC(); return debug.SetMemoryLimit(-1) }
	before := limit() // goroutines of other tests may be left
	if before < memoryLimit {
		t.Errorf("got a limit of %d bytes, want at least %d", before, memoryLimit)
	}
	const clients = 10_000
	end := make(chan struct{})
	for range clients {
		go func() { <-end }()
	}
	testkit.Eventually(t, "a higher limit", func() bool { return limit() > clients*goroutineMemory })
	close(end)
	testkit.Eventually(t, "about the limit from before", func() bool { return limit() <= before+before/4 })
}
