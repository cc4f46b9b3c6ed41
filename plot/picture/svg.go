package picture

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/plot"
)

// SVG draws studies side by side, as one document.
func SVG(studies []plot.Study) string { return layout(studies).svg() }

// svgWriter writes shapes, and remembers which colours they use.
type svgWriter struct {
	strings.Builder
	colours map[colour]bool
}

// svg is a whole document, which follows the reader's light or dark theme.
func (sc *scene) svg() string {
	body := svgWriter{colours: map[colour]bool{}}
	for _, shape := range sc.shapes {
		shape.svg(&body)
	}
	const head = `<svg xmlns="http://www.w3.org/2000/svg" class="picture" ` +
		`width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" role="img">` + "\n<title>%[3]s</title>\n<desc>%[4]s</desc>\n"
	title, description := html.EscapeString(sc.title), html.EscapeString(sc.description)
	return fmt.Sprintf(head, number(sc.width), number(sc.height), title, description) +
		body.style() + body.String() + "</svg>\n"
}

// style defines two classes for each colour, one to fill and one to draw lines, in both themes.
func (w *svgWriter) style() string {
	used := slices.Sorted(maps.Keys(w.colours))
	rules := func(t theme) string {
		var b strings.Builder
		for _, i := range used {
			v := t.rgba(i)
			fmt.Fprintf(&b, ".f%[1]d{fill:#%02[2]x%02[3]x%02[4]x}.s%[1]d{stroke:#%02[2]x%02[3]x%02[4]x}", i, v.R, v.G, v.B)
		}
		return b.String()
	}
	return "<style>.picture{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}" +
		".picture path{fill:none;stroke-linejoin:round;stroke-linecap:round}.picture text{unicode-bidi:isolate}\n" +
		rules(light) + "\n@media (prefers-color-scheme:dark){" + rules(dark) + "}</style>\n"
}

// class is the attribute for a colour: use is "f" to fill, "s" to draw lines.
func (w *svgWriter) class(use string, i colour) string {
	w.colours[i] = true
	return fmt.Sprintf(`class="%s%d"`, use, i)
}

func (r rectangle) svg(w *svgWriter) {
	fmt.Fprintf(w, `<rect x="%s" y="%s" width="%s" height="%s" %s/>`+"\n",
		number(r.left), number(r.top), number(r.width()), number(r.height()), w.class("f", r.fill))
}

func (p polygon) svg(w *svgWriter) {
	points := strings.TrimSpace(coordinates(p.points, " ", ""))
	fmt.Fprintf(w, `<polygon points="%s" %s/>`+"\n", points, w.class("f", p.fill))
}

func (l line) svg(w *svgWriter) {
	dash := ""
	if l.dashed {
		dash = ` stroke-dasharray="4 4"`
	}
	path := "M" + strings.TrimSpace(coordinates(l.points, " ", ""))
	fmt.Fprintf(w, `<path d="%s" stroke-width="%s"%s %s/>`+"\n", path, number(l.width), dash, w.class("s", l.stroke))
}

// svg writes circles as the round ends of lines without a length, which takes a fifth of the bytes.
func (d dots) svg(w *svgWriter) {
	fmt.Fprintf(w, `<path d="%s" stroke-width="%s" %s/>`+"\n",
		coordinates(d.points, "M", "h0"), number(2*d.radius), w.class("s", d.fill))
}

func (l label) svg(w *svgWriter) {
	anchors := map[anchor]string{middle: ` text-anchor="middle"`, end: ` text-anchor="end"`}
	weight := ""
	if l.bold {
		weight = ` font-weight="600"`
	}
	fmt.Fprintf(w, `<text x="%s" y="%s" font-size="%s"%s%s %s>%s</text>`+"\n",
		number(l.at.x), number(l.at.y), number(l.size), weight, anchors[l.anchor], w.class("f", l.fill),
		html.EscapeString(l.text))
}

func coordinates(points []point, before, after string) string {
	var b strings.Builder
	for _, p := range points {
		b.WriteString(before + number(p.x) + " " + number(p.y) + after)
	}
	return b.String()
}

// number rounds to a tenth of a pixel.
func number(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }
