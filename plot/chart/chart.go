// Package chart is the one model of a policy's diagrams: the curve of its delays with the band of the jitter, a scatter
// plot of the retries, and the load. All places are between 0 and 1; the terminal, SVG and PNG backends give them a
// size.
package chart

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/plot"
)

// Chart holds the three diagrams of one study.
type Chart struct {
	Study plot.Study
	Delay Axis // of Curve
	Time  Axis // of Dots and Load
	Rate  Axis // of Load, in retries per second

	Curve []Point // one for each retry
	Load  []Bar   // from the left to the right, without gaps
	Early string  // where retries before the begin of Time are shown at its begin: the label that says so
}

// Point is the delay before one retry, as places on the axis of delays.
type Point struct {
	Retry                   plot.Retry
	Least, Most, Base, Mean float64
	Clipped                 bool // Most is beyond the axis
}

// Bar is the load during a time.
type Bar struct {
	From, To float64 // places on the axis of times
	Rate     float64
}

// New returns a chart for each study, all with the same axes. The load has so many bars, or fewer where they would be
// too short.
func New(studies []plot.Study, bars int) []Chart {
	delay, time := delayAxis(studies), timeAxis(studies)
	charts := make([]Chart, len(studies))
	var rates []float64
	for i, s := range studies {
		c := &charts[i]
		*c = Chart{Study: s, Delay: delay, Time: time}
		if time.Log && slices.ContainsFunc(s.Dots, func(d plot.Dot) bool { return float64(d.At) < time.Least }) {
			c.Early = "≤" + strings.ReplaceAll(FormatTime(duration(time.Least)), " ", "")
		}
		for _, r := range s.Retries {
			c.Curve = append(c.Curve, Point{
				Retry: r, Clipped: float64(r.Most) > delay.Most, Least: delay.PlaceTime(r.Least), Most: delay.PlaceTime(r.Most),
				Base: delay.PlaceTime(r.Base), Mean: delay.PlaceTime(r.Mean),
			})
		}
		edges := c.loadEdges(bars)
		for j, rate := range s.Load.Rates(edges) {
			c.Load = append(c.Load, Bar{time.PlaceTime(edges[j]), time.PlaceTime(edges[j+1]), rate})
			rates = append(rates, rate)
		}
	}
	for i := range charts {
		charts[i].Rate = rateAxis(rates)
	}
	return charts
}

// MaxWindowRatio is the ratio of the windows of two studies up to which one scale shows enough of both.
const MaxWindowRatio = 10

// NewComparable is New, but only studies whose windows are of a similar length share axes.
func NewComparable(studies []plot.Study, bars int) []Chart {
	charts := make([]Chart, len(studies))
	for _, group := range Comparable(studies) {
		var members []plot.Study
		for _, i := range group {
			members = append(members, studies[i])
		}
		for j, c := range New(members, bars) {
			charts[group[j]] = c
		}
	}
	return charts
}

// Comparable groups studies by the lengths of their windows. It returns the indices of each group, the shortest windows
// first.
func Comparable(studies []plot.Study) (groups [][]int) {
	order := make([]int, len(studies))
	for i := range order {
		order[i] = i
	}
	window := func(i int) time.Duration { return studies[i].Window.Most }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(window(a), window(b)) })
	shortest := time.Duration(-1)
	for _, i := range order {
		if shortest < 0 || window(i)/MaxWindowRatio > shortest {
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

// loadEdges are the times at which one bar ends and the next begins. The first bar holds the early retries, the last
// one those that the study counted together with the very last.
func (c *Chart) loadEdges(bars int) []time.Duration {
	edges := []time.Duration{c.Time.at(0)}
	if c.Early != "" {
		edges[0] = 0
	}
	most, shortest := duration(c.Time.Most), shortestBar(c.Time)
	for i := 1; i < bars; i++ {
		t := c.Time.at(float64(i) / float64(bars))
		if t-edges[len(edges)-1] >= shortest && most-t >= shortest {
			edges = append(edges, t)
		}
	}
	return append(edges, most+min(most/plot.BinsPerOctave+1, math.MaxInt64-most))
}

// shortestBar is the shortest time whose load is shown: a second, as the load is counted by seconds. On an axis of a
// few seconds that would be one block.
func shortestBar(a Axis) time.Duration {
	if most := duration(a.Most); most < 20*time.Second {
		return min(100*time.Millisecond, max(most/40, 1))
	}
	return time.Second
}
