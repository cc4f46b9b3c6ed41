package plot

import (
	"math"
	"slices"
	"time"
)

// Axis places times between 0 and 1. A logarithmic one begins above 0.
type Axis struct {
	Least, Most time.Duration
	Log         bool
}

// Place is where a time stands, from 0 to 1; what is beyond an end stands there.
func (a Axis) Place(t time.Duration) float64 {
	if a.Most <= a.Least {
		return 0
	}
	share := float64(t-a.Least) / float64(a.Most-a.Least)
	if a.Log {
		share = math.Log(float64(max(t, 1))/float64(a.Least)) / math.Log(float64(a.Most)/float64(a.Least))
	}
	return min(max(share, 0), 1)
}

// Shortest is the shortest stretch of time that a picture shows the load of. A load is counted by seconds; of a few of them that would
// be one block, whatever happens in it.
func (a Axis) Shortest() time.Duration {
	if a.Most >= 20*time.Second {
		return time.Second
	}
	return min(100*time.Millisecond, max(a.Most/40, 1))
}

// Early reports whether some of the dots are before the axis begins, and so stand at its end together, though they do not come together.
func (a Axis) Early(all []Dot) bool {
	return a.Log && slices.ContainsFunc(all, func(d Dot) bool { return d.At < a.Least })
}

// At is the time that stands at a share of the axis.
func (a Axis) At(share float64) time.Duration {
	if a.Log {
		return time.Duration(float64(a.Least) * math.Pow(float64(a.Most)/float64(a.Least), share))
	}
	return a.Least + time.Duration(share*float64(a.Most-a.Least))
}

// logFrom is the ratio of the ends from which on a linear axis would press what comes first into its corner.
const logFrom = 64

// NewAxis returns an axis for times from least, the first one that matters, to most: a logarithmic one where they lie far apart.
func NewAxis(least, most time.Duration) Axis {
	if least > 0 && float64(most)/float64(least) >= logFrom {
		return Axis{Least: least, Most: most, Log: true}
	}
	return Axis{Most: max(most, 1)}
}

// Beyond is where a load that is drawn along the axis ends: with all that was counted together with the last retry.
func (a Axis) Beyond() time.Duration {
	return a.Most + min(a.Most/fine+1, math.MaxInt64-a.Most)
}

// round are the times at which people divide an axis.
var round = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day,
	2 * 365 * day, 5 * 365 * day, 10 * 365 * day, 30 * 365 * day, 100 * 365 * day,
}

const day = 24 * time.Hour

// Ticks are at most about so many round times along the axis.
func (a Axis) Ticks(atMost int) []time.Duration {
	if a.Log {
		return a.logTicks(atMost)
	}
	step := round[len(round)-1]
	for _, r := range round {
		if int(a.Most/r) <= atMost {
			step = r
			break
		}
	}
	var ticks []time.Duration
	for t := time.Duration(0); t >= 0 && t <= a.Most; t += step { // past the greatest duration it is negative
		ticks = append(ticks, t)
	}
	return ticks
}

func (a Axis) logTicks(atMost int) []time.Duration {
	var inside []time.Duration
	for _, r := range round {
		if a.Least <= r && r <= a.Most {
			inside = append(inside, r)
		}
	}
	every := max(1, (len(inside)+atMost-1)/max(1, atMost))
	var ticks []time.Duration
	for i := 0; i < len(inside); i += every {
		ticks = append(ticks, inside[i])
	}
	return ticks
}
