package picture

import (
	"fmt"
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
)

// What a column measures.
const (
	columnWidth   = 400
	leftRoom      = 62 // for the texts of the upright axes
	rightRoom     = 22
	panelsEnd     = 668
	figuresHeight = 142
)

// SVG draws studies side by side, as one document.
func SVG(studies []plot.Study) string { return drawn(studies).svg() }

// Each draws every study alone, but all on the same axes; the figures are left out.
func Each(studies []plot.Study) []string {
	a := newAxes(studies)
	var all []string
	for _, s := range studies {
		sc := scene{wide: columnWidth, high: panelsEnd, title: visible(s.Subject.Label), about: about(s)}
		sc.column(0, 0, s, a)
		all = append(all, sc.svg())
	}
	return all
}

// drawn is the one drawing of all writers.
func drawn(studies []plot.Study) *scene {
	abreast := abreast(len(studies))
	rows := (len(studies) + abreast - 1) / abreast
	sc := &scene{wide: float64(abreast * columnWidth), high: float64(rows * (panelsEnd + figuresHeight))}
	sc.add(rectangle{box{0, 0, sc.wide, sc.high}, card})
	a := newAxes(studies)
	var titles, abouts []string
	for i, s := range studies {
		left, top := float64(i%abreast*columnWidth), float64(i/abreast*(panelsEnd+figuresHeight))
		sc.column(left, top, s, a)
		sc.figures(left, top+panelsEnd, s)
		titles, abouts = append(titles, visible(s.Subject.Label)), append(abouts, about(s))
	}
	sc.title, sc.about = "retry plot "+strings.Join(titles, " "), strings.Join(abouts, "\n")
	return sc
}

// abreast is how many columns stand side by side: three at the most, and four as two and two.
func abreast(n int) int {
	if n == 4 {
		return 2
	}
	return max(1, min(n, 3))
}

// column draws one study.
func (sc *scene) column(left, top float64, s plot.Study, a axes) {
	at := point{left + leftRoom - padding, top + 26}
	room := columnWidth - leftRoom - rightRoom + 2.0*padding
	sc.add(
		txt{at: at, words: shorten(visible(s.Subject.Label), 15, true, room), size: 15, bold: true, fill: words},
		txt{at: point{at.x, at.y + 17}, words: shorten(subtitle(s), small, false, room), size: small, fill: muted},
	)
	frame := func(from, to float64) panel {
		return panel{sc, box{left + leftRoom, top + from, left + columnWidth - rightRoom, top + to}}
	}
	drawCurve(frame(80, 230), s, a)
	drawScatter(frame(294, 494), s, a)
	drawLoad(frame(558, 638), s, a)
}

// subtitle says what was played through.
func subtitle(s plot.Study) string {
	spec := s.Subject.Policy.Backoff
	return fmt.Sprintf("%s · %s · %s of %s", visible(spec.Curve()), visible(spec.Jitter()), count(len(s.Retries), "retry", "retries"),
		count(s.Tasks, "task", "tasks"))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + many
}

// about tells a study in words.
func about(s plot.Study) string {
	lines := []string{visible(s.Subject.Label) + ": " + subtitle(s) + "."}
	for _, r := range s.Retries {
		if r.N > 10 {
			break
		}
		lines = append(lines, fmt.Sprintf("Retry %d after %s on average, base %s.", r.N, Short(r.Mean), text.FormatDuration(r.Base)))
	}
	for _, f := range Figures(s) {
		lines = append(lines, f.Name+": "+f.Value+".")
	}
	return strings.Join(lines, " ")
}
