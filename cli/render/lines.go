package render

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// lineObserver writes one line for each failed attempt and one at the end. On a terminal a status line stands below
// them: a countdown while retry waits, the time that an attempt takes whose output is held, or the progress of a
// transfer.
type lineObserver struct {
	w       io.Writer
	name    string // who speaks, see Nested
	verbose bool
	quiet   bool // see NewQuiet
	named   bool // each line says which task it is about
	status  statusLine
	screen  func() Screen // asked when the first line is written: most runs write none
	left    cursor        // where others have left it since the last line
}

// Terminal is what the lines of a run may be read on.
type Terminal struct {
	File         *os.File
	InForeground func() bool // whether a status line may be drawn
	Getenv       func(string) string
}

// NewLines returns the observer for people, who read what is written to w on a terminal, or anywhere where it is nil.
func NewLines(w io.Writer, terminal *Terminal, verbose bool) Observer {
	l := &lineObserver{w: w, name: Speaker(0), verbose: verbose, status: statusLine{w: w}, screen: noScreen}
	if terminal != nil {
		l.status.screen, l.status.inForeground = terminal.File, terminal.InForeground
		l.screen = sync.OnceValue(func() Screen { return ScreenOf(terminal.File, terminal.Getenv) })
	}
	return l
}

// NewQuiet returns the observer of -q. It writes nothing, except why a task failed in the end whose output is shown on
// failure only: a command that could not be found, or that was stopped, may have written nothing itself. And it says
// where something is lost: see runner.Loss.
func NewQuiet(w io.Writer) Observer {
	return &lineObserver{w: w, name: Speaker(0), quiet: true, status: statusLine{w: w}, screen: noScreen}
}

func noScreen() Screen { return Screen{} }

// Speaker is what the lines of a retry begin with that runs inside so many others: as of make, "retry[1]" in one.
func Speaker(level int) string {
	if level == 0 {
		return "retry"
	}
	return fmt.Sprintf("retry[%d]", level)
}

// Nested has the lines for people say how many other retry processes this one runs in.
func Nested(o Observer, level int) Observer {
	if l, ok := o.(*lineObserver); ok {
		l.name = Speaker(level)
	}
	return o
}

// silent reports whether nothing is said about a task.
func (l *lineObserver) silent(t *task.Task) bool {
	explained := t.Options.Output == task.OutputFailure && (t.Status == task.Failed || t.Status == task.Exhausted)
	return l.quiet && t.Reason != task.ReasonStdin && !explained
}

func (l *lineObserver) Share() { l.named = true }

func (l *lineObserver) Started(t *task.Task) {
	l.Clear()
	if l.verbose {
		l.print(t, plain, "attempt %s starts (task %s)", AttemptCount(t), ShortID(t.ID))
	}
	l.left = cursorUnknown
	if t.Options.Output.Held() && !l.named && l.status.visible() {
		l.showLife(t)
	}
}

// showLife draws how long an attempt takes that shows nothing itself, until Clear.
func (l *lineObserver) showLife(t *task.Task) {
	count, began := AttemptCount(t), time.Now()
	l.status.repeat(func() string {
		seconds := time.Since(began).Round(time.Second)
		return l.screen().Paint(Faint, fmt.Sprintf("%s: attempt %s runs, %s", l.name, count, text.Duration(seconds)))
	})
}

// Clear erases the status line: something else is written now.
func (l *lineObserver) Clear() { l.status.clear() }

// Ended writes a line about a failed attempt. A success has its line at the end, if it needs one.
func (l *lineObserver) Ended(t *task.Task, a task.Attempt) {
	if a.Decision.Verdict == task.VerdictSucceeded || l.silent(t) {
		return
	}
	if passedOn := !t.Options.Output.Held() || t.Options.Output.PassesOn(t.Status); passedOn && unended(a.Outcome) {
		l.left = cursorInLine
	}
	line, tone := fmt.Sprintf("attempt %s: %s", AttemptCount(t), Description(a.Outcome, a.Decision)), stops
	if a.Outcome.Error == task.ErrorNone && !a.Outcome.IsCrash() { // how long that one took is not known
		line += " after " + text.Duration(a.Outcome.Duration)
	}
	switch {
	case a.Decision.Verdict == task.VerdictRetry:
		line, tone = line+nextAttemptClause(a), waits
	case a.Decision.Reason == task.ReasonAmbiguous,
		a.Decision.Verdict == task.VerdictCancelled && a.Outcome.Reply != nil && a.Outcome.Reply.Default.Ambiguous:
		line += "; " + ambiguousEffect(t)
	}
	l.print(t, tone, "%s", line)
	if t.Options.OnRetry != "" { // it may write too
		l.left = cursorUnknown
	}
}

// unended reports whether the last line of what was captured has no end, and another one would stick to it.
func unended(o task.Outcome) bool { return o.Stderr != "" && !strings.HasSuffix(o.Stderr, "\n") }

// nextAttemptClause says when the next attempt begins, and whether the server asked for that delay.
func nextAttemptClause(a task.Attempt) string {
	switch d := a.Decision; {
	case d.Reason == task.ReasonDeferred:
		return withServerDelay(a.Outcome, "; the server asks for a pause of %s")
	case d.Shortened:
		return "; last one in " + text.Duration(d.Delay) + ", shortened to fit the budget"
	case d.Delay == 0:
		return "; next at once"
	default:
		return "; next in " + text.Duration(d.Delay) + withServerDelay(a.Outcome, " (the server asks for %s)")
	}
}

// Waiting draws the countdown, to the second.
func (l *lineObserver) Waiting(t *task.Task, left time.Duration) time.Duration {
	if !l.status.visible() {
		return rarely
	}
	next := *t
	next.AttemptCount++
	seconds := (left + time.Second - 1).Truncate(time.Second)
	if l.left != cursorAtStart {
		l.status.startLine()
		l.left = cursorAtStart
	}
	line := fmt.Sprintf("%s: attempt %s in %s", l.name, AttemptCount(&next), text.Duration(seconds))
	l.status.draw(l.screen().Paint(Faint, line))
	if tick := left % time.Second; tick > 0 {
		return tick
	}
	return time.Second
}

func (l *lineObserver) Finished(t *task.Task, r runner.Result) {
	l.Clear()
	if l.silent(t) {
		return
	}
	if text := Summary(t, r); text != "" {
		l.print(t, toneOf(r.Decision.Verdict), "%s", text+Hints(t, r))
	}
}

func (l *lineObserver) Warn(err error) {
	if loss, lost := errors.AsType[runner.Loss](err); lost && l.quiet {
		l.print(nil, plain, "warning: %s", Message(err))
	} else if !lost || loss.New {
		l.Say("warning: " + Message(err))
	}
}

func (l *lineObserver) Say(text string) {
	if !l.quiet {
		l.Clear()
		l.print(nil, plain, "%s", text)
	}
}

// print writes a line, and the hints below it, which have no colour.
func (l *lineObserver) print(t *task.Task, tone tone, format string, args ...any) {
	screen := l.screen()
	prefix := l.name + ": "
	if l.named && t != nil {
		prefix += ShortID(t.ID) + ": "
	}
	if screen.Marks {
		prefix += tone.mark
	}
	line, hints, found := strings.Cut(prefix+fmt.Sprintf(format, args...), "\n")
	if found {
		hints = "\n" + hints
	}
	start := ""
	if l.left == cursorInLine && screen.Width == 0 {
		start = "\n"
	} else if l.left != cursorAtStart {
		l.status.startLine()
	}
	l.left = cursorAtStart
	_, _ = io.WriteString(l.w, start+screen.Paint(tone.style, line)+hints+"\n")
}

// cursor is where a line of ours would begin.
type cursor int

const (
	cursorAtStart cursor = iota
	cursorUnknown        // a command has run, and may have written a line without an end
	cursorInLine         // it did
)

// tone is how a line looks on a terminal: its colour, and a mark where the terminal has such signs.
type tone struct {
	style lipgloss.Style
	mark  string
}

var (
	plain   = tone{}
	waits   = tone{Faint, "↻ "}
	stops   = tone{lipgloss.Style{}, "✗ "}
	rescued = tone{Green, "✓ "}
	gaveUp  = tone{Red, "✗ "}
	leftOff = tone{Yellow, ""}
)

func toneOf(v task.Verdict) tone {
	switch v {
	case task.VerdictSucceeded:
		return rescued
	case task.VerdictExhausted, task.VerdictFailed:
		return gaveUp
	}
	return leftOff
}
