package metrics

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Outcome is how an attempt ended, as a label.
type Outcome string

// The outcomes of attempts.
const (
	Success     Outcome = "success"     // the task has succeeded, or an attempt of several that have to
	Retry       Outcome = "retry"       // another attempt follows
	Failed      Outcome = "failed"      // another attempt would not help
	Exhausted   Outcome = "exhausted"   // the policy allows no more
	Ambiguous   Outcome = "ambiguous"   // it may have taken effect, and is not safe to repeat
	Interrupted Outcome = "interrupted" // a stop or a crash cut it off; it does not count against the policy
	Cancelled   Outcome = "cancelled"
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Success, Retry, Failed, Exhausted, Ambiguous, Interrupted, Cancelled}
}

// Names of policies in labels. A name beyond the first MaxPolicies is OtherPolicies: whoever makes up names must not
// be able to fill the memory of the service or of what scrapes it.
const (
	InlinePolicy  = "inline" // a policy without a name
	OtherPolicies = "other"
	MaxPolicies   = 200
)

// Build says which program runs.
type Build struct{ Version, Revision, GoVersion string }

// Service holds the metrics of a worker and of a server. Make it with NewService.
type Service struct {
	Registry

	InFlight     *Gauge     // attempts that run in this process
	LockBusy     *Counter   // writes that found the store locked
	LockWait     *Histogram // from asking for the store's lock until having it
	Lateness     *Histogram // from when an attempt was due until it began
	TaskAge      *Histogram // of tasks that end, since they were made
	Unfollowed   *Counter   // dead tasks whose onExhausted was not made a task
	SpansDropped *Counter   // spans that no collector got

	attempts CounterVec
	duration HistogramVec
	delay    HistogramVec
	store    HistogramVec

	policies atomic.Pointer[map[string]bool] // names that are labels
	adding   sync.Mutex
}

// NewService makes the metrics of a process.
func NewService(b Build) *Service {
	s := &Service{}
	s.policies.Store(&map[string]bool{})
	s.Collect(func(_ context.Context, t *Text) {
		t.Family("retry_build_info", "The program that runs.", TypeGauge)
		t.Sample(1, Label{"version", b.Version}, Label{"revision", b.Revision}, Label{"goversion", b.GoVersion})
	})
	s.attempts = s.NewCounterVec("retry_attempts_total", "Attempts that ended, by what follows.", "outcome", "policy")
	s.duration = s.NewHistogramVec("retry_attempt_duration_seconds", "How long attempts took.",
		durationBounds(), "policy")
	s.delay = s.NewHistogramVec("retry_delay_seconds", "Delays that were chosen before the next attempt.",
		delayBounds(), "policy")
	s.TaskAge = s.NewHistogram("retry_task_age_seconds", "Age of tasks when they ended, since they were made.",
		ageBounds())
	s.Lateness = s.NewHistogram("retry_schedule_lateness_seconds", "How long after their time attempts began.",
		latenessBounds())
	s.InFlight = s.NewGauge("retry_inflight", "Attempts that run in this process.")
	s.LockBusy = s.NewCounter("retry_lock_busy_total", "Writes that found the store locked by another process.")
	s.LockWait = s.NewHistogram("retry_lock_wait_seconds", "How long writes waited for the lock of the store.",
		storeBounds())
	s.store = s.NewHistogramVec("retry_store_seconds", "How long operations of the store took.",
		storeBounds(), "operation")
	s.Unfollowed = s.NewCounter("retry_unfollowed_total", "Dead tasks whose onExhausted could not be made a task.")
	s.SpansDropped = s.NewCounter("retry_spans_dropped_total", "Spans that were not delivered to the collector.")
	return s
}

// AttemptEnded counts an attempt that took a time. The name of a policy without one is empty, here and below.
func (s *Service) AttemptEnded(outcome Outcome, policy string, took time.Duration) {
	policy = s.policy(policy)
	s.attempts.With(string(outcome), policy).Inc()
	s.duration.With(policy).Observe(took)
}

// Delayed counts a delay that was chosen before the next attempt.
func (s *Service) Delayed(policy string, delay time.Duration) {
	s.delay.With(s.policy(policy)).Observe(delay)
}

// StoreTook counts an operation of the store. The operations are few and named by the program: claim, settle, add.
func (s *Service) StoreTook(operation string, took time.Duration) {
	s.store.With(operation).Observe(took)
}

// policy returns the label for a policy.
func (s *Service) policy(name string) string {
	if name == "" {
		name = InlinePolicy
	}
	if known := *s.policies.Load(); known[name] {
		return name
	}
	return s.addPolicy(name)
}

// addPolicy makes a name a label, unless there are too many. It makes the counters of all outcomes: a counter that
// appears with 1 has no rise that a query could see.
func (s *Service) addPolicy(name string) string {
	s.adding.Lock()
	defer s.adding.Unlock()
	known := *s.policies.Load()
	own := name == InlinePolicy || name == OtherPolicies
	switch {
	case known[name]:
		return name
	case !own && named(known) >= MaxPolicies:
		if known[OtherPolicies] {
			return OtherPolicies
		}
		name = OtherPolicies
	}
	known = maps.Clone(known)
	name = strings.Clone(name)
	known[name] = true
	for _, outcome := range Outcomes() {
		s.attempts.With(string(outcome), name)
	}
	s.policies.Store(&known)
	return name
}

// named is how many of the labels are names of policies.
func named(known map[string]bool) int {
	n := len(known)
	for _, own := range []string{InlinePolicy, OtherPolicies} {
		if known[own] {
			n--
		}
	}
	return n
}
