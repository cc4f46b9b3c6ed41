package picture

import (
	"time"

	"github.com/10f93571/retry/plot"
)

// bin is a stretch of time with its load.
type bin struct {
	from, to float64 // places on the axis of time
	rate     float64 // retries a second
}

// bins is into how many the axis is cut; where one would be too short, several make one.
const bins = 90

func loadOf(s plot.Study, a plot.Axis) []bin {
	edges := edgesOf(a)
	var all []bin
	for i, rate := range s.Load.Rates(edges) {
		all = append(all, bin{a.Place(edges[i]), a.Place(edges[i+1]), rate})
	}
	return all
}

// edgesOf are the times at which a bin ends and the next begins.
func edgesOf(a plot.Axis) []time.Duration {
	shortest, edges := a.Shortest(), []time.Duration{a.At(0)}
	for i := 1; i < bins; i++ {
		t := a.At(float64(i) / bins)
		if t-edges[len(edges)-1] >= shortest && a.Most-t >= shortest {
			edges = append(edges, t)
		}
	}
	return append(edges, a.Beyond())
}

// drawLoad draws how many retries fall into a second.
func drawLoad(p panel, s plot.Study, a axes) {
	p.begin("Load: retries a second", a.load.log())
	p.across(a.load.marks())
	for _, b := range loadOf(s, a.time) {
		if b.rate > 0 {
			p.add(rectangle{box{p.x(b.from), p.y(a.load.place(b.rate)), p.x(b.to), p.bottom}, loadInk})
		}
	}
	p.alongTimes(a.time, s.Dots)
}
