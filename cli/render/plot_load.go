package render

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/plot"
)

const (
	loadRows = 4
	eighths  = 8
)

var eighthBlocks = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// loadOver returns the retries a second in each of so many cells. Where cells are too short, several show the same.
func loadOver(s plot.Study, a plot.Axis, cells int) []float64 {
	shortest, edges, owner := a.Shortest(), []time.Duration{0}, make([]int, cells)
	for i := range cells {
		owner[i] = len(edges) - 1
		end := a.At(float64(i+1) / float64(cells))
		if i == cells-1 {
			edges = append(edges, a.Beyond())
		} else if end-edges[len(edges)-1] >= shortest && a.Most-end >= shortest/2 {
			edges = append(edges, end)
		}
	}
	rates := s.Load.Rates(edges)
	all := make([]float64, cells)
	for i, o := range owner {
		all[i] = rates[min(o, len(rates)-1)]
	}
	return all
}

// load draws how many retries fall into a second.
func (k sketch) load() []string {
	rates := loadOver(k.study, k.axes.time, k.cells())
	axis := k.axes.rates
	scale := scaleName(axis.log())
	titles := []string{"Load: retries a second, mean of a column" + scale, "Load: retries a second" + scale}
	if peak := k.study.Load.Peak; peak > 0 {
		titles = slices.Insert(titles, 0, titles[0]+"; busiest second but the first: "+rateText(peak))
	}
	lines := []string{k.title(titles...)}
	for y := range loadRows {
		var b strings.Builder
		for _, r := range rates {
			b.WriteRune(axis.block(r, loadRows-1-y))
		}
		label := ""
		switch y {
		case 0:
			label = rateText(axis.most)
		case loadRows - 1:
			label = rateText(axis.floor())
		}
		lines = append(lines, k.row(label, b.String()))
	}
	return append(lines, k.below(k.axes.time, k.cells(), k.study.Dots...))
}

// rateAxis is an upright axis of retries a second, over all rates above 0. A quarter of them is not above low.
type rateAxis struct{ least, low, most float64 }

func newRateAxis(rates []float64) rateAxis {
	slices.Sort(rates)
	first := slices.IndexFunc(rates, func(r float64) bool { return r > 0 })
	if first < 0 {
		return rateAxis{}
	}
	rates = rates[first:]
	return rateAxis{rates[0], rates[len(rates)/4], rates[len(rates)-1]}
}

// log reports whether many rates could not be seen beside the highest.
func (a rateAxis) log() bool { return a.low > 0 && a.most/a.low >= loadRows*eighths }

// floor is the rate at the lower end: 0, or a power of ten below the least.
func (a rateAxis) floor() float64 {
	if !a.log() {
		return 0
	}
	return math.Pow(10, math.Floor(math.Log10(a.least*0.99)))
}

// place is where a rate stands, from 0 to 1.
func (a rateAxis) place(rate float64) float64 {
	switch {
	case rate <= 0 || a.most <= 0:
		return 0
	case a.log():
		return min(max(math.Log(rate/a.floor())/math.Log(a.most/a.floor()), 0), 1)
	}
	return min(rate/a.most, 1)
}

// block is the cell of a bar in a row, counted from below. No load is too low to be seen.
func (a rateAxis) block(rate float64, row int) rune {
	if rate <= 0 {
		return ' '
	}
	height := max(1, int(math.Round(a.place(rate)*loadRows*eighths)))
	return eighthBlocks[min(max(height-row*eighths, 0), eighths)]
}

// rateText is a rate that fits beside the axis.
func rateText(rate float64) string {
	if rate >= 1000 && rate < 1e6 {
		return strconv.FormatFloat(rate, 'f', 0, 64)
	}
	text := strconv.FormatFloat(rate, 'g', 3, 64)
	if len(text) > gutter {
		text = strconv.FormatFloat(rate, 'g', 2, 64)
	}
	if len(text) > gutter {
		text = strconv.FormatFloat(rate, 'e', 1, 64)
	}
	return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(text)
}
