package render

import (
	"cmp"
	"slices"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
)

// plotAxes are the scales of a picture.
type plotAxes struct {
	delay, time plot.Axis
	rates       rateAxis
}

// comparable is how many times as long as another a window may be where both are drawn to one scale: of a shorter one too little would be
// seen.
const comparable = 10

// newPlotAxes returns the axes of each study, so many cells wide: the same ones for those that can be compared by eye.
func newPlotAxes(studies []plot.Study, cells int) []plotAxes {
	all := make([]plotAxes, len(studies))
	for _, group := range alike(studies) {
		var members []plot.Study
		for _, i := range group {
			members = append(members, studies[i])
		}
		common := axesOf(members, cells)
		for _, i := range group {
			all[i] = common
		}
	}
	return all
}

// alike puts studies of comparable windows together, by their indices, the shortest first.
func alike(studies []plot.Study) (groups [][]int) {
	order := make([]int, len(studies))
	for i := range order {
		order[i] = i
	}
	window := func(i int) time.Duration { return studies[i].Window.Most }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(window(a), window(b)) })
	shortest := time.Duration(-1)
	for _, i := range order {
		if shortest < 0 || window(i)/comparable > shortest {
			groups, shortest = append(groups, nil), window(i)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], i)
	}
	for _, g := range groups {
		slices.Sort(g)
	}
	return groups
}

func axesOf(studies []plot.Study, cells int) plotAxes {
	a := plotAxes{delay: delayAxis(studies), time: timeAxis(studies)}
	var rates []float64
	for _, s := range studies {
		rates = append(rates, loadOver(s, a.time, cells)...)
	}
	a.rates = newRateAxis(rates)
	return a
}

// clippedAt is how many times the longest delay without chance a range may reach on the axis. One that could grow without an end would
// press all else into a corner.
const clippedAt = 4

func delayAxis(studies []plot.Study) plot.Axis {
	var least, most, usual time.Duration
	below := time.Duration(1)
	for _, s := range studies {
		for _, r := range s.Retries {
			if r.Least == 0 {
				below = 4 // a logarithmic axis has no 0: the range ends where it does, and has to be seen to go on
			}
			usual = max(usual, r.Base, r.Mean)
			least = lesser(lesser(least, r.Least), lesser(r.Base, r.Mean))
			most = max(most, r.Most)
		}
	}
	most = max(min(most, clippedAt*min(usual, backoff.Max)), usual)
	return plot.NewAxis(least/below, orSecond(most))
}

// growing is the ratio of a policy's waits from which on its retries are drawn on a logarithmic axis. Waits that hardly grow come evenly,
// which such an axis would hide.
const growing = 8

func timeAxis(studies []plot.Study) plot.Axis {
	var first, last time.Duration
	grows := false
	for _, s := range studies {
		var least, most time.Duration
		for _, r := range s.Retries {
			least, most = lesser(least, r.Mean), max(most, r.Mean)
		}
		grows = grows || least > 0 && most/growing >= least
		for _, d := range s.Dots {
			first = lesser(first, max(d.At, least/16)) // the few that come at once would take half of the axis
		}
		last = max(last, s.Window.Most)
	}
	if grows {
		return plot.NewAxis(first, orSecond(last))
	}
	return plot.Axis{Most: orSecond(last)}
}

// lesser is the shorter one of two times; 0 is none.
func lesser(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// orSecond gives an axis on which everything is 0 a length.
func orSecond(t time.Duration) time.Duration {
	if t <= 0 {
		return time.Second
	}
	return t
}

// scaleName says what has to be known to read an axis.
func scaleName(log bool) string {
	if log {
		return " (log)"
	}
	return ""
}
