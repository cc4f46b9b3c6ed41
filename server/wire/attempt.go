package wire

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/10f93571/retry/task"
)

// Attempt is an attempt as the API writes it.
type Attempt struct {
	TaskID         string  `json:"taskId"`
	AttemptNumber  int     `json:"attemptNumber"`
	StartedAt      ms      `json:"startedAt"`
	DurationMS     *int64  `json:"durationMs"`     // null while it runs
	ResponseStatus *int    `json:"responseStatus"` // null where no reply came, and for a command
	ErrorMessage   *string `json:"errorMessage"`

	ErrorClass *string `json:"errorClass"` // "timeout", "dns" …; null for an end with a status
	ExitCode   *int    `json:"exitCode,omitempty"`
	Signal     string  `json:"signal,omitempty"`
	Decision   *string `json:"decision"` // null while it runs
	Reason     *string `json:"reason"`
	DelayMS    *int64  `json:"delayMs"` // before the next attempt; null where none follows
	Event      string  `json:"event,omitempty"`
	Worker     *string `json:"worker"` // its host and process

	RequestsWritten *int    `json:"requestsWritten,omitempty"`
	RetryAfterMS    *int64  `json:"retryAfterMs,omitempty"` // that the server asked for
	Phases          *Phases `json:"phases,omitempty"`

	ReplyTail       *string `json:"replyTail,omitempty"`       // the end of the reply's body, as text
	ReplyTailBase64 *string `json:"replyTailBase64,omitempty"` // of one that is no text
	StdoutTail      *string `json:"stdoutTail,omitempty"`
	StderrTail      *string `json:"stderrTail,omitempty"`
}

// Phases are how long the parts of an attempt took, in milliseconds with a fraction.
type Phases struct {
	DNS       float64 `json:"dnsMs"`
	Connect   float64 `json:"connectMs"`
	TLS       float64 `json:"tlsMs"`
	FirstByte float64 `json:"firstByteMs"`
	Total     float64 `json:"totalMs"`
}

// EncodeAttempt returns an attempt of a task as the API writes it.
func EncodeAttempt(t *task.Task, a task.Attempt) Attempt {
	w := Attempt{TaskID: t.ID, AttemptNumber: a.Number, StartedAt: ms(a.StartedAt), Worker: orNull(a.Worker)}
	if a.Decision.Verdict == "" {
		return w // it runs
	}
	o := a.Outcome.Masked(t.Options.Mask)
	w.Decision, w.Reason = orNull(string(a.Decision.Verdict)), orNull(string(a.Decision.Reason))
	w.ErrorMessage, w.ErrorClass = orNull(o.Message), orNull(string(o.Error))
	if !o.IsCrash() {
		w.DurationMS = new(o.Duration.Milliseconds())
	}
	if a.Decision.Verdict == task.VerdictRetry {
		w.DelayMS = new(a.Decision.Delay.Milliseconds())
	}
	if o.Reply == nil {
		if !o.IsCrash() {
			w.ExitCode, w.Signal = new(o.ExitCode()), o.Signal
		}
		w.StdoutTail, _ = tail(o.Stdout)
		w.StderrTail, _ = tail(o.Stderr)
		return w
	}
	w.setReply(o.Reply)
	w.ReplyTail, w.ReplyTailBase64 = tail(o.Stdout) // where an executor captures the reply
	return w
}

func (w *Attempt) setReply(r *task.Reply) {
	if r.HasStatus() {
		w.ResponseStatus = &r.Status
	}
	w.Event, w.RequestsWritten, w.RetryAfterMS = r.Default.Event, &r.Written, milliseconds(r.ServerDelay)
	p := r.Phases
	w.Phases = &Phases{
		DNS: fraction(p.DNS), Connect: fraction(p.Connect), TLS: fraction(p.TLS), FirstByte: fraction(p.FirstByte),
		Total: fraction(p.Total),
	}
}

// tail returns the end of a text, or of what is none in base64. A character that was cut at the beginning is left out.
func tail(kept string) (asText, inBase64 *string) {
	start := 0
	for start < min(len(kept), utf8.UTFMax-1) && !utf8.RuneStart(kept[start]) {
		start++
	}
	switch {
	case kept == "":
		return nil, nil
	case utf8.ValidString(kept[start:]):
		return new(kept[start:]), nil
	}
	return nil, new(base64.StdEncoding.EncodeToString([]byte(kept)))
}

// fraction returns milliseconds to three digits.
func fraction(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
