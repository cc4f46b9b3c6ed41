package picture

import (
	"fmt"
	"image/color"
	"math"
)

// ink is a role of a colour. What comes after the last role are the colours of the retries.
type ink int

const (
	card ink = iota
	words
	muted
	grid
	band
	curveInk
	baseInk
	loadInk
	roles // how many there are
)

// shades is how many colours retries have: more could not be told apart.
const shades = 32

// theme is the colour of each role, and the stops between which those of the retries lie.
type theme struct {
	roles [roles]uint32
	stops []uint32
}

// The stops are of matplotlib's plasma, which is even to the eye and to the colour-blind; each theme leaves out the end that would
// vanish on its background.
var (
	light = theme{
		roles: [roles]uint32{0xffffff, 0x1f2328, 0x59636e, 0xe3e6ea, 0xcfe0f7, 0x0b57b0, 0x8a6d00, 0x4a7fc1},
		stops: []uint32{0x0d0887, 0x5302a3, 0x8b0aa5, 0xb83289, 0xdb5c68, 0xf08a48},
	}
	dark = theme{
		roles: [roles]uint32{0x161b22, 0xe6edf3, 0x9aa5b1, 0x30363d, 0x1f3a5c, 0x79b8ff, 0xd4b23c, 0x5a93d6},
		stops: []uint32{0x9c5cf0, 0xc04fc4, 0xdb5c8a, 0xf48849, 0xfebd2a, 0xf0f921},
	}
)

// shade is the colour of a retry, from the first to the last of so many.
func shade(retry, of int) ink {
	if of < 2 {
		return roles
	}
	return roles + ink(math.Round(float64(retry-1)/float64(of-1)*(shades-1)))
}

// colour is what an ink looks like.
func (t theme) colour(i ink) color.RGBA {
	if i < roles {
		return rgb(t.roles[i])
	}
	place := float64(i-roles) / (shades - 1) * float64(len(t.stops)-1)
	left := min(int(place), len(t.stops)-2)
	return blend(rgb(t.stops[left]), rgb(t.stops[left+1]), place-float64(left))
}

func rgb(code uint32) color.RGBA {
	return color.RGBA{uint8(code >> 16), uint8(code >> 8), uint8(code), 255}
}

func blend(a, b color.RGBA, share float64) color.RGBA {
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + share*(float64(y)-float64(x)))) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

func (t theme) hex(i ink) string {
	c := t.colour(i)
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}
