package render

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Description says how an attempt ended, in the words of its error if it has one.
func Description(o task.Outcome, d task.Decision) string {
	if o.Message != "" {
		return brief(message(o))
	}
	return ended(o, d)
}

// ended is Outcome, except that an exit status of 0 is "exit 0" where the policy calls it a failure.
func ended(o task.Outcome, d task.Decision) string {
	if text := Outcome(o); text != "ok" || d.Success {
		return text
	}
	return "exit 0"
}

// Summary is the last line of a run; empty for a success at the first attempt. Where a journal has the task, it names a
// command for it.
func Summary(t *task.Task, r runner.Result) string {
	if r.Decision.Verdict == task.VerdictSucceeded && t.AttemptCount == 1 {
		return ""
	}
	elapsed := text.Duration(max(0, time.Since(t.Began())))
	status, resume := "", ""
	if t.Number != 0 {
		status, resume = " (retry status "+ShortID(t.ID)+")", "; to go on: retry resume "+ShortID(t.ID)
	}
	switch r.Decision.Verdict {
	case task.VerdictSucceeded:
		return fmt.Sprintf("succeeded in attempt %d, after %s", t.AttemptCount, elapsed)
	case task.VerdictExhausted:
		return fmt.Sprintf("gave up after %s in %s: %s%s",
			text.Count(t.AttemptCount, "attempt"), elapsed, exhaustedClause(r, t)+lastLine(t, r.Outcome), status)
	case task.VerdictFailed:
		return failedClause(r, t) + lastLine(t, r.Outcome) + status
	case task.VerdictCancelled:
		by := "another process" // SIGTERM by itself only interrupts: if the task is cancelled after it, retry cancel sent it
		if r.Signal != nil && r.Signal != syscall.SIGTERM {
			by = signalName(r.Signal)
		}
		return "cancelled by " + by + status
	}
	if r.Decision.Reason != task.ReasonDeferred {
		return "interrupted by " + signalName(r.Signal) + resume
	}
	if t.Queue == task.QueueWorker { // which goes on by itself
		resume = status
	}
	return "deferred until " + Stamp(t.NextAttemptAt, time.Now()) + ", as the server asks" +
		cmp.Or(resume, "; no journal remembers it: run it again then")
}

// longReason is the most characters of a command's last line beside the outcome.
const longReason = 160

// lastLine is the last line that was captured of a command, which mostly says why it failed.
func lastLine(t *task.Task, o task.Outcome) string {
	if t.Kind != task.KindCommand {
		return ""
	}
	for _, tail := range []string{o.Stderr, o.Stdout} {
		if tail = strings.TrimSpace(ansi.Strip(tail)); tail != "" {
			line := tail[strings.LastIndexAny(tail, "\r\n")+1:]
			return ": " + text.Escape(text.Shorten(text.Mask(strings.TrimSpace(line), t.Options.Mask), longReason))
		}
	}
	return ""
}

// failedClause says why there is no other attempt. Where an attempt could not begin, its own line says so already.
func failedClause(r runner.Result, t *task.Task) string {
	outcome := ended(r.Outcome, r.Decision)
	reply := r.Outcome.Reply
	switch {
	case r.Decision.Reason == task.ReasonAmbiguous && r.Outcome.IsCrash():
		return "failed, ambiguous: retry was killed while it ran; " + ambiguousEffect(t) + ", and is not safe to repeat"
	case r.Decision.Reason == task.ReasonAmbiguous:
		return "failed, ambiguous: " + ambiguousEffect(t) + ", and is not safe to repeat"
	case r.Decision.Reason == task.ReasonStdin && r.Outcome.Error == task.ErrorStart:
		return "not retried: " + r.Outcome.Message
	case r.Decision.Reason == task.ReasonStdin:
		verb := "retried"
		if r.Decision.Success { // nothing is wrong with the attempt itself
			verb = "run again"
		}
		return fmt.Sprintf("not %s after %s: what attempt %d has read from stdin cannot be read again", verb,
			outcome+inARow(r, t), t.AttemptCount)
	case reply != nil && reply.Default.AtMost > 0 && t.History.InARow >= reply.Default.AtMost:
		return fmt.Sprintf("not retried again: %d attempts in a row ended with %s", t.History.InARow, outcome)
	case r.Outcome.Error == task.ErrorStart:
		return "not retried"
	}
	return "not retried: " + outcome + " " + brief(cmp.Or(r.Decision.Why, "is final"))
}

// exhaustedClause says what ended the attempts of a task that is given up.
func exhaustedClause(r runner.Result, t *task.Task) string {
	switch r.Decision.Reason {
	case task.ReasonBudget:
		return "no time is left in the budget of " + text.Duration(t.Policy.Budget) +
			withServerDelay(r.Outcome, " (the server asks for %s)") + ", " + Description(r.Outcome, r.Decision) + inARow(r, t)
	case task.ReasonExpired:
		return "the idempotency key " + expiredKey(t) + " by the next attempt, " + Description(r.Outcome, r.Decision)
	case task.ReasonCrashes:
		return fmt.Sprintf("%d in a row ended with the death of retry itself", task.MaxCrashes)
	}
	return Description(r.Outcome, r.Decision) + inARow(r, t)
}

// inARow says of a success how many there were of those that the policy wants; "" of a failure.
func inARow(r runner.Result, t *task.Task) string {
	if !r.Decision.Success {
		return ""
	}
	return fmt.Sprintf(" (%d of %d successes in a row)", t.History.Successes, t.Policy.Consecutive)
}

// Hints say what a person can do after a run, each on a line of its own.
func Hints(t *task.Task, r runner.Result) string {
	switch r.Decision.Reason {
	case task.ReasonAmbiguous:
		return "\nhint: " + checkServer(t) +
			"\nhint: where the server deduplicates, --idempotency-key KEY or --idempotent lets retry send it again by itself"
	case task.ReasonStdin:
		return "\nhint: --stdin replay gives every attempt the same; null gives it nothing, rest what is left"
	case task.ReasonExpired:
		return "\nhint: the server may have forgotten the key, and take the request for another one: " +
			"look at it before you send that anew"
	}
	return ""
}

// signalName names the signals that end a run.
func signalName(sig os.Signal) string {
	return cmp.Or(map[os.Signal]string{
		syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT",
	}[sig], sig.String())
}
