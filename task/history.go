package task

import (
	"time"
)

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

// Progress is how far a task has got along a backoff curve.
type Progress struct {
	Step  int           // n of the latest retry; 0 before the first and after a reset
	Delay time.Duration // before it
}

// History is what a decision remembers of a task's earlier attempts. It stays small however many there were.
type History struct {
	Began       time.Time     // where the budget begins
	Expires     time.Time     // when its idempotency key is too old for another attempt to begin; zero = never
	Phase       float64       // the task's fixed phase, in [0, 1)
	Made        int           // the number of the latest attempt
	Counted     int           // attempts that used up one of the policy's
	Interrupted int           // attempts that did not
	Delay       time.Duration // before the latest retry
	Own         Progress      // along the policy's curve
	Rule        int           // the number of the rule that gave the latest delay, from 1; 0 where none did
	Ruled       Progress      // along that rule's curve
	Successes   int           // in a row
	Crashes     int           // attempts in a row whose owner died
	Longest     time.Duration // the longest attempt so far
	Final       bool          // the latest delay was shortened: what follows it is the last attempt
	Event       string        // what the latest attempt of HTTP came to
	InARow      int           // how many ended so
}

// expired reports whether an attempt would begin too late for the task's idempotency key.
func (h History) expired(start time.Time) bool {
	return !h.Expires.IsZero() && start.After(h.Expires)
}

// eventLimitReached reports whether with this outcome as many attempts in a row ended in one event as there may be.
func (h History) eventLimitReached(o Outcome) bool {
	return o.Reply != nil && o.Reply.Default.AtMost > 0 && h.withEvent(o).InARow >= o.Reply.Default.AtMost
}

// withEvent counts how many attempts in a row ended in the same event.
func (h History) withEvent(o Outcome) History {
	switch {
	case o.Reply == nil:
	case h.Event == o.Reply.Default.Event:
		h.InARow++
	default:
		h.Event, h.InARow = o.Reply.Default.Event, 1
	}
	return h
}

// along returns the progress along the curve of a rule; 0 is the policy's own. A rule begins anew where another delay
// came between: it is for a run of outcomes of one class. The policy's curve goes on where it was.
func (h History) along(rule int) Progress {
	switch rule {
	case 0:
		return h.Own
	case h.Rule:
		return h.Ruled
	}
	return Progress{}
}

// After returns the history with one more attempt in it. An attempt that was interrupted keeps its number but uses up
// nothing.
func (h History) After(p *Policy, o Outcome, d Decision) History {
	h.Made++
	if o.IsCrash() {
		h.Crashes++
		h.Interrupted++
		return h
	}
	h.Crashes = 0
	h.Longest = max(h.Longest, o.Duration)
	if d.Verdict == VerdictInterrupted {
		h.Interrupted++
		return h
	}
	h = h.counting(p, o, d.Success).withEvent(o)
	if d.Verdict == VerdictRetry {
		h = h.retried(o, d)
	}
	return h
}

// retried takes the step that a decision to retry took. A server's delay is none of the curve's.
func (h History) retried(o Outcome, d Decision) History {
	before := h.along(d.Rule)
	next := Progress{Step: before.Step + 1, Delay: d.Delay}
	if o.serverDelay().delay > 0 {
		next.Delay = before.Delay
	}
	if d.Rule == 0 {
		h.Own = next
	} else {
		h.Ruled = next
	}
	h.Rule, h.Delay, h.Final = d.Rule, d.Delay, d.Shortened
	return h
}

// counting adds what an outcome alone changes. A success, or an attempt that ran for reset-after, starts the backoff
// anew.
func (h History) counting(p *Policy, o Outcome, success bool) History {
	h.Counted++
	h.Longest = max(h.Longest, o.Duration)
	if success || (p.ResetAfter > 0 && o.Duration >= p.ResetAfter) {
		h.Delay, h.Own, h.Rule, h.Ruled = 0, Progress{}, 0, Progress{}
	}
	if success {
		h.Successes++
	} else {
		h.Successes = 0
	}
	return h
}
