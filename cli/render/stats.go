package render

import (
	"fmt"
	"io"
	"strconv"
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
	rows := s.statsRows(commands, now)
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

var statsColumns = []column{{title: "LAST", weight: always}, {title: "RUNS", weight: always},
	{title: "FIRST TRY", weight: 3}, {title: "RESCUED", weight: 7}, {title: "FAILED", weight: always},
	{title: "CANCELLED", weight: 2, optional: true}, {title: "OPEN", weight: 6, optional: true},
	{title: "P50", weight: 4}, {title: "P95", weight: 5}, {title: "WAITED", weight: 1}, {title: "COMMAND", weight: always}}

// statsRows makes the table. On a narrow screen the columns of the least weight are left out.
func (s Screen) statsRows(commands []task.CommandStats, now time.Time) [][]string {
	rows := [][]string{titles(statsColumns)}
	for i := range commands {
		c := &commands[i]
		rows = append(rows, []string{
			s.lastRun(&c.Last, now), countOrDash(c.Runs), countOrDash(c.FirstTry), countOrDash(c.Rescues),
			s.failures(c.Failures), countOrDash(c.Cancelled), countOrDash(c.Unfinished),
			quantile(c, c.P50), quantile(c, c.P95), durationOrDash(c.Waiting), statsTitle(c),
		})
	}
	return pick(rows, s.columns(rows, statsColumns))
}

// lastRun says how the last run of a command ended, or that one is running.
func (s Screen) lastRun(last *task.LastRuns, now time.Time) string {
	switch {
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
	return StatusWord(last.Status)
}

func (s Screen) failures(n int) string {
	if n == 0 {
		return countOrDash(n)
	}
	return s.Paint(Red, countOrDash(n))
}

func quantile(c *task.CommandStats, d time.Duration) string {
	if c.Ended == 0 {
		return "-"
	}
	return text.Duration(d)
}

// statsTitle writes a command line after the name of its tasks.
func statsTitle(c *task.CommandStats) string {
	command := commandUpTo(text.MaskCommand(c.Command, c.Mask), longText)
	if c.Endpoint.Method != "" {
		command = brief(c.Endpoint.Method + " " + text.MaskPattern(c.Endpoint.URL, c.Mask))
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
			Name: present(c.Name), Command: text.MaskCommand(c.Command, c.Mask),
			Runs: c.Runs, FirstTry: c.FirstTry, Rescues: c.Rescues, Failures: c.Failures, Cancelled: c.Cancelled,
			Unfinished: c.Unfinished, WaitingMS: c.Waiting.Milliseconds(),
			LastStatus: present(string(c.Last.Status)), LastFinishedAt: timestamp(c.Last.FinishedAt),
			LastSuccessAt: timestamp(c.Last.SucceededAt),
		}
		if c.Endpoint.Method != "" {
			c.Endpoint.URL = text.MaskPattern(c.Endpoint.URL, c.Mask)
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
