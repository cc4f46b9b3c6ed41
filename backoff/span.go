package backoff

import (
	"math"
	"time"
)

// Max is where every delay saturates.
const Max = 365 * 24 * time.Hour

const (
	unlimited = time.Duration(math.MaxInt64) // the cap of a curve without one
	far       = 2 * Max                      // beyond Max lengths are only compared: enough, and sums of a few can't overflow
)

// span is an interval of delays. Its width is kept rather than its end, so that it survives a move to the cap.
type span struct{ least, width time.Duration }

func between(a, b time.Duration) span { return span{min(a, b), max(a, b) - min(a, b)} }

func (sp span) most() time.Duration { return sp.least + sp.width }

// under moves the whole span down until it ends at the limit: cutting it off there would clump delays at the cap.
// What still reaches past Max is cut.
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
	return sp.least + min(times(sp.width, unit(share)), sp.width)
}

// times is d·k to the nearest nanosecond, at most far. It wants d ≥ 0 and k ≥ 0.
func times(d time.Duration, k float64) time.Duration {
	product := math.Round(float64(d) * k)
	if !(product < float64(far)) { // an overflow and NaN (0·∞) end here too
		if d == 0 {
			return 0
		}
		return far
	}
	return time.Duration(product)
}

// seconds is a count of seconds as a delay, at most Max.
func seconds(count float64) time.Duration { return min(times(time.Second, count), Max) }

// unit forces x into [0, 1]: a caller's bad random number must not turn into a bad delay.
func unit(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

func (c Chance) random() float64 {
	if c.Rand == nil {
		return 0.5
	}
	return unit(c.Rand())
}
