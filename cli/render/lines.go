package render

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/10f93571/retry/runner"
)

// Observer tells people what a run does.
type Observer interface {
	runner.Observer
	// Say tells what is worth knowing, and no warning.
	Say(text string)
}

// Lines writes one line for each failed attempt and one at the end. On a terminal a countdown stands below them while
// retry waits.
type Lines struct {
	w         io.Writer
	verbose   bool
	named     bool // each line says which task it is about
	countdown countdown
}

// NewLines returns the observer for people, who read on screen what is written to w. inForeground tells whether a countdown may
// be drawn there; nil: there is none.
func NewLines(w io.Writer, screen *os.File, inForeground func() bool, verbose bool) *Lines {
	return &Lines{w: w, verbose: verbose, countdown: countdown{w: w, screen: screen, inForeground: inForeground}}
}

// Started implements runner.Observer.
func (l *Lines) Started(t *runner.Task) {
	l.countdown.clear()
	if l.verbose {
		l.print(t, "attempt %s starts (task %s)", attemptCount(t), ShortID(t.ID))
	}
}

// Ended implements runner.Observer. A success has its line at the end, if it needs one.
func (l *Lines) Ended(t *runner.Task, a runner.Attempt) {
	if a.Decision.Verdict == runner.VerdictSucceeded {
		return
	}
	line := fmt.Sprintf("attempt %s: %s", attemptCount(t), description(a.Outcome, a.Decision))
	if a.Outcome.Error == runner.ErrorNone {
		line += " after " + Duration(a.Outcome.Duration)
	}
	if a.Decision.Verdict == runner.VerdictRetry {
		line += announce(a.Decision)
	}
	l.print(t, "%s", line)
}

func announce(d runner.Decision) string {
	switch {
	case d.Shortened:
		return "; last one in " + Duration(d.Delay) + ", shortened to fit the budget"
	case d.Delay == 0:
		return "; next at once"
	}
	return "; next in " + Duration(d.Delay)
}

// Waiting implements runner.Observer.
func (l *Lines) Waiting(t *runner.Task, left time.Duration) time.Duration {
	return l.countdown.draw(t, left)
}

// Finished implements runner.Observer.
func (l *Lines) Finished(t *runner.Task, r runner.Result) {
	l.countdown.clear()
	if text := summary(t, r); text != "" {
		l.print(t, "%s", text)
	}
}

// Warn tells what went wrong beside the task.
func (l *Lines) Warn(err error) {
	l.countdown.clear()
	l.print(nil, "warning: %s", Message(err))
}

// Say implements Observer.
func (l *Lines) Say(text string) {
	l.countdown.clear()
	l.print(nil, "%s", text)
}

func (l *Lines) print(t *runner.Task, format string, args ...any) {
	prefix := "retry: "
	if l.named && t != nil {
		prefix += ShortID(t.ID) + ": "
	}
	_, _ = fmt.Fprintf(l.w, prefix+format+"\n", args...)
}

// description says how an attempt ended, with the error's own words where it has any.
func description(o runner.Outcome, d runner.Decision) string {
	if o.Message != "" {
		return brief(o.Message)
	}
	return ended(o, d)
}

// ended is Outcome, but calls no exit of 0 ok that the policy calls a failure.
func ended(o runner.Outcome, d runner.Decision) string {
	if text := Outcome(o); text != "ok" || d.Success {
		return text
	}
	return "exit 0"
}

// summary is the last line of a run; empty where there is nothing to tell.
func summary(t *runner.Task, r runner.Result) string {
	elapsed := Duration(max(0, time.Since(t.Began())))
	switch r.Decision.Verdict {
	case runner.VerdictSucceeded:
		if t.AttemptCount == 1 {
			return ""
		}
		return fmt.Sprintf("succeeded in attempt %d, after %s", t.AttemptCount, elapsed)
	case runner.VerdictExhausted:
		return fmt.Sprintf("gave up after %s in %s: %s%s", plural(t.AttemptCount, "attempt"), elapsed, exhaustion(r, t), more(t))
	case runner.VerdictFailed:
		return "not retried" + ineligible(r) + more(t)
	case runner.VerdictCancelled:
		return "cancelled by " + canceller(r.Signal) + more(t)
	}
	return "interrupted by " + signalName(r.Signal) + resumable(t)
}

// ineligible says why there is no other attempt. An attempt that could not begin has said so.
func ineligible(r runner.Result) string {
	if r.Outcome.Error == runner.ErrorStart {
		return ""
	}
	return ": " + ended(r.Outcome, r.Decision) + " is not eligible for another attempt"
}

func exhaustion(r runner.Result, t *runner.Task) string {
	switch r.Decision.Reason {
	case runner.ReasonBudget:
		return "no time is left in the budget of " + Duration(t.Policy.Budget) + ", " + description(r.Outcome, r.Decision)
	case runner.ReasonCrashes:
		return fmt.Sprintf("%d in a row ended with the death of retry itself", runner.MaxCrashes)
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
func more(t *runner.Task) string {
	if t.Number == 0 {
		return ""
	}
	return " (retry status " + ShortID(t.ID) + ")"
}

func resumable(t *runner.Task) string {
	if t.Number == 0 {
		return ""
	}
	return "; to go on: retry resume " + ShortID(t.ID)
}
