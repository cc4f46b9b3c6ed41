package backoff

import (
	"math"
	"time"
)

// Max is where every delay saturates.
const Max = 365 * 24 * time.Hour

const (
	unlimited = time.Duration(math.MaxInt64) // the cap of a curve without one
	beyondMax = 2 * Max                      // longer delays are only compared with Max, and sums of a few of these can't overflow
)

// span is an interval of delays. It has a width rather than an end, as the width stays when the span moves to a cap.
type span struct{ least, width time.Duration }

func between(a, b time.Duration) span { return span{min(a, b), max(a, b) - min(a, b)} }

func (sp span) most() time.Duration { return sp.least + sp.width }

// under moves the whole span down until it ends at the limit: if it were cut off, many delays would equal the cap. It is cut off at Max.
func (sp span) under(limit time.Duration) span {
	if sp.most() > limit {
		sp.width = min(sp.width, limit)
		sp.least = limit - sp.width
	}
	sp.least = min(sp.least, Max)
	sp.width = min(sp.width, Max-sp.least)
	return sp
}

// at is the delay at a share of the span; 0 is its least, 1 its most.
func (sp span) at(share float64) time.Duration {
	return sp.least + min(times(sp.width, clamp(share)), sp.width)
}

// times is d·k to the nearest nanosecond, at most beyondMax, for d ≥ 0 and k ≥ 0.
func times(d time.Duration, k float64) time.Duration {
	product := math.Round(float64(d) * k)
	if !(product < float64(beyondMax)) { // an overflow and NaN (0·∞) end here too
		if d == 0 {
			return 0
		}
		return beyondMax
	}
	return time.Duration(product)
}

// seconds makes a delay of a number of seconds, at most Max.
func seconds(count float64) time.Duration { return min(times(time.Second, count), Max) }

// clamp forces x into [0, 1], so that a bad random number of a caller does not make a bad delay.
func clamp(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

func (c Chance) random() float64 {
	if c.Rand == nil {
		return 0.5
	}
	return clamp(c.Rand())
}
