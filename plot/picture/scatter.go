package picture

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/10f93571/retry/plot"
)

// drawScatter draws one dot a retry: when it comes, of which task, coloured by its number.
func drawScatter(p panel, s plot.Study, a axes) {
	title := "Retries by task"
	if s.Drawn < s.Tasks {
		title = fmt.Sprintf("First %d tasks", s.Drawn)
	}
	p.begin(title, a.time.Log)
	p.across([]mark{{place(1, s.Drawn), "1"}, {place(s.Drawn, s.Drawn), strconv.Itoa(s.Drawn)}})
	radius := min(max(p.height()/float64(max(s.Drawn, 1))*0.45, 1.1), 2.6)
	for _, d := range p.cloud(s, a, radius) {
		p.add(d)
	}
	p.alongTimes(a.time, s.Dots)
	p.colours(len(s.Retries))
}

// cloud are the dots, those of one colour together. Of those that fall on one pixel, or on half a row of them, the latest retry is drawn.
func (p panel) cloud(s plot.Study, a axes, radius float64) []dots {
	columns, rows := int(p.width())+2, int(2*p.height())+2
	cells := make([]int, columns*rows) // which dot of the study is drawn there, counted from 1
	at := func(d plot.Dot) point { return point{p.x(a.time.Place(d.At)), p.y(place(d.Task+1, s.Drawn))} }
	for i, d := range s.Dots {
		place := at(d)
		cell := &cells[int(math.Round(place.x-p.left))*rows+int(math.Round(2*(place.y-p.top)))]
		if *cell == 0 || s.Dots[*cell-1].Retry < d.Retry {
			*cell = i + 1
		}
	}
	var clouds [shades]dots
	for _, i := range cells {
		if i > 0 {
			fill := shade(s.Dots[i-1].Retry, len(s.Retries))
			c := &clouds[fill-roles]
			c.points, c.fill, c.radius = append(c.points, at(s.Dots[i-1])), fill, radius
		}
	}
	return slices.DeleteFunc(clouds[:], func(c dots) bool { return len(c.points) == 0 })
}

// colours draws what number of retry a colour stands for: a dot for each, or a scale where there are many.
func (p panel) colours(n int) {
	at := point{p.right + padding, p.top - padding - 8}
	if n > 8 {
		p.shadeScale(at, n)
		return
	}
	for i := n; i >= 1; i-- {
		p.add(
			txt{at: at, words: strconv.Itoa(i), size: small, anchor: end, fill: muted},
			dots{points: []point{{at.x - 11, at.y - 3.5}}, radius: 3, fill: shade(i, n)},
		)
		at.x -= 19
	}
	p.add(txt{at: at, words: "retry", size: small, anchor: end, fill: muted})
}

func (p panel) shadeScale(at point, n int) {
	last := strconv.Itoa(n)
	p.add(txt{at: at, words: last, size: small, anchor: end, fill: muted})
	at.x -= width(last, small, false) + 4
	const each = 3
	for i := range shades {
		x := at.x - float64(shades-i)*each
		p.add(rectangle{box{x, at.y - 8, x + each, at.y}, roles + ink(i)})
	}
	p.add(txt{at: point{at.x - shades*each - 4, at.y}, words: "retry 1", size: small, anchor: end, fill: muted})
}
