package task

import (
	"cmp"
	"time"

	"github.com/10f93571/retry/backoff"
)

// MaxCrashes is how many attempts in a row may kill their owner before the task is exhausted.
const MaxCrashes = 3

// Decide returns what follows from the outcome of an attempt, given the attempts before it. It is pure: the time and
// the random numbers, uniform in [0, 1), are passed in.
func Decide(p *Policy, h History, o Outcome, now time.Time, random func() float64) Decision {
	if o.IsCrash() {
		return decideCrash(h, o)
	}
	e := h.evidence(o, now)
	c, trouble := p.Classify(e)
	d := decide(p, h, c, e, now, random)
	d.Success = c.Class == ClassSuccess
	d.ConditionErr = cmp.Or(trouble, d.ConditionErr)
	return d
}

func decide(p *Policy, h History, c Classified, e Evidence, now time.Time, random func() float64) Decision {
	switch {
	case c.Class == ClassSuccess && h.Successes+1 >= p.Consecutive:
		return Decision{Verdict: VerdictSucceeded}
	case e.Stop != nil:
		return cutShort(e.Outcome)
	case c.Class == ClassFatal && !c.Named && e.isAmbiguous():
		return Decision{Verdict: VerdictFailed, Reason: ReasonAmbiguous}
	case c.Class == ClassFatal, e.Final, !c.Named && h.eventLimitReached(e.Outcome):
		return Decision{Verdict: VerdictFailed, Reason: ReasonNotEligible}
	}
	rule, trouble := p.rule(e)
	d := schedule(p, h.counting(p, e.Outcome, c.Class == ClassSuccess), rule, e.serverDelay(), now, random)
	if d.Verdict == VerdictRetry { // else no delay was asked for
		d.ConditionErr = trouble
	}
	return d
}

func decideCrash(h History, o Outcome) Decision {
	switch {
	case o.isAmbiguous():
		return Decision{Verdict: VerdictFailed, Reason: ReasonAmbiguous}
	case h.Crashes+1 >= MaxCrashes:
		return Decision{Verdict: VerdictExhausted, Reason: ReasonCrashes}
	}
	return Decision{Verdict: VerdictInterrupted}
}

// cutShort decides for an attempt that a signal ended. What a resume would send again although it may have taken effect
// has failed.
func cutShort(o Outcome) Decision {
	d := Stopped(o.Stop)
	if d.Verdict == VerdictInterrupted && o.isAmbiguous() {
		return Decision{Verdict: VerdictFailed, Reason: ReasonAmbiguous}
	}
	return d
}

// schedule decides on the next attempt of a task whose latest one, already in h, asks for another under a rule; 0 is
// none.
func schedule(p *Policy, h History, rule int, server serverDelay, now time.Time, random func() float64) Decision {
	if p.Attempts > 0 && h.Counted >= p.Attempts {
		return Decision{Verdict: VerdictExhausted, Reason: ReasonAttempts}
	}
	along := h.along(rule)
	delay := p.curve(rule).Delay(along.Step+1, backoff.Chance{Phase: h.Phase, Prev: along.Delay, Rand: random})
	d := Decision{Verdict: VerdictRetry, Delay: max(delay, server.spread(random))}
	if p.Budget > 0 {
		d = withinBudget(p, h, d.Delay, server.delay, now)
	}
	switch {
	case d.Verdict != VerdictRetry:
		return d
	case h.expired(now.Add(d.Delay)):
		return Decision{Verdict: VerdictExhausted, Reason: ReasonExpired}
	case server.delay > server.most && server.most > 0:
		d.Reason = ReasonDeferred
	}
	d.Rule = rule
	return d
}

// withinBudget keeps a delay inside the budget, taking the longest attempt so far as the estimate of the next. A delay
// too long is cut once, so that a last attempt may take twice the estimate, but never below what a server asked for.
func withinBudget(p *Policy, h History, delay, asked time.Duration, now time.Time) Decision {
	left := p.Budget - now.Sub(h.Began)
	switch {
	case left <= 0 || left-asked < h.Longest || h.Final:
		return Decision{Verdict: VerdictExhausted, Reason: ReasonBudget}
	case left-delay >= h.Longest:
		return Decision{Verdict: VerdictRetry, Delay: delay}
	default:
		return Decision{Verdict: VerdictRetry, Delay: max(asked, left-2*h.Longest), Shortened: true}
	}
}

// DecideResume returns whether a task that waits for the time next is still worth an attempt: its budget went on
// meanwhile.
func DecideResume(p *Policy, h History, next, now time.Time) Decision {
	if next.Before(now) {
		next = now
	}
	left := p.Budget - next.Sub(h.Began)
	switch {
	case p.Budget > 0 && (left <= 0 || (left < h.Longest && !h.Final)):
		return Decision{Verdict: VerdictExhausted, Reason: ReasonBudget}
	case h.expired(next):
		return Decision{Verdict: VerdictExhausted, Reason: ReasonExpired}
	}
	return Decision{Verdict: VerdictRetry, Delay: next.Sub(now)}
}
