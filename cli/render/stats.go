package render

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/10f93571/retry/runner"
)

// Stats draws a table of commands with what became of their runs; hidden is how many more were left out.
func Stats(w io.Writer, s Screen, commands []runner.CommandStats, hidden int, since, now time.Time) error {
	if len(commands) == 0 {
		return noStats(w, since, now)
	}
	rows := [][]string{s.header("RUNS", "FIRST TRY", "RESCUED", "FAILED", "CANCELLED", "UNFINISHED", "P50", "P95", "WAITED", "NAME", "COMMAND")}
	for i := range commands {
		rows = append(rows, s.statsRow(&commands[i]))
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

func (s Screen) statsRow(c *runner.CommandStats) []string {
	failures := tallied(c.Failures)
	if c.Failures > 0 {
		failures = s.paint(red, failures)
	}
	p50, p95 := "-", "-"
	if c.Ended > 0 {
		p50, p95 = Duration(c.P50), Duration(c.P95)
	}
	name := "-"
	if c.Name != "" {
		name = Escape(c.Name)
	}
	return []string{
		strconv.Itoa(c.Runs), tallied(c.FirstTry), tallied(c.Rescues), failures, tallied(c.Cancelled), tallied(c.Unfinished),
		p50, p95, waited(c.Waiting), name, Command(c.Command),
	}
}

// tallied leaves out zeros, so that the others stand out.
func tallied(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func waited(d time.Duration) string {
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
