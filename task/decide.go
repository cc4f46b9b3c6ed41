package task

import (
	"cmp"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/backoff"
)

// MaxCrashes is how many attempts in a row may kill their owner before the task is exhausted. Bystanders do not count.
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
	d.Success = c.Class == ClassSuccess && d.Verdict != VerdictCancelled
	d.ConditionErr = cmp.Or(trouble, d.ConditionErr)
	return d
}

func decide(p *Policy, h History, c Classified, e Evidence, now time.Time, random func() float64) Decision {
	stopped, ambiguous := Stopped(e.Stop), e.reply().Default.Ambiguous
	switch {
	case e.StdinRead && e.Error == ErrorStart: // it has not begun
		return Decision{Verdict: VerdictFailed, Reason: ReasonStdin}
	case c.Class == ClassSuccess && h.Successes+1 >= p.Consecutive:
		return Decision{Verdict: VerdictSucceeded}
	case e.Stop != nil && (!ambiguous && !e.StdinRead || stopped.Verdict == VerdictCancelled):
		return stopped
	case ambiguous && (e.Stop != nil || (c.Class == ClassFatal && !c.Named)): // no resume may send it again either
		return Decision{Verdict: VerdictFailed, Reason: ReasonAmbiguous}
	case e.Stop != nil: // a resume could not have the same stdin either
		return Decision{Verdict: VerdictFailed, Reason: ReasonStdin}
	case e.reply().NoRetry && c.Class == ClassRetryable:
		const why = "came with the server's word not to try again"
		return Decision{Verdict: VerdictFailed, Reason: ReasonNotEligible, Why: why}
	case c.Class == ClassFatal, !c.Named && h.eventLimitReached(e.Outcome):
		return Decision{Verdict: VerdictFailed, Reason: ReasonNotEligible, Why: c.Why}
	case e.Final:
		const why = "came with output that is passed on already, or that nobody reads"
		return Decision{Verdict: VerdictFailed, Reason: ReasonNotEligible, Why: why}
	}
	rule, trouble := p.rule(e)
	d := schedule(p, h.counting(p, e.Outcome, c.Class == ClassSuccess), rule, e.reply(), now, random)
	switch {
	case d.Verdict != VerdictRetry: // the rule was not needed
	case e.StdinRead:
		return Decision{Verdict: VerdictFailed, Reason: ReasonStdin}
	default:
		d.ConditionErr = trouble
	}
	return d
}

func decideCrash(h History, o Outcome) Decision {
	switch {
	case o.reply().Default.Ambiguous:
		return Decision{Verdict: VerdictFailed, Reason: ReasonAmbiguous}
	case !o.IsBystander() && h.Crashes+1 >= MaxCrashes:
		return Decision{Verdict: VerdictExhausted, Reason: ReasonCrashes}
	}
	return Decision{Verdict: VerdictInterrupted}
}

// Stopped decides for a task whose retry was told to stop. Ctrl-C (SIGINT) and Ctrl-\ (SIGQUIT) make the task
// CANCELLED; after any other signal it is interrupted, and can be resumed.
func Stopped(sig os.Signal) Decision {
	if sig == os.Interrupt || sig == syscall.SIGQUIT {
		return Decision{Verdict: VerdictCancelled, Reason: ReasonCancelled}
	}
	return Decision{Verdict: VerdictInterrupted}
}

// Stops reports whether a signal asks retry to end. The others are only forwarded to a running attempt.
func Stops(sig os.Signal) bool {
	switch sig {
	case os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// schedule decides on the next attempt after one that is already in h. The rule gives the delay; 0 is no rule.
func schedule(p *Policy, h History, rule int, reply Reply, now time.Time, random func() float64) Decision {
	if p.Attempts > 0 && h.Counted >= p.Attempts {
		return Decision{Verdict: VerdictExhausted, Reason: ReasonAttempts}
	}
	along := h.along(rule)
	delay := p.curve(rule).Delay(along.Step+1, backoff.Chance{Phase: h.Phase, Prev: along.Delay, Rand: random})
	d := Decision{Verdict: VerdictRetry, Delay: max(delay, reply.spreadDelay(random))}
	if p.Budget > 0 {
		d = withinBudget(p, h, d.Delay, reply.ServerDelay, now)
	}
	switch {
	case d.Verdict != VerdictRetry:
		return d
	case h.expired(now.Add(d.Delay)):
		return Decision{Verdict: VerdictExhausted, Reason: ReasonExpired}
	case reply.ServerDelay > reply.MaxDelay && reply.MaxDelay > 0:
		d.Reason = ReasonDeferred
	}
	d.Rule = rule
	return d
}

// withinBudget keeps a delay inside the budget, taking the longest attempt so far as the estimate of the next. A delay
// too long is cut once, so that a last attempt has room for its usual end, but never below what a server asked for.
func withinBudget(p *Policy, h History, delay, asked time.Duration, now time.Time) Decision {
	left := p.Left(h.Began, now)
	room := max(2*h.Longest, p.LeastRoom())
	switch {
	case left <= 0 || left-asked < h.Longest || h.Final:
		return Decision{Verdict: VerdictExhausted, Reason: ReasonBudget}
	case left-delay >= room:
		return Decision{Verdict: VerdictRetry, Delay: delay}
	default:
		return Decision{Verdict: VerdictRetry, Delay: max(asked, left-room), Shortened: true}
	}
}

// DecideResume returns whether a task that waits for the time next is still worth an attempt: its budget went on
// meanwhile.
func DecideResume(p *Policy, h History, next, now time.Time) Decision {
	delay := max(0, next.Sub(now))
	left := p.Left(h.Began, now) - delay
	switch {
	case p.Budget > 0 && (left <= 0 || (left < h.Longest && !h.Final)):
		return Decision{Verdict: VerdictExhausted, Reason: ReasonBudget}
	case h.expired(now.Add(delay)):
		return Decision{Verdict: VerdictExhausted, Reason: ReasonExpired}
	}
	return Decision{Verdict: VerdictRetry, Delay: delay}
}

// Evidence is what a condition looks at: how an attempt ended, and when.
type Evidence struct {
	Outcome
	Attempt int           // its number
	Elapsed time.Duration // since the task began, waits included
}

// evidence returns what conditions look at after the attempt that follows the history.
func (h History) evidence(o Outcome, now time.Time) Evidence {
	return Evidence{Outcome: o, Attempt: h.Made + 1, Elapsed: max(0, elapsed(h.Began, now))}
}

// Progress is the position of a task on a backoff curve.
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
	Crashes     int           // attempts in a row whose owner died, without bystanders
	Longest     time.Duration // the longest attempt so far
	Final       bool          // the latest delay was shortened: what follows it is the last attempt
	Event       string        // of the latest HTTP attempt
	InARow      int           // attempts in a row with this event
}

// expired reports whether an attempt would begin too late for the task's idempotency key.
func (h History) expired(start time.Time) bool {
	return !h.Expires.IsZero() && elapsed(h.Expires, start) > 0
}

// eventLimitReached reports whether this outcome is the last one allowed in a row of attempts with the same event.
func (h History) eventLimitReached(o Outcome) bool {
	most := o.reply().Default.AtMost
	return most > 0 && h.withEvent(o).InARow >= most
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

// along returns the position on the curve of a rule; 0 is the policy's own curve. A rule starts anew after the delay of
// another rule, since it is for a series of like outcomes. The policy's curve continues where it was.
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
		if !o.IsBystander() {
			h.Crashes++
		}
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

// retried records a decision to retry. The delay that a server asked for is not one of the curve.
func (h History) retried(o Outcome, d Decision) History {
	before := h.along(d.Rule)
	next := Progress{Step: before.Step + 1, Delay: d.Delay}
	if o.reply().ServerDelay > 0 {
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

// counting adds an outcome, without the decision. A success, or an attempt that ran for reset-after, resets the
// backoff.
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
