package sqlite

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/10f93571/retry/task"
)

// marshalTarget returns what is stored of a task's target; nil for a command, which costs nothing.
func marshalTarget(t *task.Task) (any, error) {
	if t.Target == nil {
		return nil, nil
	}
	text, err := json.Marshal(t.Target)
	return string(text), err
}

// readTarget reads what a task sends. A command has no target.
func (r *taskRow) readTarget(t *task.Task) error {
	if t.Kind == task.KindCommand {
		return nil
	}
	if !r.request.Valid {
		return errors.New("request: there is none")
	}
	target, err := task.DecodeTarget(t.Kind, []byte(r.request.String))
	if err != nil {
		return unreadable("request", err)
	}
	t.Target = target
	return nil
}

// exchange is what is stored of a task.Reply, times in microseconds. The phases' total is the attempt's duration.
type exchange struct {
	Status      int    `json:"status,omitempty"`
	Written     int    `json:"written,omitempty"`
	Event       string `json:"event,omitempty"`
	ServerDelay int64  `json:"server_delay_us,omitempty"`
	DNS         int64  `json:"dns_us,omitempty"`
	Connect     int64  `json:"connect_us,omitempty"`
	TLS         int64  `json:"tls_us,omitempty"`
	FirstByte   int64  `json:"first_byte_us,omitempty"`
}

// marshalExchange returns what is stored of an exchange; nil for a command's attempt.
func marshalExchange(e *task.Reply) (any, error) {
	if e == nil {
		return nil, nil
	}
	text, err := json.Marshal(exchange{
		Status: e.Status, Written: e.Written, Event: e.Default.Event, ServerDelay: e.ServerDelay.Microseconds(),
		DNS: e.Phases.DNS.Microseconds(), Connect: e.Phases.Connect.Microseconds(), TLS: e.Phases.TLS.Microseconds(),
		FirstByte: e.Phases.FirstByte.Microseconds(),
	})
	return string(text), err
}

// readExchange returns what an attempt saw; nil for a command's. What cannot be read of it is left out: the outcome does not need it.
func (r *attemptRow) readExchange(total time.Duration) *task.Reply {
	if !r.exchange.Valid {
		return nil
	}
	var e exchange
	if json.Unmarshal([]byte(r.exchange.String), &e) != nil {
		e = exchange{}
	}
	return &task.Reply{
		Status: max(e.Status, 0), Written: max(e.Written, 0), ServerDelay: spanOf(e.ServerDelay), Default: task.Eligibility{Event: e.Event},
		Phases: task.Phases{
			DNS: spanOf(e.DNS), Connect: spanOf(e.Connect), TLS: spanOf(e.TLS), FirstByte: spanOf(e.FirstByte), Total: total,
		},
	}
}
