package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// minCommandWidth is the width of the command column below which another column is dropped.
const minCommandWidth = 24

// Stats draws a table of commands and the results of their runs; hidden is the number of commands that were left out.
func Stats(w io.Writer, s Screen, commands []task.CommandStats, hidden int, since, now time.Time) error {
	if len(commands) == 0 {
		none := "no tasks yet"
		if !since.IsZero() {
			none = "no tasks since " + clock(since, now)
		}
		_, err := fmt.Fprintln(w, none)
		return err
	}
	columns := slices.DeleteFunc(statsColumns(), func(c statsColumn) bool { return c.empty(commands) })
	rows := s.statsRows(columns, commands, now)
	for s.Width > 0 && minTableWidth(rows) > s.Width {
		lightest := slices.MinFunc(columns, func(a, b statsColumn) int { return cmp.Compare(a.weight, b.weight) }).weight
		if lightest == always {
			break
		}
		columns = slices.DeleteFunc(columns, func(c statsColumn) bool { return c.weight == lightest })
		rows = s.statsRows(columns, commands, now)
	}
	if err := s.WriteRows(w, rows); err != nil || hidden == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "… and %d more: retry stats --limit 0\n", hidden)
	return err
}

// minTableWidth is the width that the table needs at least.
func minTableWidth(rows [][]string) int {
	widths := ColumnWidths(rows)
	width := min(widths[len(widths)-1], minCommandWidth)
	for _, w := range widths[:len(widths)-1] {
		width += w + ColumnGap
	}
	return width
}

func (s Screen) statsRows(columns []statsColumn, commands []task.CommandStats, now time.Time) [][]string {
	rows := [][]string{nil}
	for _, c := range columns {
		rows[0] = append(rows[0], c.title)
	}
	for i := range commands {
		var row []string
		for _, c := range columns {
			row = append(row, c.cell(s, &commands[i], now))
		}
		rows = append(rows, row)
	}
	return rows
}

// statsColumn is a column of the table. A column that is rarely needed is left out where it would be empty. On a narrow
// screen the columns of the least weight are dropped, so that the commands can be read.
type statsColumn struct {
	title  string
	weight int
	cell   func(s Screen, c *task.CommandStats, now time.Time) string
	rare   func(*task.CommandStats) int // nil for a column that is always there
}

// always is the weight of a column that is never dropped.
const always = 9

// statsColumns is a function: a package variable would be made at every start.
func statsColumns() []statsColumn {
	return []statsColumn{
		{title: "LAST", weight: always, cell: lastRunCell},
		{title: "RUNS", weight: always, cell: countCell(func(c *task.CommandStats) int { return c.Runs })},
		{title: "FIRST TRY", weight: 3, cell: countCell(func(c *task.CommandStats) int { return c.FirstTry })},
		{title: "RESCUED", weight: 7, cell: countCell(func(c *task.CommandStats) int { return c.Rescues })},
		{title: "FAILED", weight: always, cell: failuresCell},
		{title: "CANCELLED", weight: 2, cell: countCell(cancelled), rare: cancelled},
		{title: "OPEN", weight: 6, cell: countCell(unfinished), rare: unfinished},
		{title: "P50", weight: 4, cell: func(_ Screen, c *task.CommandStats, _ time.Time) string { return quantile(c, c.P50) }},
		{title: "P95", weight: 5, cell: func(_ Screen, c *task.CommandStats, _ time.Time) string { return quantile(c, c.P95) }},
		{title: "WAITED", weight: 1, cell: func(_ Screen, c *task.CommandStats, _ time.Time) string { return durationOrDash(c.Waiting) }},
		{title: "COMMAND", weight: always, cell: commandCell},
	}
}

func countCell(of func(*task.CommandStats) int) func(Screen, *task.CommandStats, time.Time) string {
	return func(_ Screen, c *task.CommandStats, _ time.Time) string { return countOrDash(of(c)) }
}

func cancelled(c *task.CommandStats) int { return c.Cancelled }

func unfinished(c *task.CommandStats) int { return c.Unfinished }

func (c statsColumn) empty(commands []task.CommandStats) bool {
	return c.rare != nil && !slices.ContainsFunc(commands, func(s task.CommandStats) bool { return c.rare(&s) > 0 })
}

// lastRunCell says how the last run of a command ended, or that one is running.
func lastRunCell(s Screen, c *task.CommandStats, now time.Time) string {
	switch last := &c.Last; {
	case last.Running:
		return s.Paint(Blue, "running")
	case last.Status == "":
		return "-"
	case last.Broken():
		return s.Paint(Red, failureText(last)+" "+agoRoughly(last.FinishedAt, now))
	default:
		return "ok " + agoRoughly(last.FinishedAt, now)
	}
}

// failureText is the outcome of a failed run. Where that is a success (too few in a row) or none (its owner died), it
// is the status.
func failureText(last *task.LastRuns) string {
	if text := Outcome(last.Outcome); text != "ok" && !last.Outcome.IsCrash() {
		return text
	}
	return strings.ToLower(string(last.Status))
}

func failuresCell(s Screen, c *task.CommandStats, _ time.Time) string {
	if c.Failures == 0 {
		return countOrDash(0)
	}
	return s.Paint(Red, countOrDash(c.Failures))
}

func quantile(c *task.CommandStats, d time.Duration) string {
	if c.Ended == 0 {
		return "-"
	}
	return text.Duration(d)
}

// commandCell writes a command line after the name of its tasks.
func commandCell(_ Screen, c *task.CommandStats, _ time.Time) string {
	command := commandUpTo(c.Command, longText)
	if c.Endpoint.Method != "" {
		command = brief(c.Endpoint.Method + " " + c.Endpoint.URL)
	}
	if c.Name == "" {
		return command
	}
	return brief(c.Name) + ": " + command
}

// countOrDash writes a dash for 0, so that the other numbers stand out.
func countOrDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// commandStatsJSON is the stable form of a command's statistics; docs/json.md describes it.
type commandStatsJSON struct {
	Name       *string        `json:"name"`
	Command    []string       `json:"command"`
	Request    *task.Endpoint `json:"request"`
	Runs       int            `json:"runs"`
	FirstTry   int            `json:"first_try"`
	Rescues    int            `json:"rescues"`
	Failures   int            `json:"failures"`
	Cancelled  int            `json:"cancelled"`
	Unfinished int            `json:"unfinished"`
	DurationMS *quantilesMS   `json:"duration_ms"`
	WaitingMS  int64          `json:"waiting_ms"`

	LastStatus     *string `json:"last_status"`
	LastFinishedAt *string `json:"last_finished_at"`
	LastSuccessAt  *string `json:"last_success_at"`
}

type quantilesMS struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
}

// StatsJSON writes the statistics of commands.
func StatsJSON(w io.Writer, commands []task.CommandStats, since time.Time) error {
	list := make([]commandStatsJSON, len(commands))
	for i, c := range commands {
		list[i] = commandStatsJSON{
			Name: present(c.Name), Command: c.Command, Runs: c.Runs, FirstTry: c.FirstTry, Rescues: c.Rescues, Failures: c.Failures,
			Cancelled: c.Cancelled, Unfinished: c.Unfinished, WaitingMS: c.Waiting.Milliseconds(),
			LastStatus: present(string(c.Last.Status)), LastFinishedAt: timestamp(c.Last.FinishedAt), LastSuccessAt: timestamp(c.Last.SucceededAt),
		}
		if c.Endpoint.Method != "" {
			list[i].Request = &c.Endpoint
		}
		if c.Ended > 0 {
			list[i].DurationMS = &quantilesMS{P50: c.P50.Milliseconds(), P95: c.P95.Milliseconds()}
		}
	}
	return WriteJSON(w, struct {
		Since    *string            `json:"since"`
		Commands []commandStatsJSON `json:"commands"`
	}{timestamp(since), list})
}
