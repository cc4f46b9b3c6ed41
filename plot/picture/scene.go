// Package picture draws studies: the curve of a policy with its band, when its tasks retry, the load, the figures. One drawing, a scene of
// a few shapes, is written as SVG and as PNG, so that both look the same.
package picture

import (
	"math"
)

// point is a place in a picture, in pixels from its upper left corner.
type point struct{ x, y float64 }

// box is an upright rectangle.
type box struct{ left, top, right, bottom float64 }

func (b box) width() float64 { return b.right - b.left }

func (b box) height() float64 { return b.bottom - b.top }

// scene is a drawing: shapes in the order in which they are painted.
type scene struct {
	wide, high   float64
	title, about string // for those who hear a picture
	shapes       []shape
}

func (sc *scene) add(shapes ...shape) { sc.shapes = append(sc.shapes, shapes...) }

// shape is one of the five things that a picture consists of.
type shape interface {
	svg(w *svgWriter)
	bounds() box
}

// rectangle is a filled one.
type rectangle struct {
	box
	fill ink
}

// area is a filled polygon.
type area struct {
	points []point
	fill   ink
}

// line is a polyline.
type line struct {
	points []point
	width  float64
	dashed bool
	stroke ink
}

// dots are circles of one size and colour.
type dots struct {
	points []point
	radius float64
	fill   ink
}

// text is one line of letters; at is the place of its anchor on the base line.
type txt struct {
	at     point
	words  string
	size   float64
	anchor anchor
	bold   bool
	fill   ink
}

// anchor is how much of a text lies left of its point.
type anchor float64

const (
	start  anchor = 0
	middle anchor = 0.5
	end    anchor = 1
)

func (r rectangle) bounds() box { return r.box }

func (a area) bounds() box { return around(a.points, 0) }

func (l line) bounds() box { return around(l.points, l.width/2) }

func (d dots) bounds() box { return around(d.points, d.radius) }

func (t txt) bounds() box {
	wide := width(t.words, t.size, t.bold)
	left := t.at.x - wide*float64(t.anchor)
	return box{left, t.at.y - 0.75*t.size, left + wide, t.at.y + 0.25*t.size}
}

// around is the smallest box that holds the points with a margin.
func around(points []point, margin float64) box {
	b := box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, p := range points {
		b.left, b.right = min(b.left, p.x), max(b.right, p.x)
		b.top, b.bottom = min(b.top, p.y), max(b.bottom, p.y)
	}
	return box{b.left - margin, b.top - margin, b.right + margin, b.bottom + margin}
}
