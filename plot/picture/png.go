//go:build !wasm

package picture

import (
	"image"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/vector"

	"github.com/10f93571/retry/plot"
)

// density is how many pixels of a PNG make one of the scene.
const density = 2

// PNG draws studies side by side, in the light theme.
func PNG(w io.Writer, studies []plot.Study) error {
	scene := drawn(studies)
	c := canvas{RGBA: image.NewRGBA(image.Rect(0, 0, int(scene.wide*density), int(scene.high*density)))}
	for _, s := range scene.shapes {
		if err := c.paint(s); err != nil {
			return err
		}
	}
	return png.Encode(w, c)
}

// canvas is what shapes are painted on.
type canvas struct {
	*image.RGBA
	letters letters
}

func (c *canvas) paint(s shape) error {
	switch s := s.(type) {
	case rectangle:
		c.fill(s.bounds(), s.fill, func(o outline) { o.polygon(corners(s.box)) })
	case area:
		c.fill(s.bounds(), s.fill, func(o outline) { o.polygon(s.points) })
	case line:
		c.fill(s.bounds(), s.stroke, func(o outline) { o.stroke(s) })
	case dots:
		c.fill(s.bounds(), s.fill, func(o outline) { o.circles(s.points, s.radius) })
	case txt:
		return c.letters.write(c.RGBA, s)
	}
	return nil
}

// fill paints what lies inside an outline, smooth at its edges.
func (c *canvas) fill(b box, with ink, trace func(outline)) {
	frame := image.Rect(
		int(math.Floor(b.left*density))-1, int(math.Floor(b.top*density))-1,
		int(math.Ceil(b.right*density))+1, int(math.Ceil(b.bottom*density))+1,
	)
	o := outline{vector.NewRasterizer(frame.Dx(), frame.Dy()), frame.Min}
	trace(o)
	o.Draw(c, frame, image.NewUniform(light.colour(with)), image.Point{})
}

func corners(b box) []point {
	return []point{{b.left, b.top}, {b.right, b.top}, {b.right, b.bottom}, {b.left, b.bottom}}
}
