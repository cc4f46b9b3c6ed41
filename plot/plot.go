// Package plot computes what a policy does to many tasks at once: when they retry, how the retries load a service, and
// how long a simulated lock or outage lasts. Every delay comes from task.Decide, the function that a run calls.
package plot

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/10f93571/retry/task"
)

// Limits of a study.
const (
	MaxTasks    = 10_000_000
	MaxAttempts = 1000
	maxRetries  = 1_000_000_000 // of all tasks together
	MaxDrawn    = 1000          // tasks whose retries are kept one by one, for a scatter plot
)

// Subject is a policy to look at.
type Subject struct {
	Label  string // as the user wrote it: "exp:1s..1m/full", "deploy"
	Policy task.Policy
}

// Options are the size of a study.
type Options struct {
	Tasks   int    // how many tasks fail together
	Retries int    // of each task, where the policy has no limit of attempts
	Seed    uint64 // the same seed gives the same figures
}

// Study is the result for one subject when every attempt of its tasks fails at once, and all first attempts happen at
// time 0.
type Study struct {
	Subject Subject
	Tasks   int
	Retries []Retry
	Window  Window
	Load    Load
	Dots    []Dot // every retry of the first Drawn tasks, ordered by task, then by time
	Drawn   int   // at most MaxDrawn
}

// Retry summarises the n-th retry of all tasks.
type Retry struct {
	N                 int
	Base, Least, Most time.Duration // of the policy: the delay without jitter, and its bounds
	Unbounded         bool          // Most is the limit of all delays, backoff.Max
	Mean              time.Duration // of the simulated delays
	CV                float64       // coefficient of variation of the simulated delays: standard deviation / mean
	Tasks             int           // how many tasks reached this retry: all, unless a budget ended some
}

// Window is the time from the first failure to a task's last retry.
type Window struct{ Least, Mean, Most time.Duration }

// Load describes how the retries of all tasks coincide. Seconds count from the first failure; the first second is left
// out.
type Load struct {
	Peak, Mean float64 // retries per second
	Idle       float64 // share of the seconds without a retry, up to the median task's last retry
	Local      float64 // the worst sixteenth of an octave against the octave around it, over the same time; 1 is even

	histogram *histogram
}

// Dot is one retry of one task.
type Dot struct {
	Task  int // from 0
	Retry int // from 1
	At    time.Duration
}

// NewStudy simulates the tasks of a subject. The same options give the same study on any number of processors.
func NewStudy(s Subject, o Options) (Study, error) {
	retries := o.Retries
	if s.Policy.Attempts > 0 {
		retries = s.Policy.Attempts - 1
	}
	if err := checkSize(o.Tasks, retries); err != nil {
		return Study{}, fmt.Errorf("plot %s: %w", s.Label, err)
	}
	all, total := simulate(withoutConditions(s.Policy), retries, o)
	if total.most == math.MaxInt64 {
		return Study{}, fmt.Errorf("plot %s: %d retries take more than 292 years, which is as far as the time axis goes"+
			"\nhint: give fewer --attempts, or a cap such as exp:1s..1h", s.Label, retries)
	}
	// Where all tasks end at the same time, the bin's middle may lie outside of what was seen.
	median := min(max(all.ends.median(), total.least), total.most)
	study := Study{
		Subject: s, Tasks: o.Tasks, Retries: total.summary(s.Policy.Backoff), Load: all.seconds.load(median),
		Window: Window{Least: total.least, Mean: fromSeconds(total.window.mean), Most: total.most},
		Dots:   total.dots, Drawn: min(o.Tasks, MaxDrawn),
	}
	study.Load.Local, study.Load.histogram = all.times.local(median), all.times
	return study, nil
}

func checkSize(tasks, retries int) error {
	switch {
	case tasks < 1 || tasks > MaxTasks:
		return fmt.Errorf("%d tasks\nhint: from 1 to %d can be simulated", tasks, MaxTasks)
	case retries < 1:
		return errors.New("one attempt has no retry to show\nhint: give --attempts 2 or more")
	case retries > MaxAttempts-1:
		return fmt.Errorf("%d attempts\nhint: give --attempts, at most %d", retries+1, MaxAttempts)
	case tasks*retries > maxRetries:
		return fmt.Errorf("%d tasks of %d retries take too long"+
			"\nhint: fewer --tasks or --attempts; together at most %d retries", tasks, retries, maxRetries)
	}
	return nil
}

// withoutConditions returns a policy that retries every failure with its own backoff. A study knows no outcomes to
// match.
func withoutConditions(p task.Policy) task.Policy {
	p.RetryOn, p.StopOn, p.SuccessOn, p.Rules = nil, nil, nil, nil
	return p
}
