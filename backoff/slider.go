package backoff

import (
	"math"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// shortest is where the axis of a time that may be 0 begins: one step above 0.
const shortest = 10 * time.Millisecond

// number is the value as a number, a time in nanoseconds.
func (p Parameter) number() float64 {
	if p.Unit == UnitTime {
		d, _ := text.ReadDuration(p.Value)
		return float64(d)
	}
	x, _ := text.ParseNumber(p.Value)
	return x
}

// Place is where the value stands between its least and its most, from 0 to 1; None stands at 1. The axis of a time is logarithmic.
func (p Parameter) Place() float64 {
	x := p.number()
	switch {
	case p.Value == None || p.most <= p.least:
		return 1
	case p.Unit != UnitTime:
		return unit((x - p.least) / (p.most - p.least))
	case x == 0:
		return 0
	}
	low := p.low()
	return unit(math.Log(x/low) / math.Log(p.most/low))
}

// At is the value at a place from 0 to 1, rounded to what people count in. It may always be set.
func (p Parameter) At(place float64) string {
	place = unit(place)
	if p.Unit != UnitTime {
		x := p.least + place*(p.most-p.least)
		return text.FormatNumber(min(max(math.Round(x/p.step())*p.step(), p.least), p.most))
	}
	if place == 0 && p.least == 0 {
		return text.FormatDuration(0)
	}
	low := p.low()
	x := low * math.Pow(p.most/low, place)
	return text.FormatDuration(time.Duration(min(max(handy(x), p.least), p.most)))
}

// low is where a logarithmic axis begins.
func (p Parameter) low() float64 {
	if p.least > 0 {
		return p.least
	}
	return min(float64(shortest), max(p.most, 1))
}

// step is what a number is rounded to.
func (p Parameter) step() float64 {
	if p.Unit == UnitPercent {
		return 1
	}
	return 0.05
}

// handy rounds a time, in nanoseconds, to a twentieth of itself and less.
func handy(x float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(max(x, 1)))-1)
	for _, s := range []time.Duration{
		50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		if x >= float64(time.Second) && float64(s) <= x/20 {
			step = float64(s)
		}
	}
	return math.Round(x/step) * step
}
