package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/picture"
)

const (
	leastPlot  = 40  // the narrowest picture
	mostPlot   = 200 // the widest row of pictures
	leastBlock = 44  // of several pictures in a row
	blockGap   = 3
)

// Plot draws studies: each with its curve, its retries and its load, side by side where there is room, and the figures of all below.
func Plot(w io.Writer, screen Screen, studies []plot.Study, o plot.Options) error {
	total := plotWidth(screen)
	side := min(len(studies), max(1, (total+blockGap)/(leastBlock+blockGap)))
	width := (total+blockGap)/side - blockGap
	all := newPlotAxes(studies, width-gutter-1)
	var lines []string
	for first := 0; first < len(studies); first += side {
		var sketches []sketch
		for i := first; i < min(first+side, len(studies)); i++ {
			sketches = append(sketches, sketch{screen, width, studies[i], o.Retries, all[i]})
		}
		lines = append(lines, sideBySide(sketches)...)
	}
	lines = append(lines, screen.figures(studies, total)...)
	lines = append(lines, plotNotes(studies, o, total)...)
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// plotWidth is the width of everything; a narrower terminal wraps it.
func plotWidth(s Screen) int {
	if s.Width == 0 {
		return usualWidth
	}
	return min(max(s.Width, leastPlot), mostPlot)
}

// sideBySide draws sketches next to each other, each part beside those of the others.
func sideBySide(sketches []sketch) (lines []string) {
	for _, part := range []func(sketch) []string{sketch.head, sketch.curve, sketch.scatter, sketch.load} {
		var blocks [][]string
		for _, k := range sketches {
			blocks = append(blocks, part(k))
		}
		lines = append(append(lines, beside(blocks, sketches[0].width)...), "")
	}
	return lines
}

// beside puts blocks of lines next to each other.
func beside(blocks [][]string, width int) (lines []string) {
	for i := range longestOf(blocks) {
		var b strings.Builder
		for _, block := range blocks {
			line := ""
			if i < len(block) {
				line = block[i]
			}
			b.WriteString(line + strings.Repeat(" ", max(0, width-lipgloss.Width(line))+blockGap))
		}
		lines = append(lines, b.String())
	}
	return lines
}

func longestOf(blocks [][]string) (most int) {
	for _, b := range blocks {
		most = max(most, len(b))
	}
	return most
}

// sketch is the picture of one study.
type sketch struct {
	Screen
	width int
	study plot.Study
	usual int // retries of what has no limit of attempts
	axes  plotAxes
}

// gutter is the room for the labels left of a diagram, whose axis follows it.
const gutter = 6

// cells is how wide a diagram is.
func (k sketch) cells() int { return k.width - gutter - 1 }

func (k sketch) head() []string {
	lines := []string{k.paint(bold, shorten(text.Escape(k.study.Subject.Label), k.width))}
	for _, line := range wrapped(k.about(), k.width) {
		lines = append(lines, k.paint(faint, line))
	}
	return lines
}

// about says what the label stands for.
func (k sketch) about() string {
	policy := k.study.Subject.Policy
	attempts := policy.Attempts
	if attempts == 0 {
		attempts = k.usual + 1
	}
	return fmt.Sprintf("%d attempts, backoff %s, jitter %s", attempts, policy.Backoff.Curve(), policy.Backoff.Jitter())
}

// row is a line of a diagram with its label.
func (k sketch) row(label, cells string) string {
	return strings.Repeat(" ", max(0, gutter-lipgloss.Width(label))) + label + k.paint(faint, "│") + cells
}

// title is the first of the texts that fits.
func (k sketch) title(texts ...string) string {
	for _, text := range texts {
		if lipgloss.Width(text) <= k.width {
			return text
		}
	}
	return shorten(texts[len(texts)-1], k.width)
}

// below is the line of an axis of times below a diagram of so many cells. Where dots from before its begin stand there, the first mark
// says so.
func (k sketch) below(a plot.Axis, cells int, dots ...plot.Dot) string {
	var b strings.Builder
	at := 0
	if a.Early(dots) {
		b.WriteString("│" + picture.Before(a))
		at = lipgloss.Width(b.String())
	}
	for _, t := range a.Ticks(max(2, cells/axisDistance)) {
		column, text := int(a.Place(t)*float64(cells)), picture.Tick(t)
		if column < at || column+1+lipgloss.Width(text) > cells {
			continue
		}
		b.WriteString(strings.Repeat(" ", column-at) + "│" + text)
		at = column + 1 + lipgloss.Width(text)
	}
	return strings.Repeat(" ", gutter+1) + k.paint(faint, b.String())
}
