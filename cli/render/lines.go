package render

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// Lines writes one line for each failed attempt and one at the end. On a terminal a countdown stands below them while
// retry waits.
type Lines struct {
	w         io.Writer
	verbose   bool
	named     bool // each line says which task it is about
	countdown countdown
	transfer  *transfer // nil: none is drawn
}

// NewLines returns the observer for people, who read on screen what is written to w. inForeground tells whether a countdown may
// be drawn there; nil: there is none.
func NewLines(w io.Writer, screen *os.File, inForeground func() bool, verbose bool) *Lines {
	return &Lines{w: w, verbose: verbose, countdown: countdown{w: w, screen: screen, inForeground: inForeground}}
}

// Share implements Sharer: each line names its task.
func (l *Lines) Share() { l.named = true }

// Started implements runner.Observer.
func (l *Lines) Started(t *task.Task) {
	l.countdown.clear()
	if l.verbose {
		l.print(t, "attempt %s starts (task %s)", AttemptCount(t), ShortID(t.ID))
	}
}

// Ended implements runner.Observer. A success has its line at the end, if it needs one.
func (l *Lines) Ended(t *task.Task, a task.Attempt) {
	if a.Decision.Verdict == task.VerdictSucceeded {
		return
	}
	line := fmt.Sprintf("attempt %s: %s", AttemptCount(t), Description(a.Outcome, a.Decision))
	if a.Outcome.Error == task.ErrorNone {
		line += " after " + text.Duration(a.Outcome.Duration)
	}
	switch {
	case a.Decision.Verdict == task.VerdictRetry:
		line += announce(a)
	case a.Decision.Reason == task.ReasonAmbiguous, a.Decision.Verdict == task.VerdictCancelled && isDoubtful(a.Outcome):
		line += "; " + mayHaveWorked(t)
	}
	l.print(t, "%s", line)
}

// isDoubtful reports whether nobody knows what a request came to that should not be sent twice.
func isDoubtful(o task.Outcome) bool { return o.HTTP != nil && o.HTTP.Default.Ambiguous }

// announce says when the next attempt begins, and who wants that.
func announce(a task.Attempt) string {
	wish := asked(a.Outcome, " (the server asks for %s)")
	switch d := a.Decision; {
	case d.Reason == task.ReasonDeferred:
		return asked(a.Outcome, "; the server asks for a pause of %s")
	case d.Shortened:
		return "; last one in " + text.Duration(d.Delay) + ", shortened to fit the budget"
	case d.Delay == 0:
		return "; next at once"
	default:
		return "; next in " + text.Duration(d.Delay) + wish
	}
}

// Waiting implements runner.Observer.
func (l *Lines) Waiting(t *task.Task, left time.Duration) time.Duration {
	return l.countdown.draw(t, left)
}

// Finished implements runner.Observer.
func (l *Lines) Finished(t *task.Task, r runner.Result) {
	l.countdown.clear()
	if text := Summary(t, r); text != "" {
		l.print(t, "%s", text+Hints(t, r))
	}
}

// Warn tells what went wrong beside the task.
func (l *Lines) Warn(err error) {
	l.clear()
	l.print(nil, "warning: %s", Message(err))
}

// Say implements Observer.
func (l *Lines) Say(text string) {
	l.clear()
	l.print(nil, "%s", text)
}

// clear removes what is drawn below the lines.
func (l *Lines) clear() {
	l.countdown.clear()
	l.transfer.clear()
}

func (l *Lines) print(t *task.Task, format string, args ...any) {
	prefix := "retry: "
	if l.named && t != nil {
		prefix += ShortID(t.ID) + ": "
	}
	_, _ = fmt.Fprintf(l.w, prefix+format+"\n", args...)
}

// description says how an attempt ended, with the error's own words where it has any.
func Description(o task.Outcome, d task.Decision) string {
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
func Summary(t *task.Task, r runner.Result) string {
	elapsed := text.Duration(max(0, time.Since(t.Began())))
	switch r.Decision.Verdict {
	case task.VerdictSucceeded:
		if t.AttemptCount == 1 {
			return ""
		}
		return fmt.Sprintf("succeeded in attempt %d, after %s", t.AttemptCount, elapsed)
	case task.VerdictExhausted:
		return fmt.Sprintf("gave up after %s in %s: %s%s", text.Count(t.AttemptCount, "attempt"), elapsed, exhaustion(r, t), more(t))
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
func Hints(t *task.Task, r runner.Result) string {
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
		return "no time is left in the budget of " + text.Duration(t.Policy.Budget) + asked(r.Outcome, " (the server asks for %s)") + ", " + Description(r.Outcome, r.Decision)
	case task.ReasonExpired:
		return "the idempotency key " + oldKey(t) + " by the next attempt, " + Description(r.Outcome, r.Decision)
	case task.ReasonCrashes:
		return fmt.Sprintf("%d in a row ended with the death of retry itself", task.MaxCrashes)
	}
	return Description(r.Outcome, r.Decision)
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
