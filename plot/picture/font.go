//go:build !wasm

package picture

import (
	"fmt"
	"image"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// style is all that distinguishes two faces.
type style struct {
	size float64
	bold bool
}

// letters are the faces of a picture, each opened when it is first needed.
type letters struct{ faces map[style]font.Face }

func (l *letters) write(on *image.RGBA, t txt) error {
	face, err := l.face(style{t.size, t.bold})
	if err != nil {
		return err
	}
	d := font.Drawer{Dst: on, Src: image.NewUniform(light.colour(t.fill)), Face: face}
	left := t.at.x - measure(face, t.words)*float64(t.anchor)
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(64 * left * density), Y: fixed.Int26_6(64 * t.at.y * density)}
	d.DrawString(t.words)
	return nil
}

// measure is how wide a text is, in pixels of the scene.
func measure(face font.Face, words string) float64 {
	return float64(font.MeasureString(face, words)) / 64 / density
}

func (l *letters) face(s style) (font.Face, error) {
	if face, ok := l.faces[s]; ok {
		return face, nil
	}
	ttf := goregular.TTF
	if s.bold {
		ttf = gobold.TTF
	}
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return nil, fmt.Errorf("open the font of the picture: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: s.size * density, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, fmt.Errorf("open the font of the picture: %w", err)
	}
	if l.faces == nil {
		l.faces = map[style]font.Face{}
	}
	l.faces[s] = face
	return face, nil
}
