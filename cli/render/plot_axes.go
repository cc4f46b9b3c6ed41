package render

import (
	"cmp"
	"slices"
	"time"

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
	a := plotAxes{delay: plot.DelayAxis(studies), time: plot.TimeAxis(studies)}
	var rates []float64
	for _, s := range studies {
		rates = append(rates, loadOver(s, a.time, cells)...)
	}
	a.rates = newRateAxis(rates)
	return a
}

// scaleName says what has to be known to read an axis.
func scaleName(log bool) string {
	if log {
		return " (log)"
	}
	return ""
}
