package sqlite

import (
	"testing"

	"github.com/10f93571/retry/task"
)

// One more attempt that follows at once.
func BenchmarkRecordAndClaim(b *testing.B) {
	j := openTimed(b)
	tk := inFlight(b, j)
	b.ReportAllocs()
	for b.Loop() {
		must(b, chained(j, tk, exit(1), epoch))
	}
}

// openTimed opens a journal in a new directory, as a run does.
func openTimed(b *testing.B) *Journal {
	b.Helper()
	j, err := Open(b.Context(), b.TempDir())
	must(b, err)
	b.Cleanup(func() { must(b, j.Close()) })
	return j
}

// Each run opens the journal once.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		j, err := Open(b.Context(), dir)
		must(b, err)
		must(b, j.Close())
	}
}

// A run that succeeds at once: its task and attempt are claimed, and synced; its end is recorded.
func BenchmarkRunOfOneAttempt(b *testing.B) {
	j := openTimed(b)
	b.ReportAllocs()
	for b.Loop() {
		tk := inFlight(b, j)
		must(b, recorded(j, tk, exit(0), task.Decision{Verdict: task.VerdictSucceeded}, epoch))
	}
}

// One more attempt, where something lies between it and the one before.
func BenchmarkRecordThenClaim(b *testing.B) {
	j := openTimed(b)
	tk := inFlight(b, j)
	b.ReportAllocs()
	for b.Loop() {
		must(b, recorded(j, tk, exit(1), retryIn(0), epoch))
		must(b, claimed(j, tk, epoch))
	}
}
