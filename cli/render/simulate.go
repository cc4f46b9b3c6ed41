package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
)

// Lock writes what became of clients that wanted a lock, a row for each spec.
func Lock(w io.Writer, s Screen, l plot.Lock, trials []plot.Trial) error {
	err := s.write(w, fmt.Sprintf("%s for a lock that each holds for %s%s; done at the best after %s",
		text.Count(l.Clients, "client"), text.FormatDuration(l.Hold), spinning(l.Spin), text.Duration(l.Ideal())), "")
	if err != nil {
		return err
	}
	if err := s.trials(w, "COLLISIONS", trials); err != nil {
		return err
	}
	return s.waves(w, trials)
}

func spinning(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return ", and waits for " + text.FormatDuration(d) + " in each call"
}

// Outage writes what became of clients of a service that came back, a row for each spec.
func Outage(w io.Writer, s Screen, o plot.Outage, trials []plot.Trial) error {
	err := s.write(w, fmt.Sprintf("%s of a service that is down for %s and then answers %s a second; done at the best after %s",
		text.Count(o.Clients, "client"), text.FormatDuration(o.Down), text.Count(o.Capacity, "call"), text.Duration(o.Ideal())), "")
	if err != nil {
		return err
	}
	return s.trials(w, "REJECTED", trials)
}

// trialColumn is a figure of a trial; the less the better.
type trialColumn struct {
	title string
	value func(plot.Trial) int64 // negative for never
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

// trials writes the table. The best of each column is marked where there is something to compare.
func (s Screen) trials(w io.Writer, refused string, trials []plot.Trial) error {
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
				text = s.paint(green, text+"*")
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	write, of := s.writeRows, "column"
	if s.tooWide(rows) {
		write, of = s.turned, "row"
	}
	if err := write(w, rows); err != nil {
		return err
	}
	return s.trialNotes(w, trials, of)
}

// tooWide reports whether a table has no room on the screen.
func (s Screen) tooWide(rows [][]string) bool {
	wide := -columnGap
	for _, width := range columnWidths(rows) {
		wide += width + columnGap
	}
	return s.Width > 0 && wide > s.Width
}

// turned writes each spec as a column instead of a row: what a row loses at its end are the figures that one looks for.
func (s Screen) turned(w io.Writer, rows [][]string) error {
	for _, row := range rows[1:] {
		row[0] = shorten(row[0], min(longestColumn, s.Width/2))
	}

	for _, line := range s.columns(rows[0], rows[1:], s.Width) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// best reports whether nobody has less, and somebody has more. What takes for ever is not the best of anything: it has few calls because
// it was given up.
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

// specName is what was asked for; of a bare curve it also tells the jitter that is implied.
func specName(s plot.Subject) string {
	spec := s.Policy.Backoff
	if s.Label == spec.Curve() && strings.Contains(s.Label, ":") {
		return brief(s.Label) + "/" + spec.Jitter()
	}
	return brief(s.Label)
}

// trialNotes say what the marks mean, of a column or a row, and what the figures do not show.
func (s Screen) trialNotes(w io.Writer, trials []plot.Trial, of string) error {
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
	return s.write(w, notes...)
}

// write writes texts, each on lines of its own that fit the screen; into a pipe it goes as one.
func (s Screen) write(w io.Writer, texts ...string) error {
	for _, text := range texts {
		if s.Width > 0 {
			text = strings.Join(wrapped(text, s.Width), "\n")
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// wavesShown is how many waves are told.
const wavesShown = 12

// waves writes how many of the first calls, of the first retries and so on were collisions.
func (s Screen) waves(w io.Writer, trials []plot.Trial) error {
	rows := [][]string{{"COLLISIONS PER WAVE", "FIRST CALLS, FIRST RETRIES, SECOND …"}}
	for _, t := range trials {
		name := specName(t.Subject)
		if s.Width > 0 {
			name = shorten(name, min(longestColumn, s.Width/2))
		}
		rows = append(rows, []string{name, ""})
	}
	room := s.Width - columnWidths(rows)[0] - columnGap
	for i, t := range trials {
		rows[i+1][1] = waveCounts(t.ByWave, room)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return s.writeRows(w, rows)
}

// waveCounts are as many of the waves as there is room for; a room below 0 has no end. Half a number would be another number.
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

type lockJSON struct {
	Clients int         `json:"clients"`
	HoldMS  int64       `json:"hold_ms"`
	SpinMS  int64       `json:"spin_ms"`
	Seed    uint64      `json:"seed"`
	IdealMS int64       `json:"ideal_ms"`
	Specs   []trialJSON `json:"specs"`
}

type outageJSON struct {
	Clients  int         `json:"clients"`
	DownMS   int64       `json:"down_ms"`
	Capacity int         `json:"capacity"`
	Seed     uint64      `json:"seed"`
	IdealMS  int64       `json:"ideal_ms"`
	Specs    []trialJSON `json:"specs"`
}

type trialJSON struct {
	Label             string   `json:"label"`
	Backoff           string   `json:"backoff"`
	Jitter            string   `json:"jitter"`
	Calls             int      `json:"calls"`
	Rejected          *int     `json:"rejected"`
	Collisions        *int     `json:"collisions"`
	CollisionsPerWave []int    `json:"collisions_per_wave"`
	Wait              waitJSON `json:"wait_ms"`
	Done              doneJSON `json:"done_ms"`
	Unfinished        int      `json:"unfinished"`
}

type waitJSON struct {
	P50 *int64 `json:"p50"`
	P95 *int64 `json:"p95"`
	P99 *int64 `json:"p99"`
}

type doneJSON struct {
	P99 *int64 `json:"p99"`
	All *int64 `json:"all"`
}

// LockJSON writes the trials of a lock; docs/json.md describes them.
func LockJSON(w io.Writer, l plot.Lock, trials []plot.Trial) error {
	j := lockJSON{Clients: l.Clients, HoldMS: l.Hold.Milliseconds(), SpinMS: l.Spin.Milliseconds(), Seed: l.Seed, IdealMS: l.Ideal().Milliseconds()}
	for _, t := range trials {
		spec := trialToJSON(t)
		spec.Collisions, spec.CollisionsPerWave = &t.Refused, t.ByWave
		j.Specs = append(j.Specs, spec)
	}
	return writeJSON(w, j)
}

// OutageJSON writes the trials of an outage; docs/json.md describes them.
func OutageJSON(w io.Writer, o plot.Outage, trials []plot.Trial) error {
	j := outageJSON{Clients: o.Clients, DownMS: o.Down.Milliseconds(), Capacity: o.Capacity, Seed: o.Seed, IdealMS: o.Ideal().Milliseconds()}
	for _, t := range trials {
		spec := trialToJSON(t)
		spec.Rejected = &t.Refused
		j.Specs = append(j.Specs, spec)
	}
	return writeJSON(w, j)
}

func trialToJSON(t plot.Trial) trialJSON {
	spec := t.Subject.Policy.Backoff
	return trialJSON{
		Label: t.Subject.Label, Backoff: spec.Curve(), Jitter: spec.Jitter(), Calls: t.Calls,
		Wait:       waitJSON{whenever(t.Wait.P50), whenever(t.Wait.P95), whenever(t.Wait.P99)},
		Done:       doneJSON{whenever(t.Done.P99), whenever(t.Done.All)},
		Unfinished: t.Left,
	}
}

// whenever is null for never.
func whenever(d time.Duration) *int64 {
	if d == plot.Never {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
