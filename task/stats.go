package task

import (
	"math"
	"time"
)

// CommandStats are the runs of one command: of the tasks of one name, or of one command line, or to one URL.
type CommandStats struct {
	Name     string   // empty for tasks without one
	Command  []string // of a name, the latest
	Endpoint Endpoint // of a name, the latest; empty for a command
	Mask     string   // the latest task's Options.Mask

	Runs       int
	FirstTry   int // succeeded in the first attempt
	Rescues    int // succeeded after more than one
	Failures   int // failed or exhausted
	Cancelled  int
	Unfinished int

	Ended    int           // runs that succeeded or failed: those of which there is a duration
	P50, P95 time.Duration // from the making of a task to its end, or from its requeueing
	Waiting  time.Duration // all delays between attempts
	Last     LastRuns
}

// LastRuns tell what a command is up to now. Cancelled runs are left out: they say nothing of the command.
type LastRuns struct {
	Status      Status // of the run that ended last; empty where none has
	Outcome     Outcome
	FinishedAt  time.Time
	SucceededAt time.Time // the end of the last run that succeeded; zero where none has
	Running     bool      // a run has a living owner
}

// Broken reports whether the run that ended last was no success.
func (l *LastRuns) Broken() bool {
	return l.Status == Failed || l.Status == Exhausted
}

// Quantile returns the value at rank ⌈q·n⌉ of n sorted ones ("nearest rank"): one that occurred, never one between two.
// It is 0 of none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// JournalFigures are what a monitor wants to know of a whole journal.
type JournalFigures struct {
	Tasks            map[Status]int
	Pruned           map[Status]int // finished tasks that were removed since the journal was made
	Interrupted      int            // of those that are Pending or InFlight
	Workers          int            // that live
	Queued           int            // tasks that wait for a worker
	OldestUnfinished time.Time      // when the oldest unfinished task was made; zero where there is none
	Attempts         int
	Waiting          time.Duration // all delays between attempts
	DatabaseBytes    int64
	WALBytes         int64
	Names            []NameFigures
}

// NameFigures are the last runs of the tasks of a name.
type NameFigures struct {
	Name        string
	Running     bool      // a task of this name has a living owner
	LastSuccess time.Time // the end of the last run that succeeded; zero where none has

	// Of the last run that ended; FinishedAt is zero where none has.
	FinishedAt time.Time
	Succeeded  bool
	Duration   time.Duration
	Attempts   int
}
