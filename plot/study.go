// Package plot shows what a policy does to many tasks at once: schedules, simulations and pictures. It asks runner's Decide for every
// delay, the same function that a run asks.
package plot

import (
	"time"

	"github.com/10f93571/retry/task"
)

// Subject is a policy to look at.
type Subject struct {
	Label  string // as it was asked for: "exp:1s..1m/full", "deploy"
	Policy task.Policy
}

// Options say what is played through.
type Options struct {
	Tasks   int    // how many fail together
	Retries int    // of each where the policy has no limit of attempts
	Seed    uint64 // the same seed, the same figures
}

// Study is what comes of a subject when every attempt of its tasks fails at once, the first ones all at time 0.
type Study struct {
	Subject Subject
	Tasks   int
	Retries []Retry
	Window  Window
	Load    Load
	Dots    []Dot // for pictures: every retry of the first tasks, MaxDrawn of them at the most; ordered by task, then by time
	Drawn   int   // how many tasks the dots are of
}

// MaxDrawn is how many tasks a picture shows.
const MaxDrawn = 1000

// Retry is the n-th retry over all tasks.
type Retry struct {
	N                 int
	Base, Least, Most time.Duration // of the spec: without jitter, and its bounds
	Unbounded         bool          // Most is only where every delay saturates
	Mean              time.Duration // of the waits that were played through
	CV                float64       // their coefficient of variation: standard deviation / mean
	Tasks             int           // how many came to it: all, unless a budget ends some
}

// Window is the time from the first failure to a task's last retry.
type Window struct{ Least, Mean, Most time.Duration }

// Load is how the retries of all tasks fall together. Seconds are counted from the first failure, and the first one is left out.
type Load struct {
	Peak, Mean float64 // retries a second
	Idle       float64 // share of the seconds without one, up to the median task's last retry
	Local      float64 // the worst sixteenth of an octave against the octave around it, from the base delay to the same time; 1 is even

	Step time.Duration // what was counted as one second: longer only where retries fall all over half a year and more

	spread *spread
}

// Rates are the retries a second between one edge and the next, for a picture of the load over time.
func (l Load) Rates(edges []time.Duration) []float64 {
	return l.spread.rates(edges)
}

// Dot is one retry of one task.
type Dot struct {
	Task  int // from 0
	Retry int // from 1
	At    time.Duration
}
