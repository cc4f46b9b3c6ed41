package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/picture"
)

const (
	longestColumn = 30
	manyTasks     = 10_000 // of fewer, the fullest part of an octave is the one that chance has filled
)

// figures is the table of what was measured, a column a study; as many tables as it takes for all of them.
func (s Screen) figures(studies []plot.Study, width int) []string {
	names := []string{""}
	for _, f := range picture.Figures(studies[0]) {
		names = append(names, f.Name)
	}
	var columns [][]string
	for _, study := range studies {
		columns = append(columns, figureColumn(study))
	}
	return s.columns(names, columns, width)
}

// columns writes what stands in columns, with the names of the rows before them: as many tables as it takes for all of them.
func (s Screen) columns(names []string, columns [][]string, width int) (lines []string) {
	for len(columns) > 0 {
		table := [][]string{names}
		used := columnWidth(names)
		for len(columns) > 0 {
			wide := columnGap + columnWidth(columns[0])
			if len(table) > 1 && used+wide > width {
				break
			}
			table, columns, used = append(table, columns[0]), columns[1:], used+wide
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, s.figureRows(table, width)...)
	}
	return lines
}

func figureColumn(study plot.Study) []string {
	column := []string{shorten(text.Escape(study.Subject.Label), longestColumn)}
	for _, f := range picture.Figures(study) {
		column = append(column, f.Value)
	}
	return column
}

// figureRows writes columns as lines.
func (s Screen) figureRows(columns [][]string, width int) (lines []string) {
	if len(columns) == 2 && columnWidth(columns[0])+columnGap+columnWidth(columns[1]) > width {
		return s.figureList(columns, width)
	}
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

// figureList writes each name above its value.
func (s Screen) figureList(columns [][]string, width int) []string {
	lines := []string{s.paint(bold, shorten(columns[1][0], width))}
	for i := 1; i < len(columns[0]); i++ {
		lines = append(lines, shorten(columns[0][i], width), shorten("  "+columns[1][i], width))
	}
	return lines
}

// plotNotes say what a picture does not show.
func plotNotes(studies []plot.Study, o plot.Options, width int) (notes []string) {
	unlimited := false
	for _, s := range studies {
		p := s.Subject.Policy
		unlimited = unlimited || p.Attempts == 0
		if len(p.Rules) > 0 {
			notes = append(notes, fmt.Sprintf("%s has %s, which the picture leaves out: it is of the policy's own curve.", text.Escape(s.Subject.Label), text.Count(len(p.Rules), "rule")))
		}
		if note := budgetNote(s, o); note != "" {
			notes = append(notes, text.Escape(s.Subject.Label)+": "+note)
		}
	}
	notes = append(notes, scaleNotes(studies)...)
	if unlimited {
		notes = append(notes, fmt.Sprintf("What has no limit of attempts is shown with %d; --attempts N shows others.", o.Retries+1))
	}
	if o.Tasks < manyTasks && slices.ContainsFunc(studies, jittered) {
		notes = append(notes, fmt.Sprintf("The worst local load of %s is mostly chance; --tasks 100000 tells more.", text.Count(o.Tasks, "task")))
	}
	if len(notes) == 0 {
		return nil
	}
	return append([]string{""}, wrapped(strings.Join(notes, "\n"), width)...)
}

func jittered(s plot.Study) bool {
	return slices.ContainsFunc(s.Retries, func(r plot.Retry) bool { return r.Least != r.Most })
}

// budgetNote says what the budget of a study cuts off; nothing where all waits fit into it.
func budgetNote(s plot.Study, o plot.Options) string {
	p, retries := s.Subject.Policy, o.Retries
	if p.Attempts > 0 {
		retries = p.Attempts - 1
	}
	longest := 0.0 // in seconds: a thousand years are more than a duration holds
	for _, r := range s.Retries {
		longest += r.Most.Seconds()
	}
	last := s.Retries[len(s.Retries)-1]
	switch {
	case p.Budget == 0 || s.Window.Most < p.Budget:
		return ""
	case last.N < retries || last.Tasks < s.Tasks:
		return fmt.Sprintf("the budget of %s ends tasks early; the last retry is number %d, of %s.", text.Duration(p.Budget), last.N, text.Count(last.Tasks, "task"))
	case longest > p.Budget.Seconds():
		return fmt.Sprintf("the budget of %s shortens a last wait that would pass it.", text.Duration(p.Budget))
	}
	return ""
}

// scaleNotes say which pictures can be compared by eye.
func scaleNotes(studies []plot.Study) (notes []string) {
	groups := alike(studies)
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
		notes = append(notes, fmt.Sprintf("Pictures whose windows differ by more than %d times have scales of their own.", comparable))
	}
	return notes
}
