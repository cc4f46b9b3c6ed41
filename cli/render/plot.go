package render

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/10f93571/retry/plot"
)

const (
	leastPlot  = 40  // the narrowest picture
	mostPlot   = 200 // the widest row of pictures
	leastBlock = 44  // of several pictures in a row
	blockGap   = 3
)

// Plot draws studies: each with its curve, its retries and its load, side by side where there is room, and the figures of all below.
func Plot(w io.Writer, screen Screen, studies []plot.Study) error {
	total := plotWidth(screen)
	side := min(len(studies), max(1, (total+blockGap)/(leastBlock+blockGap)))
	width := (total+blockGap)/side - blockGap
	all := newPlotAxes(studies)
	var lines []string
	for first := 0; first < len(studies); first += side {
		var blocks [][]string
		for i := first; i < min(first+side, len(studies)); i++ {
			blocks = append(blocks, sketch{screen, width, studies[i], all[i]}.lines())
		}
		lines = append(append(lines, beside(blocks, width)...), "")
	}
	lines = append(lines, screen.figures(studies, total)...)
	lines = append(lines, plotNotes(studies, total)...)
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
	axes  plotAxes
}

// gutter is the room for the labels left of a diagram, whose axis follows it.
const gutter = 6

// cells is how wide a diagram is.
func (k sketch) cells() int { return k.width - gutter - 1 }

func (k sketch) lines() []string {
	lines := []string{k.paint(bold, shorten(Escape(k.study.Subject.Label), k.width)), k.paint(faint, shorten(k.about(), k.width))}
	for _, panel := range [][]string{k.curve(), k.scatter(), k.load()} {
		lines = append(append(lines, ""), panel...)
	}
	return lines
}

// about says what the label stands for.
func (k sketch) about() string {
	spec := k.study.Subject.Policy.Backoff
	return fmt.Sprintf("%d attempts, backoff %s, jitter %s", len(k.study.Retries)+1, spec.Curve(), spec.Jitter())
}

// row is a line of a diagram with its label.
func (k sketch) row(label, cells string) string {
	return strings.Repeat(" ", max(0, gutter-lipgloss.Width(label))) + label + k.paint(faint, "│") + cells
}

func (k sketch) title(text string) string { return shorten(text, k.width) }

// below is the line of an axis of times below a diagram of so many cells.
func (k sketch) below(a plot.Axis, cells int) string {
	var b strings.Builder
	at := 0
	for _, t := range a.Ticks(max(2, cells/axisDistance)) {
		column, text := int(a.Place(t)*float64(cells)), Duration(t)
		if column < at || column+1+lipgloss.Width(text) > cells {
			continue
		}
		b.WriteString(strings.Repeat(" ", column-at) + "│" + text)
		at = column + 1 + lipgloss.Width(text)
	}
	return strings.Repeat(" ", gutter+1) + k.paint(faint, b.String())
}
