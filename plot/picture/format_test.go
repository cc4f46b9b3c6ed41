package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/image/font"

	"github.com/10f93571/retry/plot"
)

func TestSVGIsWellFormed(t *testing.T) {
	for name, studies := range gallery(t) {
		t.Run(name, func(t *testing.T) {
			svg := SVG(studies)
			elements := elementsOf(t, svg)
			for _, want := range []string{"svg", "title", "desc", "text", "path"} {
				if elements[want] == 0 {
					t.Errorf("got no <%s>", want)
				}
			}
			if elements["title"] != 1 {
				t.Errorf("got %d titles", elements["title"])
			}
			if long := regexp.MustCompile(`(points|d|x|y|width|height)="[^"]*\d\.\d\d`).FindString(svg); long != "" {
				t.Errorf("got a place that is not rounded to a tenth: %s", long)
			}
		})
	}
}

func elementsOf(t *testing.T, svg string) map[string]int {
	t.Helper()
	elements := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
}

// A label says what it says, and nothing more: it ends no element, and turns no direction.
func TestLabelsAreEscaped(t *testing.T) {
	svg := SVG([]plot.Study{study(t, "</text><script>alert(1)</script>\u202e\x00\xff=exp:1s", 2, 2)})
	if elementsOf(t, svg)["script"] > 0 {
		t.Error("a label became a script")
	}
	for _, bad := range []string{"\u202e", "\x00", "\xff"} {
		if strings.Contains(svg, bad) {
			t.Errorf("got %q in the picture", bad)
		}
	}
	if !strings.Contains(svg, "&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\x00\\xff") {
		t.Errorf("got no label: %s", svg[:600])
	}
}

// Both themes name every ink that the picture uses.
func TestThemes(t *testing.T) {
	svg := SVG([]plot.Study{study(t, "exp:1s", 10, 8)})
	style := svg[strings.Index(svg, "<style>"):strings.Index(svg, "</style>")]
	for _, class := range regexp.MustCompile(`class="([fs]\d+)"`).FindAllStringSubmatch(svg, -1) {
		if n := strings.Count(style, "."+class[1]+"{"); n != 2 {
			t.Errorf("%s: got %d rules", class[1], n)
		}
	}
}

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
	img, scene := decoded(t, studies), layout(studies)
	if got := img.Bounds().Size(); got != image.Pt(2*int(scene.width), 2*int(scene.height)) {
		t.Errorf("the size is %v", got)
	}
	if got := img.At(2, 2); got != light.rgba(background) {
		t.Errorf("the corner is %v", got)
	}
	dotsSeen := 0
	for _, s := range scene.shapes {
		d, ok := s.(dots)
		if !ok {
			continue
		}
		for _, p := range d.points {
			if got := img.At(int(p.x*density), int(p.y*density)); got == color.Color(light.rgba(d.fill)) {
				dotsSeen++
			} else {
				t.Errorf("at %v is %v, want %v", p, got, light.rgba(d.fill))
			}
		}
	}
	if want := 5*4 + 4 + 4; dotsSeen != want { // retries, the curve, the legend
		t.Errorf("got %d dots, want %d", dotsSeen, want)
	}
}

// Letters are drawn where the layout left room for them, and are no wider than it took them for.
func TestLettersFit(t *testing.T) {
	c := canvas{faces: map[faceKey]font.Face{}}
	for name, studies := range gallery(t) {
		for _, s := range layout(studies).shapes {
			words, ok := s.(label)
			if !ok {
				continue
			}
			face, err := c.face(faceKey{words.size, words.bold})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := float64(font.MeasureString(face, words.text))/64/density,
				textWidth(words.text, words.size, words.bold); got > want+1 {
				t.Errorf("%s: %q is %.1f wide, the layout has %.1f", name, words.text, got, want)
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
			t.Errorf("piece %d: got %v, want %v", i, pieces[i], want[i])
		}
	}
}
