package render

import (
	"time"

	"github.com/10f93571/retry/task"
)

// attemptJSON is the stable form of an attempt; docs/json.md describes it.
type attemptJSON struct {
	Number          int         `json:"number"`
	StartedAt       *string     `json:"started_at"`
	DurationMS      *int64      `json:"duration_ms"`
	Exit            *int        `json:"exit"`
	Signal          *string     `json:"signal"`
	HTTPStatus      *int        `json:"http_status"`
	Error           *string     `json:"error"`
	Message         *string     `json:"message"`
	Decision        *string     `json:"decision"`
	DelayMS         *int64      `json:"delay_ms"`
	Rule            *int        `json:"rule"`
	StdoutTail      *string     `json:"stdout_tail"`
	StderrTail      *string     `json:"stderr_tail"`
	RequestsWritten *int        `json:"requests_written"`
	Event           *string     `json:"event"`
	ServerDelayMS   *int64      `json:"server_delay_ms"`
	PhasesMS        *phasesJSON `json:"phases_ms"`
}

// phasesJSON has null for what did not happen.
type phasesJSON struct {
	DNS       *int64 `json:"dns"`
	Connect   *int64 `json:"connect"`
	TLS       *int64 `json:"tls"`
	FirstByte *int64 `json:"first_byte"`
	Total     *int64 `json:"total"`
}

func attemptToJSON(a task.Attempt) attemptJSON {
	j := attemptJSON{
		Number: a.Number, StartedAt: timestamp(a.StartedAt), Decision: present(string(a.Decision.Verdict)),
		Signal: present(a.Outcome.Signal), Error: present(string(a.Outcome.Error)), Message: present(a.Outcome.Message),
		StdoutTail: present(a.Outcome.Stdout), StderrTail: present(a.Outcome.Stderr),
	}
	if !a.Outcome.IsCrash() { // neither has an attempt in flight an exit or a duration
		exit, duration := a.Outcome.Exit, a.Outcome.Duration.Milliseconds()
		j.Exit, j.DurationMS = &exit, &duration
	}
	if a.Decision.Verdict == task.VerdictRetry {
		delay := a.Decision.Delay.Milliseconds()
		j.DelayMS = &delay
		if a.Decision.Rule != 0 {
			j.Rule = &a.Decision.Rule
		}
	}
	return j.withExchange(a.Outcome.HTTP)
}

// withExchange adds what an attempt of HTTP saw.
func (j attemptJSON) withExchange(e *task.Reply) attemptJSON {
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
