package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/chart"
)

const (
	maxCurveRows   = 12
	minBarWidth    = 24 // of a range beside its numbers
	rangeMark      = "░"
	baseMark       = "┃"
	clippedMark    = "→"
	scatterRows    = 12
	minTasksDrawn  = 24 // however many retries each task has
	maxTasksDrawn  = 200
	retrySigns     = "123456789abcdefghijklmnopqrstuvwxyz"
	loadRows       = 4
	firstBraille   = 0x2800
	partsOfBlock   = 8
	blocksByHeight = " ▁▂▃▄▅▆▇█"
)

// brailleBits are the dots of a braille character by column, and by row from above.
var brailleBits = [2][4]rune{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

// retryColors repeat, but neighbouring retries have different ones.
var retryColors = [...]lipgloss.Style{render.Red, render.Yellow, render.Green, render.Cyan, render.Blue, render.Magenta}

// curve draws the delay before each retry, one row for each: the range that the jitter allows, and the delay without
// jitter.
func (v chartView) curve() []string {
	shown := v.curveRows()
	numbers := v.curveNumbers(shown)
	cells := v.cells() - lipgloss.Width(numbers[0])
	legend := logNote(v.Delay) + ": " + rangeMark + " range, " + baseMark + " base"
	title := v.title("Delay before retry n"+legend, "Delays"+legend)
	title += strings.Repeat(" ", max(1, yLabelWidth+1+cells-lipgloss.Width(title)))
	if lipgloss.Width(title)+lipgloss.Width(numbers[0]) <= v.width {
		title += v.screen.Paint(render.Faint, numbers[0])
	}
	lines := []string{title}
	for i, p := range shown {
		label := v.paintRetry(p.Retry.N, strconv.Itoa(p.Retry.N))
		lines = append(lines, v.row(label, v.delayBar(p, cells)+numbers[i+1]))
	}
	return append(lines, v.xAxis(v.Delay, cells, ""))
}

// curveRows are the retries that have a row: all, or evenly spaced ones and the last.
func (v chartView) curveRows() (rows []chart.Point) {
	step := (len(v.Curve) + maxCurveRows - 1) / maxCurveRows
	for i := 0; i < len(v.Curve); i += step {
		rows = append(rows, v.Curve[i])
	}
	if last := v.Curve[len(v.Curve)-1]; rows[len(rows)-1].Retry.N != last.Retry.N {
		rows = append(rows, last)
	}
	return rows
}

func (v chartView) delayBar(p chart.Point, cells int) string {
	column := func(place float64) int { return min(int(place*float64(cells)), cells-1) }
	from, to, base := column(p.Least), column(p.Most), column(p.Base)
	var b strings.Builder
	for i := range cells {
		switch {
		case i == base:
			b.WriteString(v.paintRetry(p.Retry.N, baseMark))
		case i == cells-1 && p.Clipped:
			b.WriteString(clippedMark)
		case from <= i && i <= to && from < to:
			b.WriteString(v.screen.Paint(render.Faint, rangeMark))
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// curveNumbers are the columns right of the ranges, their titles first. The range, which the bars show too, is left out
// first.
func (v chartView) curveNumbers(rows []chart.Point) []string {
	base, limits, cv := []string{"BASE"}, []string{"RANGE"}, []string{"CV"}
	for _, p := range rows {
		base, limits = append(base, text.Duration(p.Retry.Base)), append(limits, formatRange(p.Retry))
		cv = append(cv, strings.TrimPrefix(fmt.Sprintf("%.2f", p.Retry.CV), "0"))
	}
	columns := [][]string{base, limits, cv}
	if columnWidth(base)+columnWidth(limits)+columnWidth(cv)+3*render.ColumnGap > v.cells()-minBarWidth {
		columns = [][]string{base, cv}
	}
	lines := make([]string, len(rows)+1)
	for _, c := range columns {
		for i, cell := range c {
			lines[i] += strings.Repeat(" ", render.ColumnGap+columnWidth(c)-lipgloss.Width(cell)) + cell
		}
	}
	return lines
}

func formatRange(r plot.Retry) string {
	least, most := text.Duration(r.Least), text.Duration(r.Most)
	switch {
	case r.Unbounded:
		return "from " + least
	case least == most:
		return least
	}
	return least + "–" + most
}

// retriesPerSign is how many retries share a sign, or a colour.
func (v chartView) retriesPerSign() int {
	return (len(v.Study.Retries) + len(retrySigns) - 1) / len(retrySigns)
}

func (v chartView) signOf(retry int) int { return (retry - 1) / v.retriesPerSign() }

func (v chartView) paintRetry(retry int, text string) string {
	return v.screen.Paint(retryColors[v.signOf(retry)%len(retryColors)], text)
}

// scatter draws the retries of the first tasks: a task has its own height, the time goes to the right.
func (v chartView) scatter() []string {
	title, drawn := "Retries of "+text.Count(v.Study.Tasks, "task"), v.tasksDrawn()
	if drawn < v.Study.Tasks {
		title = fmt.Sprintf("Retries of the first %d of %d tasks", drawn, v.Study.Tasks)
	}
	scale := logNote(v.Time)
	title = v.title(title+" over the time since the first failure"+scale, title+" over time"+scale, title+scale)
	lines := []string{title, v.retryLegend()}
	cells, rows := v.scatterCells()
	for i := range rows {
		label := ""
		switch i {
		case rows - 1:
			label = "1"
		case 0:
			label = strconv.Itoa(drawn)
		}
		lines = append(lines, v.row(label, strings.Join(cells[i*v.cells():(i+1)*v.cells()], "")))
	}
	return lines
}

// tasksDrawn is the number of tasks of which most retries get a dot of their own.
func (v chartView) tasksDrawn() int {
	dots := scatterRows * 4 * v.cells() * 2
	return min(v.Study.Drawn, max(dots/len(v.Study.Retries), minTasksDrawn), maxTasksDrawn)
}

// retryLegend explains the colours or the signs.
func (v chartView) retryLegend() string {
	n, each := len(v.Study.Retries), v.retriesPerSign()
	switch {
	case v.screen.Color:
		return v.colorLegend(n, each)
	case each > 1:
		return v.title(fmt.Sprintf("signs 1-9, a-z stand for %d retries each", each))
	case n == 10:
		return v.title("a sign is the number of the retry, a is 10")
	case n > 10:
		return v.title(fmt.Sprintf("a sign is the number of the retry, a is 10, %c is %d", retrySigns[n-1], n))
	}
	return v.title("a sign is the number of the retry")
}

func (v chartView) colorLegend(n, each int) string {
	line := "retry"
	for first := 1; first <= n; first += each {
		label := strconv.Itoa(first)
		if last := min(first+each-1, n); last > first {
			label += "–" + strconv.Itoa(last)
		}
		if lipgloss.Width(line)+len(label)+3 > v.width {
			return line + " …"
		}
		line += " " + v.paintRetry(first, label)
	}
	return line
}

// scatterCells draws the cells of the scatter plot, row by row. With colours a cell has two columns of four dots;
// without, it shows the sign of the retry that most of its dots belong to.
func (v chartView) scatterCells() (cells []string, rows int) {
	drawn, width := v.tasksDrawn(), v.cells()
	rows = min(max((drawn+3)/4, 1), scatterRows)
	dots, counts := make([]rune, width*rows), make([][]int, width*rows) // counts are by sign
	for _, d := range v.Study.Dots {
		if d.Task >= drawn {
			break
		}
		x := min(int(v.Time.PlaceTime(d.At)*float64(2*width)), 2*width-1)
		y := 4*rows - 1 - d.Task*4*rows/max(drawn, 4*rows)
		i := y/4*width + x/2
		dots[i] |= brailleBits[x%2][y%4]
		if counts[i] == nil {
			counts[i] = make([]int, len(retrySigns))
		}
		counts[i][v.signOf(d.Retry)]++
	}
	cells = make([]string, len(dots))
	for i := range cells {
		if dots[i] == 0 {
			cells[i] = " "
			continue
		}
		sign := 0
		for s, n := range counts[i] {
			if n > 0 && n >= counts[i][sign] {
				sign = s
			}
		}
		if v.screen.Color {
			cells[i] = v.screen.Paint(retryColors[sign%len(retryColors)], string(firstBraille+dots[i]))
		} else {
			cells[i] = retrySigns[sign : sign+1]
		}
	}
	return cells, rows
}

// load draws how many retries fall into a second.
func (v chartView) load() []string {
	scale := logNote(v.Rate)
	titles := []string{"Load: retries a second, mean of a column" + scale, "Load: retries a second" + scale}
	if peak := v.Study.Load.Peak; peak > 0 {
		titles = slices.Insert(titles, 0, titles[0]+"; busiest second but the first: "+chart.FormatRate(peak))
	}
	lines := []string{v.title(titles...)}
	for row := loadRows - 1; row >= 0; row-- {
		var b strings.Builder
		bar := 0
		for i := range v.cells() {
			for bar < len(v.Load)-1 && v.Load[bar].To <= (float64(i)+0.5)/float64(v.cells()) {
				bar++
			}
			b.WriteRune(loadBlock(v.Rate, v.Load[bar].Rate, row))
		}
		label := ""
		switch row {
		case loadRows - 1:
			label = chart.FormatRate(v.Rate.Most)
		case 0:
			label = chart.FormatRate(v.Rate.Least)
		}
		lines = append(lines, v.row(label, b.String()))
	}
	return append(lines, v.xAxis(v.Time, v.cells(), v.Early))
}

// loadBlock is the part of a bar in one row, counted from below. Any load is high enough to be seen.
func loadBlock(a chart.Axis, rate float64, row int) rune {
	if rate <= 0 {
		return ' '
	}
	height := max(1, int(math.Round(a.Place(rate)*loadRows*partsOfBlock)))
	return []rune(blocksByHeight)[min(max(height-row*partsOfBlock, 0), partsOfBlock)]
}
