//go:build !wasm

package picture

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"github.com/10f93571/retry/plot"
)

// density is how many pixels of a PNG make one of the scene.
const density = 2

// PNG draws studies side by side, in the light theme.
func PNG(w io.Writer, studies []plot.Study) error {
	sc := layout(studies)
	c := canvas{RGBA: image.NewRGBA(image.Rect(0, 0, int(sc.width*density), int(sc.height*density))), faces: map[faceKey]font.Face{}}
	for _, s := range sc.shapes {
		if err := c.paint(s); err != nil {
			return err
		}
	}
	return png.Encode(w, c)
}

// canvas is the image, with the font faces opened so far.
type canvas struct {
	*image.RGBA
	faces map[faceKey]font.Face
}

func (c *canvas) paint(s shape) error {
	switch s := s.(type) {
	case rectangle:
		c.fill(s.bounds(), s.fill, func(p path) {
			p.polygon([]point{{s.left, s.top}, {s.right, s.top}, {s.right, s.bottom}, {s.left, s.bottom}})
		})
	case polygon:
		c.fill(s.bounds(), s.fill, func(p path) { p.polygon(s.points) })
	case line:
		c.fill(s.bounds(), s.stroke, func(p path) { p.stroke(s) })
	case dots:
		c.fill(s.bounds(), s.fill, func(p path) { p.circles(s.points, s.radius) })
	case label:
		return c.write(s)
	}
	return nil
}

// fill paints the inside of a path with smooth edges.
func (c *canvas) fill(b box, with colour, draw func(path)) {
	frame := image.Rect(
		int(math.Floor(b.left*density))-1, int(math.Floor(b.top*density))-1,
		int(math.Ceil(b.right*density))+1, int(math.Ceil(b.bottom*density))+1,
	)
	p := path{vector.NewRasterizer(frame.Dx(), frame.Dy()), frame.Min}
	draw(p)
	// Draw has a faster way for *image.RGBA, which panics where the frame reaches past the image.
	p.Draw(c, frame, image.NewUniform(light.rgba(with)), image.Point{})
}

// path collects the edges of a shape, relative to a corner of the canvas. All its parts have the same direction: parts
// of opposite directions would cancel out where they overlap.
type path struct {
	*vector.Rasterizer
	corner image.Point
}

func (p path) position(at point) (x, y float32) {
	return float32(at.x*density - float64(p.corner.X)), float32(at.y*density - float64(p.corner.Y))
}

func (p path) polygon(points []point) {
	for i, at := range points {
		x, y := p.position(at)
		if i == 0 {
			p.MoveTo(x, y)
		} else {
			p.LineTo(x, y)
		}
	}
	p.ClosePath()
}

// stroke adds a line with round joints.
func (p path) stroke(l line) {
	pieces := [][]point{l.points}
	if l.dashed {
		pieces = dashes(l.points, 4)
	}
	for _, points := range pieces {
		for i := 1; i < len(points); i++ {
			p.segment(points[i-1], points[i], l.width/2)
		}
		p.circles(points, l.width/2)
	}
}

func (p path) segment(a, b point, half float64) {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	if length == 0 {
		return
	}
	dx, dy := -(b.y-a.y)/length*half, (b.x-a.x)/length*half
	p.polygon([]point{{a.x - dx, a.y - dy}, {b.x - dx, b.y - dy}, {b.x + dx, b.y + dy}, {a.x + dx, a.y + dy}})
}

// arcControl is the distance of the control points of a quarter of a circle from its ends, relative to the radius.
const arcControl = 0.5523

func (p path) circles(centres []point, radius float64) {
	const k = arcControl
	for _, c := range centres {
		at := func(x, y float64) (float32, float32) { return p.position(point{c.x + x*radius, c.y + y*radius}) }
		x, y := at(1, 0)
		p.MoveTo(x, y)
		for _, q := range [][6]float64{{1, k, k, 1, 0, 1}, {-k, 1, -1, k, -1, 0}, {-1, -k, -k, -1, 0, -1}, {k, -1, 1, -k, 1, 0}} {
			ax, ay := at(q[0], q[1])
			bx, by := at(q[2], q[3])
			x, y := at(q[4], q[5])
			p.CubeTo(ax, ay, bx, by, x, y)
		}
		p.ClosePath()
	}
}

// dashes cuts a line into dashes and gaps of the same length.
func dashes(points []point, length float64) (pieces [][]point) {
	drawing, left := true, length
	piece := points[:1:1]
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		for {
			distance := math.Hypot(b.x-a.x, b.y-a.y)
			if distance <= left {
				left -= distance
				piece = append(piece, b)
				break
			}
			a = point{a.x + (b.x-a.x)*left/distance, a.y + (b.y-a.y)*left/distance}
			if drawing {
				pieces = append(pieces, append(piece, a))
			}
			drawing, left, piece = !drawing, length, []point{a}
		}
	}
	if drawing {
		pieces = append(pieces, piece)
	}
	return pieces
}

// faceKey is what distinguishes two font faces.
type faceKey struct {
	size float64
	bold bool
}

func (c *canvas) write(l label) error {
	face, err := c.face(faceKey{l.size, l.bold})
	if err != nil {
		return fmt.Errorf("open the font of the picture: %w", err)
	}
	d := font.Drawer{Dst: c.RGBA, Src: image.NewUniform(light.rgba(l.fill)), Face: face}
	left := l.at.x - measure(face, l.text)*float64(l.anchor)
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(64 * left * density), Y: fixed.Int26_6(64 * l.at.y * density)}
	d.DrawString(l.text)
	return nil
}

// measure is the width of a text in pixels of the scene.
func measure(face font.Face, text string) float64 {
	return float64(font.MeasureString(face, text)) / 64 / density
}

func (c *canvas) face(k faceKey) (font.Face, error) {
	if face, ok := c.faces[k]; ok {
		return face, nil
	}
	ttf := goregular.TTF
	if k.bold {
		ttf = gobold.TTF
	}
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: k.size * density, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, err
	}
	c.faces[k] = face
	return face, nil
}
