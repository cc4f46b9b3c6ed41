// Package picture draws charts as SVG and as PNG. The layout makes shapes of a few kinds; both formats draw the same
// shapes.
package picture

import (
	"image/color"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// point is a position in pixels from the upper left corner.
type point struct{ x, y float64 }

// box is an upright rectangle.
type box struct{ left, top, right, bottom float64 }

func (b box) width() float64  { return b.right - b.left }
func (b box) height() float64 { return b.bottom - b.top }

// scene is a list of shapes in the order in which they are painted.
type scene struct {
	width, height      float64
	title, description string // for screen readers
	shapes             []shape
}

func (sc *scene) add(shapes ...shape) { sc.shapes = append(sc.shapes, shapes...) }

// shape is a rectangle, polygon, line, dots or a label.
type shape interface{ svg(w *svgWriter) }

type rectangle struct {
	box
	fill colour
}

type polygon struct {
	points []point
	fill   colour
}

type line struct {
	points []point
	width  float64
	dashed bool
	stroke colour
}

// dots are circles of one size and colour.
type dots struct {
	points []point
	radius float64
	fill   colour
}

// label is a text on one line; at is where its anchor stands on the base line.
type label struct {
	at     point
	text   string
	size   float64
	anchor anchor
	bold   bool
	fill   colour
}

// anchor is the share of a label's width that is left of its point.
type anchor float64

const (
	start  anchor = 0
	middle anchor = 0.5
	end    anchor = 1
)

// textWidth estimates the width of a text, rather too large than too small, as the reader's font is not known.
func textWidth(text string, size float64, bold bool) float64 {
	sum := 0.0
	for _, r := range text {
		sum += runeWidth(r)
	}
	if bold {
		sum *= 1.07
	}
	return sum * size
}

// runeWidth is relative to the size of the font.
func runeWidth(r rune) float64 {
	switch {
	case strings.ContainsRune("ijl.,:;|'!()[]/ ·", r):
		return 0.33
	case strings.ContainsRune("mwMW%@…—", r):
		return 0.95
	case r < 0x250 && unicode.IsUpper(r):
		return 0.7
	case r < 0x590:
		return 0.58
	}
	return 1.1
}

// shorten cuts a text that is wider than there is room.
func shorten(text string, size float64, bold bool, room float64) string {
	if textWidth(text, size, bold) <= room {
		return text
	}
	for text != "" && textWidth(text+"…", size, bold) > room {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text + "…"
}

// colour is the role of a colour. The values from firstShade on are the colours of the retries.
type colour int

const (
	background colour = iota
	textColour
	muted
	grid
	bandColour
	meanColour
	baseColour
	loadColour
	firstShade
)

// shades is how many colours retries have: more could not be told apart.
const shades = 32

// theme defines the colour of each role, and the stops between which the colours of the retries are interpolated.
type theme struct {
	roles [firstShade]uint32
	stops []uint32
}

// The stops are of matplotlib's plasma, which readers with a colour vision deficiency can read, too. Each theme leaves
// out the end that would have too little contrast.
var (
	light = theme{
		roles: [firstShade]uint32{0xffffff, 0x1f2328, 0x59636e, 0xe3e6ea, 0xcfe0f7, 0x0b57b0, 0x8a6d00, 0x4a7fc1},
		stops: []uint32{0x0d0887, 0x5302a3, 0x8b0aa5, 0xb83289, 0xdb5c68, 0xf08a48},
	}
	dark = theme{
		roles: [firstShade]uint32{0x161b22, 0xe6edf3, 0x9aa5b1, 0x30363d, 0x1f3a5c, 0x79b8ff, 0xd4b23c, 0x5a93d6},
		stops: []uint32{0x9c5cf0, 0xc04fc4, 0xdb5c8a, 0xf48849, 0xfebd2a, 0xf0f921},
	}
)

// shade is the colour of a retry, from the first to the last of so many.
func shade(retry, of int) colour {
	if of < 2 {
		return firstShade
	}
	return firstShade + colour(math.Round(float64(retry-1)/float64(of-1)*(shades-1)))
}

func (t theme) rgba(c colour) color.RGBA {
	if c < firstShade {
		return rgb(t.roles[c])
	}
	place := float64(c-firstShade) / (shades - 1) * float64(len(t.stops)-1)
	left := min(int(place), len(t.stops)-2)
	from, to, share := rgb(t.stops[left]), rgb(t.stops[left+1]), place-float64(left)
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + share*(float64(y)-float64(x)))) }
	return color.RGBA{mix(from.R, to.R), mix(from.G, to.G), mix(from.B, to.B), 255}
}

func rgb(code uint32) color.RGBA {
	return color.RGBA{uint8(code >> 16), uint8(code >> 8), uint8(code), 255}
}
