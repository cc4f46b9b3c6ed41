package otlp

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/10f93571/retry/metrics"
)

// Attribute is a property of a span or of the service. Its value is a bool, an int, an int64 or
// a string; others become text.
type Attribute struct {
	Key   string
	Value any
}

// Task is what the spans of a task have in common.
type Task struct {
	ID            string
	Caller        string // the traceparent that came with the task; empty where none did
	Name          string // of its spans: one of few, such as a method and a host, without ids
	Policy        string // its name; empty for one without
	RequeuedAfter int    // the number of its last attempt before it was requeued
	Client        bool   // its attempts are requests to a server
}

// Attempt is an attempt that ended.
type Attempt struct {
	Number     int
	Start, End time.Time
	Outcome    metrics.Outcome
	Error      string      // without secrets; empty where there was none
	Attributes []Attribute // what its protocol says, such as http.response.status_code
}

// TaskEnd is how a task ended.
type TaskEnd struct {
	Start    time.Time // when it was made, or last requeued
	End      time.Time
	Status   string // such as SUCCEEDED
	Reason   string // why it was no success
	Attempts int
}

// The kinds of spans, as OTLP numbers them.
const (
	kindInternal = 1
	kindClient   = 3
)

// maxText bounds a text in a span, in bytes.
const maxText = 4096

// Attempt exports the span of an attempt, a child of its task's span.
func (e *Exporter) Attempt(t *Task, a *Attempt) {
	if e == nil {
		return
	}
	p, called := parentOf(t.Caller, t.ID)
	if !e.config.Sampler.samples(&p, called) {
		return
	}
	s := newSpan(t, p.trace, SpanID(t.ID, a.Number), a.Start, a.End)
	s.ParentSpanID = t.span()
	if t.Client {
		s.Kind = kindClient
	}
	s.add("retry.attempt", a.Number)
	s.add("retry.outcome", string(a.Outcome))
	for _, attribute := range a.Attributes {
		s.add(attribute.Key, attribute.Value)
	}
	switch a.Outcome {
	case metrics.Success, metrics.Interrupted, metrics.Cancelled:
	default:
		s.Status = &status{Code: statusError, Message: cut(a.Error)}
	}
	e.offer(s)
}

// Task exports the span of a task that ended, a child of the caller's span.
func (e *Exporter) Task(t *Task, end *TaskEnd) {
	if e == nil {
		return
	}
	p, called := parentOf(t.Caller, t.ID)
	if !e.config.Sampler.samples(&p, called) {
		return
	}
	s := newSpan(t, p.trace, SpanID(t.ID, -t.RequeuedAfter), end.Start, end.End)
	if called {
		s.ParentSpanID = hex.EncodeToString(p.span[:])
	}
	s.add("retry.status", end.Status)
	s.add("retry.attempts", end.Attempts)
	switch end.Status {
	case "FAILED", "EXHAUSTED":
		s.Status = &status{Code: statusError, Message: cut(end.Reason)}
	}
	e.offer(s)
}

// span returns the id of the task's own span.
func (t *Task) span() string {
	id := SpanID(t.ID, -t.RequeuedAfter)
	return hex.EncodeToString(id[:])
}

func newSpan(t *Task, trace [16]byte, id [8]byte, start, end time.Time) span {
	if end.Before(start) { // the clock was set back
		end = start
	}
	s := span{
		TraceID: hex.EncodeToString(trace[:]), SpanID: hex.EncodeToString(id[:]), Name: t.Name, Kind: kindInternal,
		Start: nanoseconds(start), End: nanoseconds(end), Attributes: make([]keyValue, 0, 8),
	}
	if s.Name == "" {
		s.Name = "task"
	}
	s.add("retry.task.id", t.ID)
	if t.Policy != "" {
		s.add("retry.policy", t.Policy)
	}
	return s
}

// The types below are OTLP's in JSON: ids in hexadecimal, integers of 64 bits as strings.

type exportRequest struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []keyValue `json:"attributes"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type span struct {
	TraceID      string     `json:"traceId"`
	SpanID       string     `json:"spanId"`
	ParentSpanID string     `json:"parentSpanId,omitempty"`
	Name         string     `json:"name"`
	Kind         int        `json:"kind"`
	Start        string     `json:"startTimeUnixNano"`
	End          string     `json:"endTimeUnixNano"`
	Attributes   []keyValue `json:"attributes"`
	Status       *status    `json:"status,omitempty"`
}

const statusError = 2

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type keyValue struct {
	Key   string   `json:"key"`
	Value anyValue `json:"value"`
}

// anyValue has one field that is not nil.
type anyValue struct {
	Bool   *bool   `json:"boolValue,omitempty"`
	Int    *int64  `json:"intValue,omitempty,string"`
	String *string `json:"stringValue,omitempty"`
}

func (s *span) add(key string, value any) {
	s.Attributes = append(s.Attributes, newKeyValue(key, value))
}

func newKeyValue(key string, value any) keyValue {
	switch v := value.(type) {
	case bool:
		return keyValue{key, anyValue{Bool: &v}}
	case int:
		n := int64(v)
		return keyValue{key, anyValue{Int: &n}}
	case int64:
		return keyValue{key, anyValue{Int: &v}}
	case string:
		v = cut(v)
		return keyValue{key, anyValue{String: &v}}
	}
	text := cut(fmt.Sprint(value))
	return keyValue{key, anyValue{String: &text}}
}

// newResource describes the service. A key may not occur twice: the last one holds.
func newResource(c *Config) resource {
	r := resource{Attributes: []keyValue{newKeyValue("service.name", c.Service)}}
	all := append([]Attribute{{"service.version", c.Version}}, c.Resource...)
	for i, a := range all {
		later := slices.ContainsFunc(all[i+1:], func(b Attribute) bool { return b.Key == a.Key })
		if !later && a.Value != "" {
			r.Attributes = append(r.Attributes, newKeyValue(a.Key, a.Value))
		}
	}
	return r
}

// encode makes a request. Invalid UTF-8 is replaced.
func (e *Exporter) encode(spans []span) ([]byte, error) {
	return json.Marshal(exportRequest{[]resourceSpans{{
		Resource:   e.resource,
		ScopeSpans: []scopeSpans{{scope{"retry", e.config.Version}, spans}},
	}}})
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(max(t.UnixNano(), 0), 10) }

// cut shortens a text. A character that is cut in two is replaced in JSON.
func cut(s string) string {
	return s[:min(len(s), maxText)]
}
