//go:build !wasm

package picture

import (
	"image"
	"math"

	"golang.org/x/image/vector"
)

// outline takes the edges of a shape, in the pixels of its own corner of the canvas. All its parts turn the same way, since parts that
// turn against each other would cancel out where they overlap.
type outline struct {
	*vector.Rasterizer
	corner image.Point
}

func (o outline) place(p point) (x, y float32) {
	return float32(p.x*density - float64(o.corner.X)), float32(p.y*density - float64(o.corner.Y))
}

func (o outline) polygon(points []point) {
	for i, p := range points {
		x, y := o.place(p)
		if i == 0 {
			o.MoveTo(x, y)
		} else {
			o.LineTo(x, y)
		}
	}
	o.ClosePath()
}

// stroke outlines a line with round joints.
func (o outline) stroke(l line) {
	pieces := [][]point{l.points}
	if l.dashed {
		pieces = dashes(l.points, 4)
	}
	for _, points := range pieces {
		for i := 1; i < len(points); i++ {
			o.segment(points[i-1], points[i], l.width/2)
		}
		o.circles(points, l.width/2)
	}
}

func (o outline) segment(a, b point, half float64) {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	if length == 0 {
		return
	}
	dx, dy := -(b.y-a.y)/length*half, (b.x-a.x)/length*half
	o.polygon([]point{{a.x - dx, a.y - dy}, {b.x - dx, b.y - dy}, {b.x + dx, b.y + dy}, {a.x + dx, a.y + dy}})
}

// round is how far the control points of a quarter of a circle lie from its ends, as a share of the radius.
const round = 0.5523

func (o outline) circles(centres []point, radius float64) {
	for _, c := range centres {
		at := func(x, y float64) (float32, float32) { return o.place(point{c.x + x*radius, c.y + y*radius}) }
		x, y := at(1, 0)
		o.MoveTo(x, y)
		for _, q := range [][6]float64{
			{1, round, round, 1, 0, 1}, {-round, 1, -1, round, -1, 0}, {-1, -round, -round, -1, 0, -1}, {round, -1, 1, -round, 1, 0},
		} {
			ax, ay := at(q[0], q[1])
			bx, by := at(q[2], q[3])
			x, y := at(q[4], q[5])
			o.CubeTo(ax, ay, bx, by, x, y)
		}
		o.ClosePath()
	}
}

// dashes cuts a line into strokes and gaps of one length.
func dashes(points []point, length float64) (pieces [][]point) {
	pen, left := true, length
	piece := points[:1:1]
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		for {
			far := math.Hypot(b.x-a.x, b.y-a.y)
			if far <= left {
				left -= far
				piece = append(piece, b)
				break
			}
			a = point{a.x + (b.x-a.x)*left/far, a.y + (b.y-a.y)*left/far}
			if pen {
				pieces = append(pieces, append(piece, a))
			}
			pen, left, piece = !pen, length, []point{a}
		}
	}
	if pen {
		pieces = append(pieces, piece)
	}
	return pieces
}
