package render

import (
	"io"
	"strconv"
	"strings"
	"time"

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
func asked(o task.Outcome, format string) string {
	if o.HTTP == nil || o.HTTP.ServerDelay == 0 {
		return ""
	}
	return strings.Replace(format, "%s", text.Duration(o.HTTP.ServerDelay), 1)
}

// exchanges draws of each attempt of HTTP where its time went, how many requests went out, and what the server asks for.
func (s Screen) exchanges(w io.Writer, attempts []task.Attempt) error {
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

// deferred reports whether a task waits for a time that a server named, and no process with it.
func deferred(t TaskView) bool {
	return t.Interrupted && t.Reason == task.ReasonDeferred && t.Damage == nil
}

// reason explains what the status of a task does not say.
func reason(t TaskView, now time.Time) string {
	switch t.Reason {
	case task.ReasonDeferred:
		return " (deferred: " + comeBack(t.NextAttemptAt, now) + ")"
	case task.ReasonAmbiguous:
		return " (ambiguous: it may have taken effect; " + lookFirst(t.Task) + ")"
	case task.ReasonExpired:
		return " (expired: its idempotency key " + oldKey(t.Task) + ")"
	case "", task.ReasonCancelled: // which the status says already
		return ""
	}
	return " (" + brief(string(t.Reason)) + ")"
}

// oldKey says what is wrong with a key that has expired. The request itself may be unreadable.
func oldKey(t *task.Task) string {
	if t.Request == nil {
		return "is too old"
	}
	return "would be older than " + text.Duration(t.Request.KeyTTL)
}

// comeBack says until when a server wants to be left alone.
func comeBack(at, now time.Time) string {
	if at.Before(now) {
		return "the server asked to come back at " + Stamp(at, now)
	}
	return "the server asks to come back at " + Stamp(at, now)
}

// lookFirst says what to do about a request that may have taken effect.
func lookFirst(t *task.Task) string {
	switch {
	case t.Number == 0:
		return "look at the server before you send it again"
	case t.KeepsInput():
		return "look at the server before you send it again; its stdin is kept no longer"
	}
	return "look at the server before you send it again: retry requeue --run " + ShortID(t.ID)
}
