package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/10f93571/retry/runner"
)

// Stats draws a table of commands with what became of their runs; hidden is how many more were left out.
func Stats(w io.Writer, s Screen, commands []runner.CommandStats, hidden int, since, now time.Time) error {
	if len(commands) == 0 {
		return noStats(w, since, now)
	}
	columns := slices.DeleteFunc(slices.Clone(statsColumns), func(c statsColumn) bool { return c.empty(commands) })
	rows := [][]string{nil}
	for _, c := range columns {
		rows[0] = append(rows[0], s.paint(bold, c.title))
	}
	for i := range commands {
		var row []string
		for _, c := range columns {
			row = append(row, c.cell(s, &commands[i]))
		}
		rows = append(rows, row)
	}
	if err := s.writeRows(w, rows); err != nil || hidden == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "… and %d more: retry stats --limit 0\n", hidden)
	return err
}

func noStats(w io.Writer, since, now time.Time) error {
	text := "no tasks yet"
	if !since.IsZero() {
		text = "no tasks since " + clock(since, now)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// statsColumn is a column of the table. One that is rarely needed is left out where no command has anything in it, so that there is
// room for the command lines.
type statsColumn struct {
	title string
	cell  func(Screen, *runner.CommandStats) string
	rare  func(*runner.CommandStats) int // nil for a column that is always there
}

var statsColumns = []statsColumn{
	{title: "RUNS", cell: func(_ Screen, c *runner.CommandStats) string { return strconv.Itoa(c.Runs) }},
	{title: "FIRST TRY", cell: func(_ Screen, c *runner.CommandStats) string { return tallied(c.FirstTry) }},
	{title: "RESCUED", cell: func(_ Screen, c *runner.CommandStats) string { return tallied(c.Rescues) }},
	{title: "FAILED", cell: failures},
	{title: "CANCELLED", cell: func(_ Screen, c *runner.CommandStats) string { return tallied(c.Cancelled) },
		rare: func(c *runner.CommandStats) int { return c.Cancelled }},
	{title: "OPEN", cell: func(_ Screen, c *runner.CommandStats) string { return tallied(c.Unfinished) },
		rare: func(c *runner.CommandStats) int { return c.Unfinished }},
	{title: "P50", cell: func(_ Screen, c *runner.CommandStats) string { return quantile(c, c.P50) }},
	{title: "P95", cell: func(_ Screen, c *runner.CommandStats) string { return quantile(c, c.P95) }},
	{title: "WAITED", cell: func(_ Screen, c *runner.CommandStats) string { return waiting(c.Waiting) }},
	{title: "COMMAND", cell: named},
}

func (c statsColumn) empty(commands []runner.CommandStats) bool {
	return c.rare != nil && !slices.ContainsFunc(commands, func(s runner.CommandStats) bool { return c.rare(&s) > 0 })
}

func failures(s Screen, c *runner.CommandStats) string {
	if c.Failures == 0 {
		return tallied(0)
	}
	return s.paint(red, tallied(c.Failures))
}

func quantile(c *runner.CommandStats, d time.Duration) string {
	if c.Ended == 0 {
		return "-"
	}
	return Duration(d)
}

// named writes a command line behind the name of its tasks.
func named(_ Screen, c *runner.CommandStats) string {
	if c.Name == "" {
		return briefCommand(c.Command)
	}
	return brief(c.Name) + ": " + briefCommand(c.Command)
}

// tallied leaves out zeros, so that the others stand out.
func tallied(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func waiting(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return Duration(d)
}

// commandStatsJSON is the stable form of a command's statistics; docs/json.md describes it.
type commandStatsJSON struct {
	Name       *string      `json:"name"`
	Command    []string     `json:"command"`
	Runs       int          `json:"runs"`
	FirstTry   int          `json:"first_try"`
	Rescues    int          `json:"rescues"`
	Failures   int          `json:"failures"`
	Cancelled  int          `json:"cancelled"`
	Unfinished int          `json:"unfinished"`
	DurationMS *quantilesMS `json:"duration_ms"`
	WaitingMS  int64        `json:"waiting_ms"`
}

type quantilesMS struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
}

// StatsJSON writes the statistics of commands.
func StatsJSON(w io.Writer, commands []runner.CommandStats, since time.Time) error {
	list := make([]commandStatsJSON, len(commands))
	for i, c := range commands {
		list[i] = commandStatsJSON{
			Name: present(c.Name), Command: c.Command, Runs: c.Runs, FirstTry: c.FirstTry, Rescues: c.Rescues, Failures: c.Failures,
			Cancelled: c.Cancelled, Unfinished: c.Unfinished, WaitingMS: c.Waiting.Milliseconds(),
		}
		if c.Ended > 0 {
			list[i].DurationMS = &quantilesMS{P50: c.P50.Milliseconds(), P95: c.P95.Milliseconds()}
		}
	}
	return writeJSON(w, struct {
		Since    *string            `json:"since"`
		Commands []commandStatsJSON `json:"commands"`
	}{timestamp(since), list})
}
