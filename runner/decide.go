package runner

import (
	"cmp"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/backoff"
)

// MaxCrashes is how many attempts in a row may kill their owner before the task is exhausted.
const MaxCrashes = 3

// Decide returns what follows from the outcome of an attempt, given the attempts before it. It is pure: the time and the
// random numbers, uniform in [0, 1), are passed in.
func Decide(p *Policy, h History, o Outcome, now time.Time, random func() float64) Decision {
	if o.IsCrash() {
		return decideCrash(h)
	}
	e := h.evidence(o, now)
	class, trouble := p.Classify(e)
	d := decide(p, h, class, e, now, random)
	d.Success = class == ClassSuccess
	d.Trouble = cmp.Or(trouble, d.Trouble)
	return d
}

func decide(p *Policy, h History, class Class, e Evidence, now time.Time, random func() float64) Decision {
	switch {
	case class == ClassSuccess && h.Successes+1 >= p.Consecutive:
		return Decision{Verdict: VerdictSucceeded}
	case e.Stop != nil:
		return stopped(e.Stop)
	case class == ClassFatal, e.Final:
		return Decision{Verdict: VerdictFailed, Reason: ReasonNotEligible}
	}
	rule, trouble := p.rule(e)
	d := schedule(p, h.counting(p, e.Outcome, class == ClassSuccess), rule, now, random)
	if d.Verdict == VerdictRetry { // else no delay was asked for
		d.Trouble = trouble
	}
	return d
}

func decideCrash(h History) Decision {
	if h.Crashes+1 >= MaxCrashes {
		return Decision{Verdict: VerdictExhausted, Reason: ReasonCrashes}
	}
	return Decision{Verdict: VerdictInterrupted}
}

// stopped decides for a task whose owner was told to stop: from the keyboard it is over, otherwise it can be resumed.
func stopped(sig os.Signal) Decision {
	if sig == os.Interrupt || sig == syscall.SIGQUIT {
		return Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
	}
	return Decision{Verdict: VerdictInterrupted}
}

// schedule decides on the next attempt of a task whose latest one, already in h, asks for another under a rule; 0 is none.
func schedule(p *Policy, h History, rule int, now time.Time, random func() float64) Decision {
	if p.Attempts > 0 && h.Counted >= p.Attempts {
		return Decision{Verdict: VerdictExhausted, Reason: ReasonAttempts}
	}
	along := h.along(rule)
	delay := p.curve(rule).Delay(along.Step+1, backoff.Chance{Phase: h.Phase, Prev: along.Delay, Rand: random})
	d := Decision{Verdict: VerdictRetry, Delay: delay}
	if p.Budget > 0 {
		d = withinBudget(p, h, delay, now)
	}
	d.Rule = rule
	return d
}

// withinBudget keeps a delay inside the budget, taking the longest attempt so far as the estimate of the next. A delay too
// long is cut once, so that a last attempt may take twice the estimate.
func withinBudget(p *Policy, h History, delay time.Duration, now time.Time) Decision {
	left := p.Budget - now.Sub(h.Began)
	switch {
	case left <= 0 || left < h.Longest || h.Final:
		return Decision{Verdict: VerdictExhausted, Reason: ReasonBudget}
	case left-delay >= h.Longest:
		return Decision{Verdict: VerdictRetry, Delay: delay}
	default:
		return Decision{Verdict: VerdictRetry, Delay: max(0, left-2*h.Longest), Shortened: true}
	}
}

// DecideResume returns whether a task that waits for the time next is still worth an attempt: its budget went on meanwhile.
func DecideResume(p *Policy, h History, next, now time.Time) Decision {
	if next.Before(now) {
		next = now
	}
	left := p.Budget - next.Sub(h.Began)
	if p.Budget > 0 && (left <= 0 || (left < h.Longest && !h.Final)) {
		return Decision{Verdict: VerdictExhausted, Reason: ReasonBudget}
	}
	return Decision{Verdict: VerdictRetry, Delay: next.Sub(now)}
}
