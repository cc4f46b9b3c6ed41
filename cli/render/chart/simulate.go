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
		about = fmt.Sprintf("%s for a lock that each holds for %s%s",
			text.Count(of.Clients, "client"), text.FormatDuration(of.Hold), spinning)
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

// trialTable marks the least of each column where the trials differ. A trial that was stopped is never the best: it has
// few calls only because it was stopped.
func trialTable(s render.Screen, refused string, trials []plot.Trial) string {
	rows := [][]string{{"SPEC", "CALLS", refused, "WAIT P50", "P95", "P99", "99% DONE", "ALL DONE"}}
	values := make([][]time.Duration, len(trials))
	for i, t := range trials {
		rows = append(rows, []string{specName(t.Subject)})
		values[i] = []time.Duration{
			time.Duration(t.Calls), time.Duration(t.Refused), t.Wait.P50, t.Wait.P95, t.Wait.P99, t.Done.P99, t.Done.All,
		}
	}
	for column := range values[0] {
		least, differ := plot.Never, false
		for i, t := range trials {
			v := values[i][column]
			differ = differ || v != values[0][column]
			if t.Left == 0 && v != plot.Never && (least == plot.Never || v < least) {
				least = v
			}
		}
		for i, t := range trials {
			v := values[i][column]
			cell := text.Duration(v)
			switch {
			case column < 2: // a count
				cell = strconv.Itoa(int(v))
			case v == plot.Never:
				cell = "never"
			}
			if differ && t.Left == 0 && v == least {
				cell = s.Paint(render.Green, cell+"*")
			}
			rows[i+1] = append(rows[i+1], cell)
		}
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
			notes = append(notes, specName(t.Subject)+" has "+text.Count(n, "rule")+
				", which the simulation leaves out: its clients follow the policy's own curve")
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
