package backoff

import (
	"math"
	"time"
)

// phase spreads the tasks by their fixed phase u, so that their retries tile the time axis: where one wave ends, the
// next begins, with the same density. With r = d(2)/d(1) the first wait is d(1)·(½ + (r^u − 1)/(r − 1)); the wait
// before retry n ≥ 2 is d(n−1)^(1−u) · d(n)^u.
type phase struct{}

func (phase) String() string { return "phase" }

func (phase) draw(w wait, c Chance) (span, float64) {
	u := unit(c.Phase)
	if w.n == 1 {
		return span{w.d / 2, w.d}, geometric(w.d, w.curve.base(2), u)
	}
	before := w.curve.base(w.n - 1)
	if before == w.d {
		// On the flat, tasks of one phase would stay together for ever: chance parts neighbours.
		return between(times(w.d, 0.8), w.d), c.random()
	}
	share := geometric(before, w.d, u)
	if w.d < before { // the span starts at the lower end, the share was counted from the other
		share = 1 - share
	}
	return between(before, w.d), share
}

// geometric is how far a^(1−u) · b^u lies on the way from a to b: (r^u − 1)/(r − 1) for r = b/a. It is u itself, the
// linear way, where r is 1 and where one of them is 0.
func geometric(a, b time.Duration, u float64) float64 {
	r := float64(b) / float64(a)
	if !(r > 0) || r == 1 || math.IsInf(r, 1) {
		return u
	}
	return math.Expm1(u*math.Log(r)) / (r - 1) // r^u − 1 itself would lose its digits where r is near 1
}
