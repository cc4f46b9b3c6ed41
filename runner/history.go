package runner

import "time"

// History is what a decision remembers of a task's earlier attempts. It stays small however many there were.
type History struct {
	Began       time.Time     // where the budget begins
	Phase       float64       // the task's fixed phase, in [0, 1)
	Counted     int           // attempts that used up one of the policy's
	Interrupted int           // attempts that did not
	Step        int           // n of the latest retry; 0 before the first and after a reset
	Delay       time.Duration // before the latest retry
	Successes   int           // in a row
	Crashes     int           // attempts in a row whose owner died
	Longest     time.Duration // the longest attempt so far
	Final       bool          // the latest delay was shortened: what follows it is the last attempt
}

// After returns the history with one more attempt in it. An attempt that was interrupted keeps its number but uses up nothing.
func (h History) After(p *Policy, o Outcome, d Decision) History {
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
	h = h.counting(p, o)
	if d.Verdict == VerdictRetry {
		h.Step, h.Delay, h.Final = h.Step+1, d.Delay, d.Shortened
	}
	return h
}

// counting adds what an outcome alone changes. A success, or an attempt that ran for reset-after, starts the backoff anew.
func (h History) counting(p *Policy, o Outcome) History {
	h.Counted++
	h.Longest = max(h.Longest, o.Duration)
	success := p.Classify(o) == ClassSuccess
	if success || (p.ResetAfter > 0 && o.Duration >= p.ResetAfter) {
		h.Step, h.Delay = 0, 0
	}
	if success {
		h.Successes++
	} else {
		h.Successes = 0
	}
	return h
}
