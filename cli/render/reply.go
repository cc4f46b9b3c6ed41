package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// message is an attempt's error as people read it. Of a status, "503 Service Unavailable" is enough.
func message(o task.Outcome) string {
	if o.Reply != nil && o.Reply.HasStatus() {
		return strings.TrimPrefix(o.Message, "status ")
	}
	return o.Message
}

// withServerDelay puts the delay that the server asks for (Retry-After) into a text; it returns "" where it asks for
// none.
func withServerDelay(o task.Outcome, format string) string {
	if o.Reply == nil || o.Reply.ServerDelay == 0 {
		return ""
	}
	return strings.Replace(format, "%s", text.Duration(o.Reply.ServerDelay), 1)
}

// replies draws a table of the attempts of HTTP: how long each phase took, how many requests were sent, and the delay
// that the server asks for.
func (s Screen) replies(attempts []task.Attempt) string {
	rows := [][]string{{"#", "DNS", "CONNECT", "TLS", "FIRST BYTE", "TOTAL", "SENT", "ASKED FOR"}}
	for _, a := range attempts {
		r := a.Outcome.Reply
		if r == nil {
			continue
		}
		row := []string{strconv.Itoa(a.Number)}
		p := r.Phases
		for _, phase := range []time.Duration{p.DNS, p.Connect, p.TLS, p.FirstByte, p.Total} {
			row = append(row, durationOrDash(phase))
		}
		rows = append(rows, append(row, strconv.Itoa(r.Written), durationOrDash(r.ServerDelay)))
	}
	if len(rows) == 1 {
		return ""
	}
	return "\n" + s.Rows(rows)
}

// durationOrDash writes a dash for what did not happen.
func durationOrDash(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return text.Duration(d)
}

// ambiguousEffect says that a request may have taken effect.
func ambiguousEffect(t *task.Task) string {
	if t.Target == nil {
		return "it may have taken effect"
	}
	return brief(t.Target.Verb()) + " may have taken effect"
}

// logReply adds the fields of an attempt of HTTP to a log line.
func logReply(event *zerolog.Event, o task.Outcome) {
	e := o.Reply
	if e == nil {
		return
	}
	if o.Error == task.ErrorNone {
		event.Str("detail", o.Message)
	}
	event.Int("requests_written", e.Written)
	if e.HasStatus() {
		event.Int("http_status", e.Status)
	}
	if e.StatusName != "" {
		event.Str("grpc_status", e.StatusName)
	}
	if e.ServerDelay > 0 {
		event.Int64("server_delay_ms", e.ServerDelay.Milliseconds())
	}
}

// phasesJSON are the times of an attempt of HTTP; null for a phase that did not happen.
type phasesJSON struct {
	DNS       *int64 `json:"dns"`
	Connect   *int64 `json:"connect"`
	TLS       *int64 `json:"tls"`
	FirstByte *int64 `json:"first_byte"`
	Total     *int64 `json:"total"`
}

// withReply adds the fields of an attempt of HTTP.
func (j attemptJSON) withReply(e *task.Reply) attemptJSON {
	if e == nil {
		return j
	}
	j.RequestsWritten, j.Event, j.ServerDelayMS = &e.Written, present(e.Default.Event), milliseconds(e.ServerDelay)
	if e.HasStatus() {
		j.HTTPStatus = &e.Status
	}
	j.GRPCStatus = e.StatusName
	j.PhasesMS = &phasesJSON{
		DNS: milliseconds(e.Phases.DNS), Connect: milliseconds(e.Phases.Connect), TLS: milliseconds(e.Phases.TLS),
		FirstByte: milliseconds(e.Phases.FirstByte), Total: milliseconds(e.Phases.Total),
	}
	return j
}

// milliseconds returns nil for what did not happen, which is null in JSON.
func milliseconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(d.Milliseconds())
}
