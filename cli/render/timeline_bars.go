package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot/chart"
	"github.com/10f93571/retry/task"
)

const (
	usualWidth  = 80 // of what is drawn into a pipe or a file
	leastCells  = 8  // fewer show nothing
	roomyLabels = 60 // the width from which rows have room for outcomes
	maxBars     = 20
	minTickGap  = 8 // the fewest cells between two ticks
)

// timeline draws a task's time to scale. For a single attempt with nothing before or after it, it draws nothing.
func (s Screen) timeline(t TaskView, attempts []task.Attempt, now time.Time) string {
	width := s.Width
	if width == 0 {
		width = usualWidth
	}
	h := newTimeline(t, attempts, now)
	rows := maxBars
	if s.Height > 0 { // a screen that does not scroll: the rest of the report needs space, too
		rows = min(max(s.Height/4, 4), maxBars)
	}
	labels := 0
	for _, b := range h.layout(width, rows) {
		labels = max(labels, lipgloss.Width(b.label(attempts, width)))
	}
	cells := width - labels - 1
	if cells < leastCells {
		return ""
	}
	bars := h.layout(cells, rows)
	if len(bars) < 2 {
		return ""
	}
	lines := []string{"", s.Paint(Bold, ansi.Truncate(h.title(bars), width, "…"))}
	for _, b := range bars {
		label := b.label(attempts, width)
		lines = append(lines, label+strings.Repeat(" ", labels-lipgloss.Width(label)+1)+s.cells(b.cells))
	}
	axis := TimeAxis(chart.Axis{Most: float64(h.length)}, cells, "")
	lines = append(lines, strings.Repeat(" ", labels+1)+axis, s.legend(bars, width))
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ") + "\n"
	}
	return strings.Join(lines, "")
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

// marks are what a legend explains, with their colours.
var marks = []struct {
	mark  mark
	text  string
	style *lipgloss.Style
}{
	{succeeded, "ok", &Green}, {failed, "failed", &Red}, {running, "running", &Blue}, {noOutcome, "no outcome", &Yellow},
	{waited, "waited", &Faint}, {cutOff, "cut off", &Yellow},
}

// cells draws a row, the cells of one mark at once.
func (s Screen) cells(cells []mark) string {
	var b strings.Builder
	for len(cells) > 0 {
		n := slices.IndexFunc(cells, func(m mark) bool { return m != cells[0] })
		if n < 0 {
			n = len(cells)
		}
		text := strings.Repeat(string(cells[0]), n)
		for _, m := range marks {
			if m.mark == cells[0] {
				text = s.Paint(*m.style, text)
			}
		}
		b.WriteString(text)
		cells = cells[n:]
	}
	return b.String()
}

// legend explains the marks that were drawn.
func (s Screen) legend(bars []bar, width int) string {
	var parts []string
	for _, m := range marks {
		if slices.ContainsFunc(bars, func(b bar) bool { return slices.Contains(b.cells, m.mark) }) {
			parts = append(parts, s.Paint(*m.style, string(m.mark))+" "+m.text)
		}
	}
	return ansi.Truncate(strings.Join(parts, "  "), width, "…")
}

// TimeAxis writes round times below a diagram of so many cells, each at its place. The text at the begin may be empty.
func TimeAxis(a chart.Axis, cells int, begin string) string {
	ticks := a.TimeTicks(max(2, cells/minTickGap))
	if begin != "" {
		ticks = slices.Insert(ticks, 0, chart.Tick{Label: begin})
	}
	var b strings.Builder
	end := 0
	for _, t := range ticks {
		column, text := int(t.Place*float64(cells)), "│"+t.Label
		if column < end || column+lipgloss.Width(text) > cells {
			continue
		}
		b.WriteString(strings.Repeat(" ", column-end) + text)
		end = column + lipgloss.Width(text)
	}
	return b.String()
}
