package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/10f93571/retry/plot"
)

func TestSVGIsWellFormed(t *testing.T) {
	for name, studies := range gallery(t) {
		t.Run(name, func(t *testing.T) {
			svg := SVG(studies)
			elements := elementsOf(t, svg)
			for _, want := range []string{"svg", "title", "desc", "text", "path"} {
				if elements[want] == 0 {
					t.Errorf("no <%s>", want)
				}
			}
			if elements["title"] != 1 {
				t.Errorf("%d titles", elements["title"])
			}
			if long := regexp.MustCompile(`(points|d|x|y|width|height)="[^"]*\d\.\d\d`).FindString(svg); long != "" {
				t.Errorf("a place is not rounded to a tenth: %s", long)
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
			t.Errorf("the picture contains %q", bad)
		}
	}
	if !strings.Contains(svg, "&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\u0000\uFFFD") {
		t.Errorf("the label is gone: %s", svg[:600])
	}
}

// Both themes name every ink that the picture uses.
func TestThemes(t *testing.T) {
	svg := SVG([]plot.Study{study(t, "exp:1s", 10, 8)})
	style := svg[strings.Index(svg, "<style>"):strings.Index(svg, "</style>")]
	for _, class := range regexp.MustCompile(`class="([fs]\d+)"`).FindAllStringSubmatch(svg, -1) {
		if n := strings.Count(style, "."+class[1]+"{"); n != 2 {
			t.Errorf("%s has %d rules", class[1], n)
		}
	}
}
