package backoff

import (
	"math"
	"time"

	"pgregory.net/rapid"
)

// justUnder is the largest number that a generator of [0, 1) can give.
var justUnder = math.Nextafter(1, 0)

// parse is Parse for specs that are right.
func parse(t rapid.TB, curve, jitter string) Spec {
	t.Helper()
	s, err := Parse(curve, jitter)
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", curve, jitter, err)
	}
	return s
}

// sec is x seconds to the nanosecond.
func sec(x float64) time.Duration { return time.Duration(math.Round(x * 1e9)) }

// anyDuration draws durations of every order of magnitude up to most.
func anyDuration(most time.Duration) *rapid.Generator[time.Duration] {
	upTo := func(d time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.Int64Range(0, int64(min(d, most))), func(n int64) time.Duration { return time.Duration(n) })
	}
	return rapid.OneOf(upTo(time.Second), upTo(time.Hour), upTo(most))
}
