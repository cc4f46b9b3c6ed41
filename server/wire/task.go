package wire

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Task is a task as the API writes it. Secrets are masked as everywhere else.
type Task struct {
	TaskID         string  `json:"taskId"`
	Kind           string  `json:"kind"`
	Status         string  `json:"status"`
	Reason         *string `json:"reason"`
	IdempotencyKey string  `json:"idempotencyKey"`

	TargetURL *string  `json:"targetUrl"`
	Method    *string  `json:"method"`
	BodyRef   *string  `json:"bodyRef"`
	Command   []string `json:"command,omitempty"`

	PolicyID      *string  `json:"policyId"`
	AttemptNumber int      `json:"attemptNumber"` // of the latest attempt; 0 before the first
	NextAttemptAt ms       `json:"nextAttemptAt"`
	CreatedAt     ms       `json:"createdAt"`
	FinishedAt    ms       `json:"finishedAt"`
	Partition     string   `json:"partition"`
	Tags          []string `json:"tags"`
	Host          string   `json:"host,omitempty"`
	Worker        *int64   `json:"worker"`

	LastAttempt *Attempt `json:"lastAttempt,omitempty"`
	*Details
}

// Details are what only the full view of a task has.
type Details struct {
	Policy           Policy              `json:"policy"`
	Headers          map[string][]string `json:"headers"`
	Body             *string             `json:"body,omitempty"`       // as text
	BodyBase64       *string             `json:"bodyBase64,omitempty"` // of one that is no text
	TimeoutMS        *int64              `json:"timeoutMs"`
	ConnectTimeoutMS *int64              `json:"connectTimeoutMs,omitempty"`
	FollowRedirects  *int                `json:"followRedirects,omitempty"`
	Ambiguous        string              `json:"ambiguous,omitempty"`
	Directory        string              `json:"directory,omitempty"`
	OnExhausted      json.RawMessage     `json:"onExhausted,omitempty"`
	Damage           string              `json:"damage,omitempty"` // why it cannot be read whole
}

// EncodeTask returns a task as the API writes it, in full or without its headers, body and policy.
func EncodeTask(t *task.Task, full bool) Task {
	w := Task{
		TaskID: t.ID, Kind: string(t.Kind), Status: string(t.Status), Reason: orNull(string(t.Reason)),
		IdempotencyKey: t.IdempotencyKey, PolicyID: orNull(t.Policy.Name), AttemptNumber: t.AttemptCount,
		NextAttemptAt: ms(t.NextAttemptAt), CreatedAt: ms(t.CreatedAt), FinishedAt: ms(t.FinishedAt),
		Partition: t.Partition, Tags: t.Tags, Host: t.Host(),
	}
	if w.Tags == nil {
		w.Tags = []string{}
	}
	if t.Worker != 0 {
		w.Worker = &t.Worker
	}
	if t.Kind == task.KindCommand {
		w.Command = t.ShownCommand()
	}
	if t.Target != nil {
		e := t.Target.Endpoint()
		w.TargetURL, w.Method = &e.URL, &e.Method
	}
	if r := request.Of(t); r != nil {
		w.TargetURL = new(shownURL(r.URL, t.Options.Mask))
		if ref := blobOf(r); ref != "" {
			w.BodyRef = new("sha256:" + ref)
		}
	}
	if t.Last.Number > 0 {
		last := EncodeAttempt(t, t.Last)
		w.LastAttempt = &last
	}
	if full {
		w.Details = detailsOf(t)
	}
	return w
}

func detailsOf(t *task.Task) *Details {
	d := &Details{
		Policy: EncodePolicy(&t.Policy, ViewNumbers), Headers: map[string][]string{}, Directory: t.Directory,
		TimeoutMS: milliseconds(t.Policy.Timeout), OnExhausted: shownExhausted(t.Options.Exhausted, t.Options.Mask),
	}
	if t.Damage != nil {
		d.Damage = t.Damage.Error()
	}
	r := request.Of(t)
	if c := grpcexec.Of(t); c != nil {
		r = c.AsRequest()
		r.Network.ConnectTimeout = c.Network.ConnectTimeout
		r.Body = []request.Part{{Text: c.Message}, {Text: []byte(c.JSON)}}
	}
	if r == nil {
		return d
	}
	d.ConnectTimeoutMS = milliseconds(r.Network.ConnectTimeout)
	d.FollowRedirects = new(max(0, r.Network.MaxRedirects))
	if d.Ambiguous = string(task.AmbiguousStop); t.Target.Safe() {
		d.Ambiguous = string(task.AmbiguousRepeat)
	}
	d.Headers = shownHeaders(r.Header, t.Options.Mask)
	d.setBody(r, t.Options.Mask)
	return d
}

// setBody shows a body that is in the task itself.
func (d *Details) setBody(r *request.Request, mask string) {
	var body []byte
	for i := range r.Body {
		body = append(body, r.Body[i].Text...)
	}
	switch {
	case len(body) == 0:
	case utf8.Valid(body):
		d.Body = new(text.MaskPattern(string(body), mask))
	default:
		d.BodyBase64 = new(base64.StdEncoding.EncodeToString(body))
	}
}

func blobOf(r *request.Request) string {
	if len(r.Body) == 1 {
		return r.Body[0].Blob
	}
	return ""
}

// orNull returns nil for an empty text.
func orNull(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}
