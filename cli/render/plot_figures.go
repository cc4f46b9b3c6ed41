package render

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/picture"
)

const longestColumn = 30

// figures is the table of what was measured, a column a study; as many tables as it takes for all of them.
func (s Screen) figures(studies []plot.Study, width int) (lines []string) {
	names := []string{""}
	for _, f := range picture.Figures(studies[0]) {
		names = append(names, f.Name)
	}
	for len(studies) > 0 {
		table := [][]string{names}
		used := columnWidth(names)
		for len(studies) > 0 {
			column := figureColumn(studies[0])
			wide := columnGap + columnWidth(column)
			if len(table) > 1 && used+wide > width {
				break
			}
			table, studies, used = append(table, column), studies[1:], used+wide
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, s.figureRows(table, width)...)
	}
	return lines
}

func figureColumn(study plot.Study) []string {
	column := []string{shorten(Escape(study.Subject.Label), longestColumn)}
	for _, f := range picture.Figures(study) {
		column = append(column, f.Value)
	}
	return column
}

// figureRows writes columns as lines.
func (s Screen) figureRows(columns [][]string, width int) (lines []string) {
	for i := range columns[0] {
		line := ""
		for j, c := range columns {
			text := c[i]
			if i == 0 {
				text = s.paint(bold, text)
			}
			if j > 0 {
				line += strings.Repeat(" ", columnGap)
			}
			line += text + strings.Repeat(" ", columnWidth(c)-lipgloss.Width(text))
		}
		lines = append(lines, Screen{Width: width}.cut(line))
	}
	return lines
}

// plotNotes say what a picture does not show.
func plotNotes(studies []plot.Study, width int) (notes []string) {
	unlimited := 0
	for _, s := range studies {
		p := s.Subject.Policy
		if p.Attempts == 0 {
			unlimited = len(s.Retries) + 1
		}
		if len(p.Rules) > 0 {
			notes = append(notes, fmt.Sprintf("%s: its own curve alone is drawn, not the delays of its %s.", Escape(s.Subject.Label), plural(len(p.Rules), "rule")))
		}
		if last := s.Retries[len(s.Retries)-1]; p.Budget > 0 && last.Tasks < s.Tasks {
			notes = append(notes, fmt.Sprintf("%s: the budget of %s leaves %s for retry %d.", Escape(s.Subject.Label), Duration(p.Budget), plural(last.Tasks, "task"), last.N))
		}
	}
	if !comparable(studies) {
		notes = append(notes, "The windows differ much, so each picture has scales of its own.")
	}
	if unlimited > 0 {
		notes = append(notes, fmt.Sprintf("What has no limit of attempts is shown with %d; --attempts N shows others.", unlimited))
	}
	if len(notes) == 0 {
		return nil
	}
	return append([]string{""}, strings.Split(lipgloss.Wrap(strings.Join(notes, "\n"), width, ""), "\n")...)
}
