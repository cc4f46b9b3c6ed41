package runner

import "time"

// Evidence is what a condition looks at: how an attempt ended, and when.
type Evidence struct {
	Outcome
	Attempt int           // its number
	Elapsed time.Duration // since the task began, waits included
}

// evidence is what is known when the outcome of the next attempt of a history is there.
func (h History) evidence(o Outcome, now time.Time) Evidence {
	return Evidence{Outcome: o, Attempt: h.Made + 1, Elapsed: max(0, now.Sub(h.Began))}
}
