package picture

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
)

// axes are shared by all studies of a picture, so that what stands side by side can be compared.
type axes struct {
	delay plot.Axis
	time  plot.Axis
	load  rates
}

func newAxes(studies []plot.Study) axes {
	a := axes{delay: delayAxis(studies), time: timeAxis(studies)}
	for _, s := range studies {
		for _, b := range loadOf(s, a.time) {
			a.load = a.load.with(b.rate)
		}
	}
	return a
}

// clipped is how many times the longest mean a band may reach: above it a jitter that could grow without an end would press all else down.
const clipped = 4

func delayAxis(studies []plot.Study) plot.Axis {
	var least, most, usual time.Duration
	down := time.Duration(1)
	for _, s := range studies {
		for _, r := range s.Retries {
			if r.Least == 0 {
				down = 4 // a logarithmic axis has no 0: the band leaves it at its lower end, and has to be seen to
			}
			usual = max(usual, r.Base, r.Mean)
			least = leastAbove0(least, leastAbove0(r.Base, leastAbove0(r.Least, r.Mean)))
		}
	}
	for _, s := range studies {
		for _, r := range s.Retries {
			most = max(most, min(r.Most, clipped*min(usual, backoff.Max)))
		}
	}
	return plot.NewAxis(least/down, orSecond(max(most, usual)))
}

// orSecond gives an axis on which everything is 0 a length.
func orSecond(most time.Duration) time.Duration {
	if most == 0 {
		return time.Second
	}
	return most
}

// growth is the ratio of a policy's waits from which on its retries are shown on a logarithmic axis. Waits that hardly grow are even in
// time, and an axis that is not would hide it.
const growth = 8

func timeAxis(studies []plot.Study) plot.Axis {
	var first, shortest, longest time.Duration
	grows := false
	for _, s := range studies {
		least, most := waits(s)
		grows = grows || float64(most) >= growth*float64(least)
		for _, d := range s.Dots {
			// The few that come at once would take half of the axis.
			first = leastAbove0(first, max(d.At, least/16))
		}
		shortest, longest = leastAbove0(shortest, s.Window.Most), max(longest, s.Window.Most)
	}
	if grows || float64(longest) >= 2*growth*float64(shortest) {
		return plot.NewAxis(first, orSecond(longest))
	}
	return plot.Axis{Most: orSecond(longest)}
}

// waits are the shortest and the longest mean wait, of those above 0.
func waits(s plot.Study) (least, most time.Duration) {
	for _, r := range s.Retries {
		least, most = leastAbove0(least, r.Mean), max(most, r.Mean)
	}
	return least, most
}

// rates is an axis of retries a second.
type rates struct{ least, most float64 }

func (r rates) with(rate float64) rates {
	if rate <= 0 {
		return r
	}
	if r.least == 0 {
		return rates{rate, rate}
	}
	return rates{min(r.least, rate), max(r.most, rate)}
}

// log reports whether the rates lie so far apart that the low ones need a logarithmic axis to be seen.
func (r rates) log() bool { return r.most/r.least >= 30 }

// floor is the rate at the lower end: 0, or a round one below the least.
func (r rates) floor() float64 {
	if !r.log() {
		return 0
	}
	return math.Pow(10, math.Floor(math.Log10(r.least*0.99)))
}

func (r rates) place(rate float64) float64 {
	if rate <= 0 || r.most == 0 {
		return 0
	}
	if r.log() {
		return math.Log(rate/r.floor()) / math.Log(r.most/r.floor())
	}
	return rate / r.most
}

// marks are powers of ten, or a few round rates.
func (r rates) marks() (marks []mark) {
	if r.most == 0 {
		return []mark{{0, "0"}}
	}
	if !r.log() {
		step := roundStep(r.most / 4)
		for rate := 0.0; rate <= r.most; rate += step {
			marks = append(marks, mark{r.place(rate), rateText(rate)})
		}
		return marks
	}
	every := math.Pow(10, math.Ceil(math.Log10(r.most/r.floor())/6))
	for rate := r.floor(); rate <= r.most; rate *= every {
		marks = append(marks, mark{max(r.place(rate), 0), rateText(rate)})
	}
	return marks
}

// rateText is a rate that fits beside the axis.
func rateText(rate float64) string {
	if rate == 0 || rate >= 0.01 && rate < 1e6 {
		return digits(rate)
	}
	mantissa, power, _ := strings.Cut(strconv.FormatFloat(rate, 'e', 0, 64), "e")
	n, _ := strconv.Atoi(power)
	return mantissa + "e" + strconv.Itoa(n)
}

// roundStep is the next number above x that begins with 1, 2 or 5.
func roundStep(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, k := range []float64{1, 2, 5} {
		if k*unit >= x {
			return k * unit
		}
	}
	return 10 * unit
}
