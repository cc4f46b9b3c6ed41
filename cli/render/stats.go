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

// leastCommand is how much of the command lines is to be seen before a column is given up for them.
const leastCommand = 24

// Stats draws a table of commands with what became of their runs; hidden is how many more were left out.
func Stats(w io.Writer, s Screen, commands []task.CommandStats, hidden int, since, now time.Time) error {
	if len(commands) == 0 {
		return noStats(w, since, now)
	}
	columns := slices.DeleteFunc(slices.Clone(statsColumns), func(c statsColumn) bool { return c.empty(commands) })
	rows := s.statsRows(columns, commands, now)
	for s.Width > 0 && wanted(rows) > s.Width {
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

// wanted is how wide the table should at least be.
func wanted(rows [][]string) int {
	widths := ColumnWidths(rows)
	width := min(widths[len(widths)-1], leastCommand)
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

func noStats(w io.Writer, since, now time.Time) error {
	text := "no tasks yet"
	if !since.IsZero() {
		text = "no tasks since " + clock(since, now)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// statsColumn is a column of the table. One that is rarely needed is left out where no command has anything in it, and the lightest
// ones where the screen is narrow, so that there is room for the command lines.
type statsColumn struct {
	title  string
	weight int
	cell   func(s Screen, c *task.CommandStats, now time.Time) string
	rare   func(*task.CommandStats) int // nil for a column that is always there
}

// always is the weight of a column that stays on any screen.
const always = 9

var statsColumns = []statsColumn{
	{title: "LAST", weight: always, cell: lastRun},
	{title: "RUNS", weight: always, cell: tally(func(c *task.CommandStats) int { return c.Runs })},
	{title: "FIRST TRY", weight: 3, cell: tally(func(c *task.CommandStats) int { return c.FirstTry })},
	{title: "RESCUED", weight: 7, cell: tally(func(c *task.CommandStats) int { return c.Rescues })},
	{title: "FAILED", weight: always, cell: failures},
	{title: "CANCELLED", weight: 2, cell: tally(cancelled), rare: cancelled},
	{title: "OPEN", weight: 6, cell: tally(unfinished), rare: unfinished},
	{title: "P50", weight: 4, cell: func(_ Screen, c *task.CommandStats, _ time.Time) string { return quantile(c, c.P50) }},
	{title: "P95", weight: 5, cell: func(_ Screen, c *task.CommandStats, _ time.Time) string { return quantile(c, c.P95) }},
	{title: "WAITED", weight: 1, cell: func(_ Screen, c *task.CommandStats, _ time.Time) string { return durationOrDash(c.Waiting) }},
	{title: "COMMAND", weight: always, cell: named},
}

func tally(of func(*task.CommandStats) int) func(Screen, *task.CommandStats, time.Time) string {
	return func(_ Screen, c *task.CommandStats, _ time.Time) string { return tallied(of(c)) }
}

func cancelled(c *task.CommandStats) int { return c.Cancelled }

func unfinished(c *task.CommandStats) int { return c.Unfinished }

func (c statsColumn) empty(commands []task.CommandStats) bool {
	return c.rare != nil && !slices.ContainsFunc(commands, func(s task.CommandStats) bool { return c.rare(&s) > 0 })
}

// lastRun says how a command stands: how its last run came out, unless one is going on.
func lastRun(s Screen, c *task.CommandStats, now time.Time) string {
	switch last := &c.Last; {
	case last.Running:
		return s.Paint(Blue, "running")
	case last.Status == "":
		return "-"
	case last.Broken():
		return s.Paint(Red, complaint(last)+" "+agoRoughly(last.FinishedAt, now))
	default:
		return "ok " + agoRoughly(last.FinishedAt, now)
	}
}

// complaint is the outcome, unless that alone would not tell why the run failed: too few successes in a row, or no owner that lived.
func complaint(last *task.LastRuns) string {
	if text := Outcome(last.Outcome); text != "ok" && !last.Outcome.IsCrash() {
		return text
	}
	return strings.ToLower(string(last.Status))
}

func failures(s Screen, c *task.CommandStats, _ time.Time) string {
	if c.Failures == 0 {
		return tallied(0)
	}
	return s.Paint(Red, tallied(c.Failures))
}

func quantile(c *task.CommandStats, d time.Duration) string {
	if c.Ended == 0 {
		return "-"
	}
	return text.Duration(d)
}

// named writes a command line behind the name of its tasks.
func named(_ Screen, c *task.CommandStats, _ time.Time) string {
	command := briefCommand(c.Command)
	if c.Endpoint.Method != "" {
		command = brief(c.Endpoint.Method + " " + c.Endpoint.URL)
	}
	if c.Name == "" {
		return command
	}
	return brief(c.Name) + ": " + command
}

// tallied leaves out zeros, so that the others stand out.
func tallied(n int) string {
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
