package picture

import (
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
)

const (
	padding    = 5 // between the frame of a panel and what is farthest out in it
	small      = 10.5
	usual      = 12
	letterRoom = 8 // the least between two texts in a row
)

// panel is one diagram of a scene: its box is where the data go.
type panel struct {
	*scene
	box
}

func (p panel) x(share float64) float64 { return p.left + share*p.width() }

func (p panel) y(share float64) float64 { return p.bottom - share*p.height() }

// begin draws the frame of a panel and what stands above it. Who is not told of a logarithmic axis takes its bars for a share.
func (p panel) begin(title string, log bool, key ...entry) {
	frame := box{p.left - padding, p.top - padding, p.right + padding, p.bottom + padding}
	at := point{frame.left, frame.top - 8}
	p.add(
		line{points: []point{{frame.left, frame.top}, {frame.left, frame.bottom}, {frame.right, frame.bottom}}, width: 1, stroke: grid},
		txt{at: at, words: title, size: usual, bold: true, fill: words},
	)
	if log {
		at.x += width(title, usual, true) + 5
		p.add(txt{at: at, words: "(log)", size: small, fill: muted})
	}
	p.legend(point{frame.right, at.y}, key)
}

// entry explains an ink.
type entry struct {
	words string
	fill  ink
}

// legend draws what the inks mean, so that it ends at a point.
func (p panel) legend(at point, key []entry) {
	for i := len(key) - 1; i >= 0; i-- {
		p.add(txt{at: at, words: key[i].words, size: small, anchor: end, fill: muted})
		at.x -= width(key[i].words, small, false) + 4
		p.add(rectangle{box{at.x - 10, at.y - 8, at.x, at.y + 1}, key[i].fill})
		at.x -= 10 + letterRoom
	}
}

// mark is a place on an axis, from 0 to 1, with what it says.
type mark struct {
	share float64
	words string
}

// across draws the marks of the upright axis.
func (p panel) across(marks []mark) {
	free := p.bottom + small
	for _, m := range marks {
		y := p.y(m.share)
		p.add(line{points: []point{{p.left - padding, y}, {p.right + padding, y}}, width: 1, stroke: grid})
		if y <= free {
			p.add(txt{at: point{p.left - padding - 5, y + 3.5}, words: m.words, size: small, anchor: end, fill: muted})
			free = y - small - 3
		}
	}
}

// along draws the marks of the axis below; a text that would touch the one before it is left out.
func (p panel) along(marks []mark) {
	free := p.left - padding - letterRoom
	for _, m := range marks {
		x, half := p.x(m.share), width(m.words, small, false)/2
		centre := max(min(x, p.right+padding+9-half), p.left-padding-letterRoom+half) // the first and the last text stay in the picture
		if centre-half < free {
			continue
		}
		free = centre + half + letterRoom
		p.add(
			line{points: []point{{x, p.bottom + padding}, {x, p.bottom + padding + 4}}, width: 1, stroke: muted},
			txt{at: point{centre, p.bottom + padding + 16}, words: m.words, size: small, anchor: middle, fill: muted},
		)
	}
}

// times are the marks of an axis of times.
func times(a plot.Axis, atMost int) (marks []mark) {
	for _, t := range a.Ticks(atMost) {
		marks = append(marks, mark{a.Place(t), Tick(t)})
	}
	return marks
}

const year = 365 * 24 * time.Hour

// Tick is a round time.
func Tick(t time.Duration) string {
	if t > year && t%year == 0 {
		return strconv.Itoa(int(t/year)) + "y"
	}
	return text.FormatDuration(t)
}

// alongTimes draws as many marks of an axis of times as have room. What comes before its begin is drawn there: the first mark says so.
func (p panel) alongTimes(a plot.Axis, all []plot.Dot) {
	if a.Early(all) {
		p.along(append([]mark{{0, Before(a)}}, times(a, 9)...))
		return
	}
	for atMost := 9; ; atMost-- {
		if marks := times(a, atMost); atMost == 1 || a.Log || p.fit(marks) {
			p.along(marks)
			return
		}
	}
}

// Before is the mark at the begin of an axis where earlier times stand there, too.
func Before(a plot.Axis) string { return "≤" + strings.ReplaceAll(Short(a.Least), " ", "") }

// fit reports whether no text of the axis below touches the next one. Where one had to be left out, even steps would look uneven.
func (p panel) fit(marks []mark) bool {
	for i := 1; i < len(marks); i++ {
		room := p.x(marks[i].share) - p.x(marks[i-1].share)
		if room < (width(marks[i].words, small, false)+width(marks[i-1].words, small, false))/2+letterRoom {
			return false
		}
	}
	return true
}

// steps are about so many marks for the whole numbers from 1 to n, each of which has its own place.
func steps(n, atMost int) (marks []mark) {
	step := 1
	for factor := 1; n/step > atMost; factor *= 10 {
		for _, s := range []int{1, 2, 5} {
			if step = s * factor; n/step <= atMost {
				break
			}
		}
	}
	for i := 1; i <= n; i++ {
		if i == 1 || i%step == 0 {
			marks = append(marks, mark{place(i, n), strconv.Itoa(i)})
		}
	}
	return marks
}

// place is where the i-th of n stands, from 0 to 1.
func place(i, n int) float64 { return (float64(i) - 0.5) / float64(max(n, 1)) }
