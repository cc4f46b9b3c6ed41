// Package chart is the terminal backend of plot/chart. It also writes the tables of simulations, and the JSON of both.
package chart

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/chart"
)

const (
	usualWidth    = 80 // where the output is no terminal
	minPlotWidth  = 40
	maxPlotWidth  = 200
	minChartWidth = 44 // where several charts stand in a row
	chartGap      = 3
	yLabelWidth   = 6 // the labels left of a diagram, followed by its axis
	longestColumn = 30
	manyTasks     = 10_000 // with fewer tasks the worst local load is mostly chance
)

// Plot draws studies: the charts side by side where there is room, and below them one table with the figures of all.
func Plot(w io.Writer, screen render.Screen, studies []plot.Study, o plot.Options) error {
	total := usualWidth
	if screen.Width > 0 {
		total = min(max(screen.Width, minPlotWidth), maxPlotWidth)
	}
	columns := min(len(studies), max(1, (total+chartGap)/(minChartWidth+chartGap)))
	width := (total+chartGap)/columns - chartGap
	var all []chartView
	for _, c := range chart.NewComparable(studies, width-yLabelWidth-1) {
		all = append(all, chartView{Chart: c, screen: screen, width: width, defaultRetries: o.Retries})
	}
	var text strings.Builder
	for row := range slices.Chunk(all, columns) {
		for _, line := range sideBySide(row) {
			text.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	text.WriteString(figures(screen, studies, total))
	if notes := plotNotes(studies, o); len(notes) > 0 {
		text.WriteString("\n" + wrapped(total, notes...))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// sideBySide draws charts next to each other. Each diagram begins on the same line as those beside it.
func sideBySide(views []chartView) (lines []string) {
	for _, part := range []func(chartView) []string{chartView.head, chartView.curve, chartView.scatter, chartView.load} {
		var blocks []string
		for i, v := range views {
			style := v.screen.On(lipgloss.NewStyle()).Width(v.width)
			if i < len(views)-1 {
				style = style.MarginRight(chartGap)
			}
			blocks = append(blocks, style.Render(strings.Join(part(v), "\n")))
		}
		lines = append(append(lines, strings.Split(lipgloss.JoinHorizontal(lipgloss.Top, blocks...), "\n")...), "")
	}
	return lines
}

// chartView is a chart as a terminal shows it.
type chartView struct {
	chart.Chart
	screen         render.Screen
	width          int
	defaultRetries int // where the policy has no limit of attempts
}

// cells is the width of a diagram.
func (v chartView) cells() int { return v.width - yLabelWidth - 1 }

// head names the study and what its label stands for.
func (v chartView) head() []string {
	policy := v.Study.Subject.Policy
	attempts := policy.Attempts
	if attempts == 0 {
		attempts = v.defaultRetries + 1
	}
	lines := []string{v.screen.Paint(render.Bold, shorten(text.Escape(v.Study.Subject.Label), v.width))}
	about := fmt.Sprintf("%d attempts, backoff %s, jitter %s", attempts, policy.Backoff.Curve(), policy.Backoff.Jitter())
	for _, line := range render.Wrapped(about, v.width) {
		lines = append(lines, v.screen.Paint(render.Faint, line))
	}
	return lines
}

// row is a line of a diagram with its label.
func (v chartView) row(label, cells string) string {
	space := strings.Repeat(" ", max(0, yLabelWidth-lipgloss.Width(label)))
	return space + label + v.screen.Paint(render.Faint, "│") + cells
}

// title is the first of the texts that fits.
func (v chartView) title(texts ...string) string {
	for _, text := range texts {
		if lipgloss.Width(text) <= v.width {
			return text
		}
	}
	return shorten(texts[len(texts)-1], v.width)
}

func shorten(text string, width int) string { return ansi.Truncate(text, width, "…") }

// xAxis is the line below a diagram. The label of the early retries, if any, stands at its begin.
func (v chartView) xAxis(a chart.Axis, cells int, early string) string {
	return strings.Repeat(" ", yLabelWidth+1) + v.screen.Paint(render.Faint, render.TimeAxis(a, cells, early))
}

// logNote says that an axis is logarithmic.
func logNote(a chart.Axis) string {
	if a.Log {
		return " (log)"
	}
	return ""
}

// figures is the table of results with a column for each study.
func figures(s render.Screen, studies []plot.Study, width int) string {
	names, columns := []string{""}, make([][]string, len(studies))
	for _, f := range chart.Figures(studies[0]) {
		names = append(names, f.Name)
	}
	for i, study := range studies {
		columns[i] = []string{shorten(text.Escape(study.Subject.Label), longestColumn)}
		for _, f := range chart.Figures(study) {
			columns[i] = append(columns[i], f.Value)
		}
	}
	return figureTables(render.Screen{Width: width, Color: s.Color}, names, columns)
}

// figureTables draws columns with the names of the rows before them, in as many tables as the screen's width needs.
func figureTables(s render.Screen, names []string, columns [][]string) string {
	var tables []string
	for len(columns) > 0 {
		n, used := 0, columnWidth(names)
		for n < len(columns) && (n == 0 || used+render.ColumnGap+columnWidth(columns[n]) <= s.Width) {
			used += render.ColumnGap + columnWidth(columns[n])
			n++
		}
		rows := make([][]string, len(names))
		for i, name := range names {
			rows[i] = []string{name}
			for _, c := range columns[:n] {
				rows[i] = append(rows[i], c[i])
			}
		}
		if used > s.Width {
			tables = append(tables, figureList(s, rows))
		} else {
			tables = append(tables, s.Rows(rows))
		}
		columns = columns[n:]
	}
	return strings.Join(tables, "\n")
}

func columnWidth(texts []string) (widest int) {
	for _, t := range texts {
		widest = max(widest, lipgloss.Width(t))
	}
	return widest
}

// figureList draws each name above its value.
func figureList(s render.Screen, rows [][]string) string {
	list := s.Paint(render.Bold, shorten(rows[0][1], s.Width)) + "\n"
	for _, row := range rows[1:] {
		list += shorten(row[0], s.Width) + "\n" + shorten("  "+row[1], s.Width) + "\n"
	}
	return list
}

// plotNotes tell what the charts do not show.
func plotNotes(studies []plot.Study, o plot.Options) (notes []string) {
	unlimited := false
	for _, s := range studies {
		p := s.Subject.Policy
		unlimited = unlimited || p.Attempts == 0
		if len(p.Rules) > 0 {
			notes = append(notes, fmt.Sprintf("%s has %s, which the picture leaves out: it is of the policy's own curve.",
				text.Escape(s.Subject.Label), text.Count(len(p.Rules), "rule")))
		}
		if note := budgetNote(s, o); note != "" {
			notes = append(notes, text.Escape(s.Subject.Label)+": "+note)
		}
	}
	notes = append(notes, scaleNotes(studies)...)
	if unlimited {
		notes = append(notes,
			fmt.Sprintf("What has no limit of attempts is shown with %d; --attempts N shows others.", o.Retries+1))
	}
	if o.Tasks < manyTasks && slices.ContainsFunc(studies, hasJitter) {
		notes = append(notes,
			"The worst local load of "+text.Count(o.Tasks, "task")+" is mostly chance; --tasks 100000 tells more.")
	}
	return notes
}

func hasJitter(s plot.Study) bool {
	return slices.ContainsFunc(s.Retries, func(r plot.Retry) bool { return r.Least != r.Most })
}

// budgetNote says what the budget of a study cuts off; it is empty where all delays fit into the budget.
func budgetNote(s plot.Study, o plot.Options) string {
	p, retries := s.Subject.Policy, o.Retries
	if p.Attempts > 0 {
		retries = p.Attempts - 1
	}
	longest := 0.0 // in seconds: a thousand years do not fit into a duration
	for _, r := range s.Retries {
		longest += r.Most.Seconds()
	}
	last := s.Retries[len(s.Retries)-1]
	switch {
	case p.Budget == 0 || s.Window.Most < p.Budget-p.LeastRoom():
		return ""
	case last.N < retries || last.Tasks < s.Tasks:
		return fmt.Sprintf("the budget of %s ends tasks early; the last retry is number %d, of %s.",
			text.Duration(p.Budget), last.N, text.Count(last.Tasks, "task"))
	case longest > (p.Budget - p.LeastRoom()).Seconds():
		return fmt.Sprintf("the budget of %s shortens a last wait that would pass it.", text.Duration(p.Budget))
	}
	return ""
}

// scaleNotes say which charts have the same axes.
func scaleNotes(studies []plot.Study) (notes []string) {
	groups := chart.Comparable(studies)
	if len(studies) > 1 && len(groups) == 1 {
		return []string{"All pictures have the same scales."}
	}
	for _, group := range groups {
		var labels []string
		for _, i := range group {
			labels = append(labels, text.Escape(studies[i].Subject.Label))
		}
		if len(group) > 1 {
			notes = append(notes, "The same scales: "+strings.Join(labels, ", "))
		}
	}
	if len(groups) > 1 {
		notes = append(notes,
			fmt.Sprintf("Pictures whose windows differ by more than %d times have scales of their own.", chart.MaxWindowRatio))
	}
	return notes
}
