package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
)

const (
	mostCurveRows = 12
	leastBar      = 24 // the fewest cells of a range beside its numbers
)

// The marks of a curve.
const (
	rangeMark = "░"
	baseMark  = "┃"
	moreMark  = "→" // the range goes on beyond the axis
)

// curve draws the delay before each retry, one below the other: the range that the jitter gives it, and the delay without.
func (k sketch) curve() []string {
	shown := k.curveRows()
	numbers := k.curveNumbers(shown)
	cells := k.cells() - lipgloss.Width(numbers[0])
	legend := scaleName(k.axes.delay.Log) + ": " + rangeMark + " range, " + baseMark + " base"
	lines := []string{k.title("Delay before retry n"+legend, "Delays"+legend)}
	lines[0] += strings.Repeat(" ", max(1, gutter+1+cells-lipgloss.Width(lines[0])))
	if lipgloss.Width(lines[0])+lipgloss.Width(numbers[0]) <= k.width {
		lines[0] += k.paint(faint, numbers[0])
	}
	for i, r := range shown {
		label := k.paintRetry(r.N, strconv.Itoa(r.N))
		lines = append(lines, k.row(label, k.delayBar(r, cells)+numbers[i+1]))
	}
	return append(lines, k.below(k.axes.delay, cells))
}

// curveRows are the retries that have a row: all, or one of so many, and the last.
func (k sketch) curveRows() (rows []plot.Retry) {
	all := k.study.Retries
	step := (len(all) + mostCurveRows - 1) / mostCurveRows
	for i := 0; i < len(all); i += step {
		rows = append(rows, all[i])
	}
	if last := all[len(all)-1]; len(rows) > 0 && rows[len(rows)-1].N != last.N {
		rows = append(rows, last)
	}
	return rows
}

// delayBar is the range of a delay with its base.
func (k sketch) delayBar(r plot.Retry, cells int) string {
	a := k.axes.delay
	at := func(t time.Duration) int { return min(int(a.Place(t)*float64(cells)), cells-1) }
	from, to, base := at(r.Least), at(r.Most), at(r.Base)
	var b strings.Builder
	for i := range cells {
		switch {
		case i == base:
			b.WriteString(k.paintRetry(r.N, baseMark))
		case i == cells-1 && r.Most > a.Most:
			b.WriteString(moreMark)
		case from <= i && i <= to && from < to:
			b.WriteString(k.paint(faint, rangeMark))
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// curveNumbers are the columns right of the ranges, with their titles first; without those that have no room.
func (k sketch) curveNumbers(rows []plot.Retry) []string {
	base, span, cv := []string{"BASE"}, []string{"RANGE"}, []string{"CV"}
	for _, r := range rows {
		base, span = append(base, text.Duration(r.Base)), append(span, rangeText(r))
		cv = append(cv, strings.TrimPrefix(fmt.Sprintf("%.2f", r.CV), "0"))
	}
	columns := [][]string{base, span, cv} // the range can be read off the picture, too
	if columnWidth(base)+columnWidth(span)+columnWidth(cv)+3*columnGap > k.cells()-leastBar {
		columns = [][]string{base, cv}
	}
	lines := make([]string, len(rows)+1)
	for _, c := range columns {
		for i, text := range c {
			lines[i] += strings.Repeat(" ", columnGap+columnWidth(c)-lipgloss.Width(text)) + text
		}
	}
	return lines
}

func rangeText(r plot.Retry) string {
	least, most := text.Duration(r.Least), text.Duration(r.Most)
	switch {
	case r.Unbounded:
		return "from " + least
	case least == most:
		return least
	}
	return least + "–" + most
}

func columnWidth(texts []string) (widest int) {
	for _, t := range texts {
		widest = max(widest, lipgloss.Width(t))
	}
	return widest
}
