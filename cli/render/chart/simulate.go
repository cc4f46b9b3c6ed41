package chart

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
)

// Simulation writes the results of a simulated lock or outage, a row for each spec.
func Simulation(w io.Writer, s render.Screen, simulation plot.Simulation, trials []plot.Trial) error {
	var about, refused, waves string
	switch of := simulation.(type) {
	case plot.Lock:
		spinning := ""
		if of.Spin > 0 {
			spinning = ", and waits for " + text.FormatDuration(of.Spin) + " in each call"
		}
		about = fmt.Sprintf("%s for a lock that each holds for %s%s", text.Count(of.Clients, "client"), text.FormatDuration(of.Hold), spinning)
		refused, waves = "COLLISIONS", "\n"+waveTable(s, trials)
	case plot.Outage:
		about = fmt.Sprintf("%s of a service that is down for %s and then answers %s a second",
			text.Count(of.Clients, "client"), text.FormatDuration(of.Down), text.Count(of.Capacity, "call"))
		refused = "REJECTED"
	}
	about += "; done at the best after " + text.Duration(simulation.Ideal())
	_, err := io.WriteString(w, wrapped(s.Width, about, "")+trialTable(s, refused, trials)+waves)
	return err
}

// trialColumn is a figure of a trial; a lower one is better.
type trialColumn struct {
	title string
	value func(plot.Trial) int64 // negative: never
	text  func(int64) string
}

func trialColumns(refused string) []trialColumn {
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	since := func(n int64) string {
		if n < 0 {
			return "never"
		}
		return text.Duration(time.Duration(n))
	}
	return []trialColumn{
		{"CALLS", func(t plot.Trial) int64 { return int64(t.Calls) }, whole},
		{refused, func(t plot.Trial) int64 { return int64(t.Refused) }, whole},
		{"WAIT P50", func(t plot.Trial) int64 { return int64(t.Wait.P50) }, since},
		{"P95", func(t plot.Trial) int64 { return int64(t.Wait.P95) }, since},
		{"P99", func(t plot.Trial) int64 { return int64(t.Wait.P99) }, since},
		{"99% DONE", func(t plot.Trial) int64 { return int64(t.Done.P99) }, since},
		{"ALL DONE", func(t plot.Trial) int64 { return int64(t.Done.All) }, since},
	}
}

// trialTable marks the best of each column where the trials differ.
func trialTable(s render.Screen, refused string, trials []plot.Trial) string {
	columns := trialColumns(refused)
	titles := []string{"SPEC"}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	rows := [][]string{titles}
	for _, t := range trials {
		row := []string{specName(t.Subject)}
		for _, c := range columns {
			text := c.text(c.value(t))
			if c.best(t, trials) {
				text = s.Paint(render.Green, text+"*")
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	width := -render.ColumnGap
	for _, w := range render.ColumnWidths(rows) {
		width += w + render.ColumnGap
	}
	if s.Width == 0 || width <= s.Width {
		return s.Rows(rows) + trialNotes(s, trials, "column")
	}
	// A column of each spec: a row would be cut before the last figures, which matter most.
	for _, row := range rows[1:] {
		row[0] = shorten(row[0], min(longestColumn, s.Width/2))
	}
	return figureTables(s, rows[0], rows[1:]) + trialNotes(s, trials, "row")
}

// best reports whether no trial has less, and some trial has more. A trial that was stopped is never the best: it has
// few calls only because it was stopped.
func (c trialColumn) best(t plot.Trial, trials []plot.Trial) bool {
	mine, more := c.value(t), false
	if mine < 0 || t.Left > 0 {
		return false
	}
	for _, other := range trials {
		theirs := c.value(other)
		if theirs >= 0 && other.Left == 0 && theirs < mine {
			return false
		}
		more = more || theirs != mine
	}
	return more
}

const longLabel = 400

// specName is the label of a spec. For a curve without a jitter it adds the default jitter.
func specName(s plot.Subject) string {
	spec := s.Policy.Backoff
	if s.Label == spec.Curve() && strings.Contains(s.Label, ":") {
		return text.Escape(text.Shorten(s.Label, longLabel)) + "/" + spec.Jitter()
	}
	return text.Escape(text.Shorten(s.Label, longLabel))
}

// trialNotes explain the marks, and tell what the figures do not show.
func trialNotes(s render.Screen, trials []plot.Trial, of string) string {
	var notes []string
	if len(trials) > 1 {
		notes = append(notes, "* the least of the "+of)
	}
	for _, t := range trials {
		if t.Left > 0 {
			notes = append(notes, fmt.Sprintf("%s: %s of %d were not done after %s and %s, where the simulation ended",
				specName(t.Subject), text.Count(t.Left, "client"), t.Clients, text.Duration(t.Ended), text.Count(t.Calls, "call")))
		}
		if n := len(t.Subject.Policy.Rules); n > 0 {
			notes = append(notes, fmt.Sprintf("%s has %s, which the simulation leaves out: its clients follow the policy's own curve",
				specName(t.Subject), text.Count(n, "rule")))
		}
	}
	return wrapped(s.Width, notes...)
}

// wrapped wraps each text to a width. Where that is 0, a text is one line.
func wrapped(width int, texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		if width > 0 {
			text = strings.Join(render.Wrapped(text, width), "\n")
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

// wavesShown is the most waves in the table.
const wavesShown = 12

// waveTable writes how many of the first calls, of the first retries and so on were collisions.
func waveTable(s render.Screen, trials []plot.Trial) string {
	rows := [][]string{{"COLLISIONS PER WAVE", "FIRST CALLS, FIRST RETRIES, SECOND …"}}
	for _, t := range trials {
		name := specName(t.Subject)
		if s.Width > 0 {
			name = shorten(name, min(longestColumn, s.Width/2))
		}
		rows = append(rows, []string{name, ""})
	}
	room := s.Width - render.ColumnWidths(rows)[0] - render.ColumnGap
	for i, t := range trials {
		rows[i+1][1] = waveCounts(t.ByWave, room)
	}
	return s.Rows(rows)
}

// waveCounts are as many counts as have room; a negative room is unlimited. A count is never cut, as half a number is
// another one.
func waveCounts(waves []int, room int) string {
	text := ""
	for i, n := range waves {
		next := text + strconv.Itoa(n) + " "
		if i == wavesShown || room >= 0 && len(next) >= room {
			return text + "…"
		}
		text = next
	}
	return text
}
