package chart

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
)

// Axis maps the values from Least to Most to places from 0 to 1. Times are in nanoseconds. A logarithmic axis begins
// above 0.
type Axis struct {
	Least, Most float64
	Log         bool
}

// Tick is a round value on an axis.
type Tick struct {
	Place float64 // from 0 to 1
	Label string
}

// Place is where a value stands; a value beyond an end stands at that end.
func (a Axis) Place(x float64) float64 {
	if a.Most <= a.Least {
		return 0
	}
	if a.Log {
		if x <= a.Least {
			return 0
		}
		return min(math.Log(x/a.Least)/math.Log(a.Most/a.Least), 1)
	}
	return min(max((x-a.Least)/(a.Most-a.Least), 0), 1)
}

// PlaceTime is Place of a time.
func (a Axis) PlaceTime(t time.Duration) float64 { return a.Place(float64(t)) }

// at is the time at a place.
func (a Axis) at(place float64) time.Duration {
	x := a.Least + place*(a.Most-a.Least)
	if a.Log {
		x = a.Least * math.Pow(a.Most/a.Least, place)
	}
	return duration(x)
}

func duration(ns float64) time.Duration {
	if ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// minLogRatio is the ratio of the ends of an axis of times from which it is logarithmic: a linear one would show little
// of the short times.
const minLogRatio = 64

// newTimeAxis returns an axis up to most for times of which least is the shortest that matters.
func newTimeAxis(least, most time.Duration) Axis {
	if least > 0 && float64(most)/float64(least) >= minLogRatio {
		return Axis{Least: float64(least), Most: float64(most), Log: true}
	}
	return Axis{Most: float64(max(most, 1))}
}

// maxOverBase limits an axis of delays to so many times the longest delay without jitter: a range without a bound would
// leave no room for the others.
const maxOverBase = 4

// delayAxis is the common axis for the delays of studies.
func delayAxis(studies []plot.Study) Axis {
	var least, most, longest time.Duration
	margin := time.Duration(1)
	for _, s := range studies {
		for _, r := range s.Retries {
			if r.Least == 0 {
				margin = 4 // a logarithmic axis has no 0; room below the curve shows that the range goes on
			}
			longest = max(longest, r.Base, r.Mean)
			least = shorter(shorter(least, r.Least), shorter(r.Base, r.Mean))
			most = max(most, r.Most)
		}
	}
	most = max(min(most, maxOverBase*min(longest, backoff.Max)), longest)
	return newTimeAxis(least/margin, orSecond(most))
}

// minGrowth is the ratio of a study's delays from which its retries are shown on a logarithmic axis. Delays that hardly
// grow come evenly in time, which only a linear axis shows.
const minGrowth = 8

// timeAxis is the common axis for the retries of studies.
func timeAxis(studies []plot.Study) Axis {
	var first, shortest, longest time.Duration
	grows := false
	for _, s := range studies {
		var least, most time.Duration // of the mean delays
		for _, r := range s.Retries {
			least, most = shorter(least, r.Mean), max(most, r.Mean)
		}
		grows = grows || least > 0 && most/minGrowth >= least
		for _, d := range s.Dots {
			first = shorter(first, max(d.At, least/16)) // a few very early retries would take half of the axis
		}
		shortest, longest = shorter(shortest, s.Window.Most), max(longest, s.Window.Most)
	}
	if grows || longest/(2*minGrowth) >= shortest {
		return newTimeAxis(first, orSecond(longest))
	}
	return Axis{Most: float64(orSecond(longest))}
}

// shorter is the shorter of two times, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// orSecond replaces 0, so that every axis has a length.
func orSecond(t time.Duration) time.Duration {
	if t <= 0 {
		return time.Second
	}
	return t
}

// minRateRatio is the ratio between the highest rate and the lower quartile from which an axis of rates is logarithmic.
const minRateRatio = 32

// rateAxis is an axis for rates; those of 0 do not count. A logarithmic one begins at a power of ten.
func rateAxis(rates []float64) Axis {
	rates = slices.DeleteFunc(slices.Sorted(slices.Values(rates)), func(r float64) bool { return r <= 0 })
	if len(rates) == 0 {
		return Axis{}
	}
	least, quartile, most := rates[0], rates[len(rates)/4], rates[len(rates)-1]
	if most/quartile < minRateRatio {
		return Axis{Most: most}
	}
	return Axis{Least: math.Pow(10, math.Floor(math.Log10(least*0.99))), Most: most, Log: true}
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// roundTimes are the distances of ticks that people find easy to count in.
var roundTimes = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, year,
	2 * year, 5 * year, 10 * year, 30 * year, 100 * year,
}

// TimeTicks are about so many round times.
func (a Axis) TimeTicks(atMost int) (ticks []Tick) {
	for _, t := range a.roundTimes(atMost) {
		label := text.FormatDuration(t)
		if t > year && t%year == 0 {
			label = strconv.Itoa(int(t/year)) + "y"
		}
		ticks = append(ticks, Tick{a.PlaceTime(t), label})
	}
	return ticks
}

func (a Axis) roundTimes(atMost int) (times []time.Duration) {
	if a.Log {
		for _, t := range roundTimes {
			if a.Least <= float64(t) && float64(t) <= a.Most {
				times = append(times, t)
			}
		}
		every, all := max(1, (len(times)+atMost-1)/max(1, atMost)), times
		times = nil
		for chunk := range slices.Chunk(all, every) {
			times = append(times, chunk[0])
		}
		return times
	}
	step := roundTimes[len(roundTimes)-1]
	for _, t := range roundTimes {
		if int(a.Most/float64(t)) <= atMost {
			step = t
			break
		}
	}
	for t := time.Duration(0); t >= 0 && float64(t) <= a.Most; t += step { // after an overflow t is negative
		times = append(times, t)
	}
	return times
}

// RateTicks are powers of ten, or a few round rates.
func (a Axis) RateTicks() (ticks []Tick) {
	if a.Most == 0 {
		return []Tick{{0, "0"}}
	}
	if a.Log {
		factor := math.Pow(10, math.Ceil(math.Log10(a.Most/a.Least)/6))
		for rate := a.Least; rate <= a.Most; rate *= factor {
			ticks = append(ticks, Tick{a.Place(rate), FormatRate(rate)})
		}
		return ticks
	}
	step := roundStep(a.Most / 4)
	for rate := 0.0; rate <= a.Most; rate += step {
		ticks = append(ticks, Tick{a.Place(rate), FormatRate(rate)})
	}
	return ticks
}

// CountTicks are about so many of the whole numbers from 1 to n, each at the middle of its share of the axis.
func CountTicks(n, atMost int) (ticks []Tick) {
	step := 1
	for n/step > atMost {
		step = int(roundStep(float64(step) + 1))
	}
	for i := 1; i <= n; i++ {
		if i == 1 || i%step == 0 {
			ticks = append(ticks, Tick{PlaceCount(i, n), strconv.Itoa(i)})
		}
	}
	return ticks
}

// PlaceCount is where the i-th of n stands.
func PlaceCount(i, n int) float64 { return (float64(i) - 0.5) / float64(max(n, 1)) }

// roundStep is the next number from x on whose first digit is 1, 2 or 5 and whose other digits are 0.
func roundStep(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, k := range []float64{1, 2, 5} {
		if k*unit >= x {
			return k * unit
		}
	}
	return 10 * unit
}
