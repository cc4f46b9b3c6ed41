package session

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/version"
	"github.com/10f93571/retry/metrics"
	"github.com/10f93571/retry/metrics/otlp"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// monitor counts what a worker does, and exports spans of it.
type monitor struct {
	metrics *metrics.Service
	spans   *otlp.Exporter // nil: nobody collects them
	running func() int
}

// newMonitor reads from the environment where spans go.
func newMonitor(p *Host, queue *sqlite.Queue, warn func(error)) (*monitor, error) {
	m := &monitor{metrics: metrics.NewService(metrics.Build{Version: version.Get().Version, GoVersion: runtime.Version()})}
	config, err := otlp.FromEnvironment(p.Getenv)
	if err != nil {
		return nil, err
	}
	if config != nil {
		config.Version, config.Dropped, config.OnError = version.Get().Version, m.metrics.SpansDropped, warn
		m.spans = otlp.New(*config)
	}
	m.metrics.CountStore(func(ctx context.Context) (metrics.StoreFigures, error) {
		counts, err := queue.Counts(ctx, time.Now())
		return figures(counts), err
	})
	queue.Observe = func(waited, took time.Duration) {
		m.metrics.LockWait.Observe(waited)
		if waited > busyWait {
			m.metrics.LockBusy.Inc()
		}
		m.metrics.StoreTook("write", took)
	}
	return m, nil
}

// busyWait is how long a write waits where no other process holds the lock.
const busyWait = 500 * time.Microsecond

func figures(c state.Counts) metrics.StoreFigures {
	f := metrics.StoreFigures{
		Tasks: map[string]int64{}, Due: int64(c.Due), OldestDue: c.OldestDue, DeadLetters: map[string]int64{},
	}
	for status, n := range c.ByStatus {
		f.Tasks[string(status)] = int64(n)
	}
	for policy, n := range c.Dead {
		f.DeadLetters[policy] = int64(n)
	}
	return f
}

// Began implements worker.Observer.
func (m *monitor) Began(_ *task.Task, late time.Duration) {
	m.metrics.Lateness.Observe(max(0, late))
}

// ServeHTTP writes the metrics.
func (m *monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.running != nil {
		m.metrics.InFlight.Set(int64(m.running()))
	}
	m.metrics.ServeHTTP(w, r)
}

// Ended implements worker.Observer.
func (m *monitor) Ended(t *task.Task, a task.Attempt) {
	outcome := outcomeOf(a.Decision)
	if a.Number > 0 {
		m.metrics.AttemptEnded(outcome, t.Policy.Name, a.Outcome.Duration)
	}
	if a.Decision.Verdict == task.VerdictRetry {
		m.metrics.Delayed(t.Policy.Name, a.Decision.Delay)
	}
	if t.Status.Finished() {
		m.metrics.TaskAge.Observe(t.FinishedAt.Sub(t.CreatedAt))
	}
	if m.spans != nil {
		m.export(t, a, outcome)
	}
}

// Warn implements worker.Observer.
func (m *monitor) Warn(err error) {
	if _, unfollowed := errors.AsType[*state.UnfollowedError](err); unfollowed {
		m.metrics.Unfollowed.Inc()
	}
}

// outcomeOf says what became of an attempt, as a label.
func outcomeOf(d task.Decision) metrics.Outcome {
	switch {
	case d.Verdict == task.VerdictSucceeded, d.Success:
		return metrics.Success
	case d.Verdict == task.VerdictRetry:
		return metrics.Retry
	case d.Reason == task.ReasonAmbiguous:
		return metrics.Ambiguous
	case d.Verdict == task.VerdictFailed:
		return metrics.Failed
	case d.Verdict == task.VerdictExhausted:
		return metrics.Exhausted
	case d.Verdict == task.VerdictCancelled:
		return metrics.Cancelled
	}
	return metrics.Interrupted
}

// export sends the span of an attempt, and that of a task that has ended.
func (m *monitor) export(t *task.Task, a task.Attempt, outcome metrics.Outcome) {
	span := &otlp.Task{
		ID: t.ID, Name: string(t.Kind), Policy: t.Policy.Name, RequeuedAfter: t.RequeuedAfter, Client: t.Target != nil,
	}
	if t.Target != nil {
		span.Name = t.Target.Verb() + " " + t.Host()
	}
	if r := request.Of(t); r != nil {
		span.Caller = request.Line(r.Header, "traceparent")
	}
	if a.Number > 0 {
		attempt := &otlp.Attempt{
			Number: a.Number, Start: a.StartedAt, End: a.StartedAt.Add(a.Outcome.Duration), Outcome: outcome,
			Error: a.Outcome.Message,
		}
		if reply := a.Outcome.Reply; reply != nil && reply.Status != 0 {
			attempt.Attributes = append(attempt.Attributes, otlp.Attribute{Key: "http.response.status_code", Value: reply.Status})
		}
		m.spans.Attempt(span, attempt)
	}
	if t.Status.Finished() {
		m.spans.Task(span, &otlp.TaskEnd{
			Start: t.Began(), End: t.FinishedAt, Status: string(t.Status), Reason: string(t.Reason), Attempts: t.AttemptCount,
		})
	}
}

// close sends what is left.
func (m *monitor) close() {
	if m.spans != nil {
		m.spans.Shutdown(context.Background())
	}
}
