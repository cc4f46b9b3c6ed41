//go:build !wasm

package picture

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"slices"

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
	size := image.Rect(0, 0, int(sc.width*density), int(sc.height*density))
	c := canvas{RGBA: image.NewRGBA(size), faces: map[faceKey]font.Face{}}
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
		c.fill(s.fill, []point{{s.left, s.top}, {s.right, s.top}, {s.right, s.bottom}, {s.left, s.bottom}})
	case polygon:
		c.fill(s.fill, s.points)
	case line:
		c.fill(s.stroke, outlines(s)...)
	case dots:
		c.fill(s.fill, circles(s.points, s.radius)...)
	case label:
		return c.write(s)
	}
	return nil
}

// fill paints polygons with smooth edges. All have the same direction: those of opposite directions would cancel out
// where they overlap.
func (c *canvas) fill(with colour, polygons ...[]point) {
	var frame image.Rectangle
	for _, at := range slices.Concat(polygons...) {
		x, y := int(at.x*density), int(at.y*density)
		frame = frame.Union(image.Rect(x-1, y-1, x+2, y+2))
	}
	r := vector.NewRasterizer(frame.Dx(), frame.Dy())
	for _, points := range polygons {
		for i, at := range points {
			x, y := float32(at.x*density-float64(frame.Min.X)), float32(at.y*density-float64(frame.Min.Y))
			if i == 0 {
				r.MoveTo(x, y)
			} else {
				r.LineTo(x, y)
			}
		}
		r.ClosePath()
	}
	// Draw has a faster way for *image.RGBA, which panics where the frame reaches past the image.
	r.Draw(c, frame, image.NewUniform(light.rgba(with)), image.Point{})
}

// outlines are the polygons of a line with round joints.
func outlines(l line) (polygons [][]point) {
	pieces := [][]point{l.points}
	if l.dashed {
		pieces = dashes(l.points, 4)
	}
	for _, points := range pieces {
		for i, b := range points[1:] {
			a := points[i]
			if length := math.Hypot(b.x-a.x, b.y-a.y); length > 0 {
				dx, dy := -(b.y-a.y)/length*l.width/2, (b.x-a.x)/length*l.width/2
				polygons = append(polygons,
					[]point{{a.x - dx, a.y - dy}, {b.x - dx, b.y - dy}, {b.x + dx, b.y + dy}, {a.x + dx, a.y + dy}})
			}
		}
		polygons = append(polygons, circles(points, l.width/2)...)
	}
	return polygons
}

// circles are polygons with so many corners that none is seen.
func circles(centres []point, radius float64) (polygons [][]point) {
	for _, c := range centres {
		points := make([]point, 32)
		for i := range points {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(points)))
			points[i] = point{c.x + radius*cos, c.y + radius*sin}
		}
		polygons = append(polygons, points)
	}
	return polygons
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
	left := l.at.x - float64(font.MeasureString(face, l.text))/64/density*float64(l.anchor)
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(64 * left * density), Y: fixed.Int26_6(64 * l.at.y * density)}
	d.DrawString(l.text)
	return nil
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
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: k.size * density, DPI: 72})
	if err != nil {
		return nil, err
	}
	c.faces[k] = face
	return face, nil
}
