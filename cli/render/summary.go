package render

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// description says how an attempt ended, with the error's own words where it has any.
func description(o task.Outcome, d task.Decision) string {
	if o.Message != "" {
		return brief(message(o))
	}
	return ended(o, d)
}

// ended is Outcome, but calls no exit of 0 ok that the policy calls a failure.
func ended(o task.Outcome, d task.Decision) string {
	if text := Outcome(o); text != "ok" || d.Success {
		return text
	}
	return "exit 0"
}

// summary is the last line of a run; empty where there is nothing to tell.
func summary(t *task.Task, r runner.Result) string {
	elapsed := text.Duration(max(0, time.Since(t.Began())))
	switch r.Decision.Verdict {
	case task.VerdictSucceeded:
		if t.AttemptCount == 1 {
			return ""
		}
		return fmt.Sprintf("succeeded in attempt %d, after %s", t.AttemptCount, elapsed)
	case task.VerdictExhausted:
		return fmt.Sprintf("gave up after %s in %s: %s%s", plural(t.AttemptCount, "attempt"), elapsed, exhaustion(r, t), more(t))
	case task.VerdictFailed:
		if r.Decision.Reason == task.ReasonAmbiguous {
			return "FAILED, ambiguous: " + killed(r) + mayHaveWorked(t) + ", and is not safe to repeat" + more(t)
		}
		if n := tooOften(t, r.Outcome); n > 0 {
			return fmt.Sprintf("not retried again: %d attempts in a row ended with %s%s", n, ended(r.Outcome, r.Decision), more(t))
		}
		return "not retried" + ineligible(r) + more(t)
	case task.VerdictCancelled:
		return "cancelled by " + canceller(r.Signal) + more(t)
	}
	if r.Decision.Reason == task.ReasonDeferred {
		return "deferred until " + Stamp(t.NextAttemptAt, time.Now()) + ", as the server asks" + later(t)
	}
	return "interrupted by " + signalName(r.Signal) + resumable(t)
}

// hints say what a person can do beside what summary names, each on a line of its own.
func hints(t *task.Task, r runner.Result) string {
	switch r.Decision.Reason {
	case task.ReasonAmbiguous:
		return "\nhint: " + lookFirst(t) + "\nhint: where the server deduplicates, --idempotency-key KEY or --idempotent lets retry send it again by itself"
	case task.ReasonExpired:
		return "\nhint: the server may have forgotten the key, and take the request for another one: look at it before you send that anew"
	}
	return ""
}

// killed begins a line about an attempt that has no line of its own: its owner died.
func killed(r runner.Result) string {
	if r.Outcome.IsCrash() {
		return "retry was killed while it ran; "
	}
	return ""
}

// mayHaveWorked says of a request what nobody knows.
func mayHaveWorked(t *task.Task) string {
	if t.Request == nil {
		return "it may have taken effect"
	}
	return brief(t.Request.Method) + " may have taken effect"
}

// ineligible says why there is no other attempt. An attempt that could not begin has said so.
func ineligible(r runner.Result) string {
	if r.Outcome.Error == task.ErrorStart {
		return ""
	}
	return ": " + ended(r.Outcome, r.Decision) + " is not eligible for another attempt"
}

// tooOften returns how many attempts in a row came to what is not tried more often; 0 where that is not why there is no other.
func tooOften(t *task.Task, o task.Outcome) int {
	if o.HTTP == nil || o.HTTP.Default.AtMost == 0 || t.History.InARow < o.HTTP.Default.AtMost {
		return 0
	}
	return t.History.InARow
}

func exhaustion(r runner.Result, t *task.Task) string {
	switch r.Decision.Reason {
	case task.ReasonBudget:
		return "no time is left in the budget of " + text.Duration(t.Policy.Budget) + asked(r.Outcome, " (the server asks for %s)") + ", " + description(r.Outcome, r.Decision)
	case task.ReasonExpired:
		return "the idempotency key " + oldKey(t) + " by the next attempt, " + description(r.Outcome, r.Decision)
	case task.ReasonCrashes:
		return fmt.Sprintf("%d in a row ended with the death of retry itself", task.MaxCrashes)
	}
	return description(r.Outcome, r.Decision)
}

// canceller says who cancelled. A TERM by itself only interrupts: where the task is cancelled then, retry cancel sent it.
func canceller(sig os.Signal) string {
	if sig == nil || sig == syscall.SIGTERM {
		return "another process"
	}
	return signalName(sig)
}

// more points to where the attempts are written down.
func more(t *task.Task) string {
	if t.Number == 0 {
		return ""
	}
	return " (retry status " + ShortID(t.ID) + ")"
}

// later says how a deferred task goes on.
func later(t *task.Task) string {
	if t.Number == 0 {
		return "; no journal remembers it: run it again then"
	}
	return resumable(t)
}

func resumable(t *task.Task) string {
	if t.Number == 0 {
		return ""
	}
	return "; to go on: retry resume " + ShortID(t.ID)
}
