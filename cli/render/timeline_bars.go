package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

const (
	usualWidth   = 80 // of what is drawn into a pipe or a file
	leastCells   = 8  // fewer show nothing
	roomyLabels  = 60 // the width from which rows have room for outcomes
	maxBars      = 20
	axisDistance = 8 // the fewest cells between two marks of an axis
)

// timeline draws a task's time to scale. For a single attempt with nothing before or after it, it draws nothing.
func (s Screen) timeline(t TaskView, attempts []task.Attempt, now time.Time) string {
	width := s.Width
	if width == 0 {
		width = usualWidth
	}
	h := newTimeline(t, attempts, now)
	rows := s.chartRows()
	labels := labelWidth(h.layout(width, rows), attempts, width)
	cells := width - labels - 1
	if cells < leastCells {
		return ""
	}
	bars := h.layout(cells, rows)
	if len(bars) < 2 {
		return ""
	}
	lines := []string{"", s.Paint(Bold, shorten(h.title(bars), width))}
	for _, b := range bars {
		label := b.label(attempts, width)
		lines = append(lines, label+strings.Repeat(" ", labels-lipgloss.Width(label)+1)+s.cells(b.cells))
	}
	lines = append(lines, strings.Repeat(" ", labels+1)+axis(h.length, cells), s.legend(bars, width))
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ") + "\n"
	}
	return strings.Join(lines, "")
}

// chartRows is the most rows of a timeline. On a screen that does not scroll it leaves space for the rest of the
// report.
func (s Screen) chartRows() int {
	if s.Height == 0 {
		return maxBars
	}
	return min(max(s.Height/4, 4), maxBars)
}

func labelWidth(bars []bar, attempts []task.Attempt, width int) (widest int) {
	for _, b := range bars {
		widest = max(widest, lipgloss.Width(b.label(attempts, width)))
	}
	return widest
}

// label says which attempts a row shows, and how they ended where the screen is wide enough.
func (b bar) label(attempts []task.Attempt, width int) string {
	if b.first == len(attempts) {
		return ""
	}
	first, last := attempts[b.first], attempts[b.last]
	switch {
	case b.first != b.last:
		return fmt.Sprintf("%d–%d", first.Number, last.Number)
	case width < roomyLabels || first.Decision.Verdict == "":
		return fmt.Sprint(first.Number)
	}
	return fmt.Sprintf("%d %s", first.Number, ended(first.Outcome, first.Decision))
}

// title says how long a timeline is, and how many attempts a row shows.
func (h timeline) title(bars []bar) string {
	title := "Timeline of " + text.Duration(h.length)
	if each := bars[0].last - bars[0].first + 1; each > 1 {
		title += fmt.Sprintf(", %d attempts a row (some may share a cell)", each)
	}
	if h.wentBack {
		title += "; the clock went back: the waits there are the planned ones"
	}
	return title
}

func (s Screen) paintMark(m mark, text string) string {
	switch m {
	case succeeded:
		return s.Paint(Green, text)
	case failed:
		return s.Paint(Red, text)
	case running:
		return s.Paint(Blue, text)
	case noOutcome, cutOff:
		return s.Paint(Yellow, text)
	case waited:
		return s.Paint(Faint, text)
	}
	return text
}

// cells draws a row, the cells of one mark at once.
func (s Screen) cells(cells []mark) string {
	var b strings.Builder
	for len(cells) > 0 {
		n := slices.IndexFunc(cells, func(m mark) bool { return m != cells[0] })
		if n < 0 {
			n = len(cells)
		}
		b.WriteString(s.paintMark(cells[0], strings.Repeat(string(cells[0]), n)))
		cells = cells[n:]
	}
	return b.String()
}

// legend explains the marks that were drawn.
func (s Screen) legend(bars []bar, width int) string {
	var parts []string
	for _, entry := range []struct {
		mark mark
		text string
	}{{succeeded, "ok"}, {failed, "failed"}, {running, "running"}, {noOutcome, "no outcome"}, {waited, "waited"}, {cutOff, "cut off"}} {
		drawn := slices.ContainsFunc(bars, func(b bar) bool { return slices.Contains(b.cells, entry.mark) })
		if drawn {
			parts = append(parts, s.cells([]mark{entry.mark})+" "+entry.text)
		}
	}
	return shorten(strings.Join(parts, "  "), width)
}

// axis writes round times below a scale, each at its cell.
func axis(length time.Duration, width int) string {
	scale, step := scale{length, width}, axisStep(length, width)
	var b strings.Builder
	at, before := 0, ""
	for t := time.Duration(0); t == 0 || t > 0 && t < length; t += step { // past the greatest duration it is negative
		column, text := scale.cell(t), text.Duration(t)
		if column < at || column+1+len(text) > width || text == before {
			continue
		}
		b.WriteString(strings.Repeat(" ", column-at) + "│" + text)
		at, before = column+1+len(text), text
	}
	return b.String()
}

// roundTimes are the distances between two marks of an axis that people are used to, ascending.
func roundTimes() (list []time.Duration) {
	for _, unit := range []struct {
		unit  time.Duration
		times []time.Duration
	}{
		{time.Millisecond, []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{time.Second, []time.Duration{1, 2, 5, 10, 15, 30}},
		{time.Minute, []time.Duration{1, 2, 5, 10, 15, 30}},
		{time.Hour, []time.Duration{1, 2, 3, 6, 12}},
		{24 * time.Hour, []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}},
	} {
		for _, n := range unit.times {
			list = append(list, n*unit.unit)
		}
	}
	return list
}

// axisStep is the shortest round time whose marks do not touch, or the longest that there is.
func axisStep(length time.Duration, width int) time.Duration {
	steps := roundTimes()
	for _, step := range steps {
		if float64(step)*float64(width) >= axisDistance*float64(length) {
			return step
		}
	}
	return steps[len(steps)-1]
}

func shorten(text string, width int) string {
	return Screen{Width: width}.cut(text)
}
