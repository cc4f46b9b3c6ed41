package sqlite

import (
	"testing"
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
