package render

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// message is an attempt's error for people. A status speaks for itself.
func message(o task.Outcome) string {
	if o.HTTP != nil && o.HTTP.Status > 0 {
		return strings.TrimPrefix(o.Message, "status ")
	}
	return o.Message
}

// asked says how long the server wants to be left alone; empty where it said nothing.
func serverDelay(o task.Outcome, format string) string {
	if o.HTTP == nil || o.HTTP.ServerDelay == 0 {
		return ""
	}
	return strings.Replace(format, "%s", text.Duration(o.HTTP.ServerDelay), 1)
}

// exchanges draws of each attempt of HTTP where its time went, how many requests went out, and what the server asks for.
func (s Screen) replies(w io.Writer, attempts []task.Attempt) error {
	rows := [][]string{{"#", "DNS", "CONNECT", "TLS", "FIRST BYTE", "TOTAL", "SENT", "ASKED FOR"}}
	for _, a := range attempts {
		if e := a.Outcome.HTTP; e != nil {
			p := e.Phases
			rows = append(rows, []string{
				strconv.Itoa(a.Number), spanOf(p.DNS), spanOf(p.Connect), spanOf(p.TLS), spanOf(p.FirstByte), spanOf(p.Total),
				strconv.Itoa(e.Written), spanOf(e.ServerDelay),
			})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return s.writeRows(w, rows)
}

// spanOf has a dash for what did not happen.
func spanOf(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return text.Duration(d)
}

// isDoubtful reports whether nobody knows what a request came to that should not be sent twice.
func isDoubtful(o task.Outcome) bool { return o.HTTP != nil && o.HTTP.Default.Ambiguous }

// mayHaveWorked says of a request what nobody knows.
func mayHaveWorked(t *task.Task) string {
	if t.Request == nil {
		return "it may have taken effect"
	}
	return brief(t.Request.Method) + " may have taken effect"
}

// tooOften returns how many attempts in a row came to what is not tried more often; 0 where that is not why there is no other.
func tooOften(t *task.Task, o task.Outcome) int {
	if o.HTTP == nil || o.HTTP.Default.AtMost == 0 || t.History.InARow < o.HTTP.Default.AtMost {
		return 0
	}
	return t.History.InARow
}

// logExchange adds what an attempt of HTTP saw.
func logReply(event *zerolog.Event, o task.Outcome) {
	e := o.HTTP
	if e == nil {
		return
	}
	if o.Error == task.ErrorNone {
		event.Str("detail", o.Message)
	}
	event.Int("requests_written", e.Written)
	if e.Status > 0 {
		event.Int("http_status", e.Status)
	}
	if e.ServerDelay > 0 {
		event.Int64("server_delay_ms", e.ServerDelay.Milliseconds())
	}
}

// phasesJSON has null for what did not happen.
type phasesJSON struct {
	DNS       *int64 `json:"dns"`
	Connect   *int64 `json:"connect"`
	TLS       *int64 `json:"tls"`
	FirstByte *int64 `json:"first_byte"`
	Total     *int64 `json:"total"`
}

// withExchange adds what an attempt of HTTP saw.
func (j attemptJSON) withReply(e *task.Reply) attemptJSON {
	if e == nil {
		return j
	}
	j.RequestsWritten, j.Event, j.ServerDelayMS = &e.Written, present(e.Default.Event), happened(e.ServerDelay)
	if e.Status > 0 {
		j.HTTPStatus = &e.Status
	}
	j.PhasesMS = &phasesJSON{
		DNS: happened(e.Phases.DNS), Connect: happened(e.Phases.Connect), TLS: happened(e.Phases.TLS),
		FirstByte: happened(e.Phases.FirstByte), Total: happened(e.Phases.Total),
	}
	return j
}

// happened is a duration in milliseconds; null for none.
func happened(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
