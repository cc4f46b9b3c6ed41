package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Schedule is what a policy would do when every attempt fails: the delay before each retry and the waiting in all.
type Schedule struct {
	Policy  *task.Policy
	Retries []ScheduledRetry
}

// ScheduledRetry is a row of a schedule.
type ScheduledRetry struct {
	N                     int
	Base, Least, Most     time.Duration
	TotalLeast, TotalMost int64 // microseconds: a thousand delays of a year do not fit into a Duration
}

// unlimitedRows is how many retries are shown of a policy without a limit.
const unlimitedRows = 10

// maxRows keeps the schedule of a policy with a million attempts readable.
const maxRows = 1000

// NewSchedule computes the schedule of a policy from the curve and jitter that a run uses.
func NewSchedule(p *task.Policy) Schedule {
	n := unlimitedRows
	if p.Attempts > 0 {
		n = min(p.Attempts-1, maxRows)
	}
	s := Schedule{Policy: p}
	var least, most int64
	for i := 1; i <= n; i++ {
		low, high := p.Backoff.Bounds(i)
		least, most = least+low.Microseconds(), most+high.Microseconds()
		s.Retries = append(s.Retries, ScheduledRetry{i, p.Backoff.Base(i), low, high, least, most})
	}
	return s
}

// Write prints the schedule as a table.
func (s Schedule) Write(w io.Writer, screen Screen) error {
	alone := *s.Policy
	alone.Rules = nil // each has a line below the table
	rows := [][]string{{"RETRY", "BASE", "LEAST", "MOST", "WAITED AT LEAST", "AT MOST"}}
	for _, r := range s.Retries {
		rows = append(rows, []string{
			strconv.Itoa(r.N), backoffText(r.Base), backoffText(r.Least), backoffText(r.Most),
			totalText(r.TotalLeast), totalText(r.TotalMost),
		})
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s%s", Policy(&alone), screen.Rows(rows), s.note())
	return err
}

func (s Schedule) note() (note string) {
	switch {
	case s.Policy.Attempts == 0:
		note = "… and so on: there is no limit of attempts"
	case s.Policy.Attempts-1 > len(s.Retries):
		note = fmt.Sprintf("… and %d more", s.Policy.Attempts-1-len(s.Retries))
	}
	for _, r := range s.Policy.Rules {
		note += fmt.Sprintf("\nwhere %s: backoff %s, jitter %s",
			brief(r.When.String()), r.Backoff.Curve(), r.Backoff.Jitter())
	}
	if s.Policy.Budget > 0 {
		note += fmt.Sprintf("\nthe budget of %s ends it earlier where it is used up", text.Duration(s.Policy.Budget))
	}
	if note == "" {
		return ""
	}
	return strings.TrimPrefix(note, "\n") + "\n"
}

func backoffText(d time.Duration) string {
	return text.FormatDuration(d.Round(time.Millisecond))
}

func totalText(microseconds int64) string {
	const day = int64(24 * time.Hour / time.Microsecond)
	days, rest := microseconds/day, backoffText(time.Duration(microseconds%day)*time.Microsecond)
	switch {
	case days == 0:
		return rest
	case rest == "0s":
		return fmt.Sprintf("%dd", days)
	}
	return fmt.Sprintf("%dd%s", days, rest)
}

type scheduledRetryJSON struct {
	N          int   `json:"n"`
	BaseMS     int64 `json:"base_ms"`
	MinMS      int64 `json:"min_ms"`
	MaxMS      int64 `json:"max_ms"`
	TotalMinMS int64 `json:"total_min_ms"`
	TotalMaxMS int64 `json:"total_max_ms"`
}

// WriteJSON prints the schedule as JSON; docs/json.md describes it.
func (s Schedule) WriteJSON(w io.Writer) error {
	retries := []scheduledRetryJSON{}
	for _, r := range s.Retries {
		retries = append(retries, scheduledRetryJSON{
			r.N, r.Base.Milliseconds(), r.Least.Milliseconds(), r.Most.Milliseconds(),
			r.TotalLeast / 1000, r.TotalMost / 1000,
		})
	}
	spec := s.Policy.Backoff
	return WriteJSON(w, map[string]any{"backoff": spec.Curve(), "jitter": spec.Jitter(), "retries": retries})
}
