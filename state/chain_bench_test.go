package state

import "testing"

// One more attempt that follows at once.
func BenchmarkRecordAndClaim(b *testing.B) {
	j := openTimed(b)
	task := inFlight(b, j)
	b.ReportAllocs()
	for b.Loop() {
		must(b, chained(j, task, exit(1), epoch))
	}
}
