package render

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
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
	transfer  *transfer // nil: none is drawn
}

// NewLines returns the observer for people, who read on screen what is written to w. inForeground tells whether a countdown may
// be drawn there; nil: there is none.
func NewLines(w io.Writer, screen *os.File, inForeground func() bool, verbose bool) *Lines {
	return &Lines{w: w, verbose: verbose, countdown: countdown{w: w, screen: screen, inForeground: inForeground}}
}

// Started implements runner.Observer.
func (l *Lines) Started(t *task.Task) {
	l.countdown.clear()
	if l.verbose {
		l.print(t, "attempt %s starts (task %s)", attemptCount(t), ShortID(t.ID))
	}
}

// Ended implements runner.Observer. A success has its line at the end, if it needs one.
func (l *Lines) Ended(t *task.Task, a task.Attempt) {
	if a.Decision.Verdict == task.VerdictSucceeded {
		return
	}
	line := fmt.Sprintf("attempt %s: %s", attemptCount(t), description(a.Outcome, a.Decision))
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
	if text := summary(t, r); text != "" {
		l.print(t, "%s", text+hints(t, r))
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
