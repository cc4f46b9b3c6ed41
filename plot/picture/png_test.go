package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/10f93571/retry/plot"
)

func decoded(t *testing.T, studies []plot.Study) image.Image {
	t.Helper()
	var file bytes.Buffer
	if err := PNG(&file, studies); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// The PNG shows the scene: each dot has its colour in its middle, unless another hides it.
func TestPNGShowsTheScene(t *testing.T) {
	studies := []plot.Study{study(t, "exp:1s", 5, 4)}
	img, scene := decoded(t, studies), drawn(studies)
	if got := img.Bounds().Size(); got != image.Pt(2*int(scene.wide), 2*int(scene.high)) {
		t.Errorf("the size is %v", got)
	}
	if got := img.At(2, 2); got != light.colour(card) {
		t.Errorf("the corner is %v", got)
	}
	dotsSeen := 0
	for _, s := range scene.shapes {
		d, ok := s.(dots)
		if !ok {
			continue
		}
		for _, p := range d.points {
			if got := img.At(int(p.x*density), int(p.y*density)); got == color.Color(light.colour(d.fill)) {
				dotsSeen++
			} else {
				t.Errorf("at %v is %v, want %v", p, got, light.colour(d.fill))
			}
		}
	}
	if want := 5*4 + 4 + 4; dotsSeen != want { // retries, the curve, the legend
		t.Errorf("%d dots, want %d", dotsSeen, want)
	}
}

// Letters are drawn where the layout left room for them, and are no wider than it took them for.
func TestLettersFit(t *testing.T) {
	var l letters
	for name, studies := range gallery(t) {
		for _, s := range drawn(studies).shapes {
			words, ok := s.(txt)
			if !ok {
				continue
			}
			face, err := l.face(style{words.size, words.bold})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := measure(face, words.words), width(words.words, words.size, words.bold); got > want+1 {
				t.Errorf("%s: %q is %.1f wide, the layout has %.1f", name, words.words, got, want)
			}
		}
	}
}

func TestDashes(t *testing.T) {
	pieces := dashes([]point{{0, 0}, {6, 0}, {6, 14}}, 4)
	want := [][]point{{{0, 0}, {4, 0}}, {{6, 2}, {6, 6}}, {{6, 10}, {6, 14}}}
	if len(pieces) != len(want) {
		t.Fatalf("got %v, want %v", pieces, want)
	}
	for i := range want {
		if pieces[i][0] != want[i][0] || pieces[i][len(pieces[i])-1] != want[i][1] {
			t.Errorf("piece %d is %v, want %v", i, pieces[i], want[i])
		}
	}
}
