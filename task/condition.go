package task

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/10f93571/retry/internal/text"
)

// Condition is a set of outcomes, written as a list or as an expression. A list has exit codes (75), ranges of them
// (100-120), signals (SIGSEGV), and the words signal, timeout and any. For HTTP the numbers are statuses (429, 520-524,
// 5xx), and there are the words dns, connect, tls, reset, truncated, and faults for those that are retried by default.
// For gRPC they are statuses, too, by number (14) or by name (UNAVAILABLE).
type Condition struct {
	text       string
	matches    []func(Evidence) bool // of a list
	expression Expression            // nil for a list
}

// Expression is a compiled expression over an outcome.
type Expression interface {
	Match(e Evidence) (bool, error)
	Captures() CaptureMode // the streams it looks at
	Uses(name string) bool
}

// compileExpression is set by UseExpressions, so that this package does not import a library for expressions.
var compileExpression = func(string) (Expression, error) {
	return nil, errors.New("expressions are not part of this program\nhint: write a list such as 1,75,100-120,SIGSEGV")
}

// UseExpressions sets the compiler of expressions. The init function of the package that has a compiler calls it.
func UseExpressions(compile func(text string) (Expression, error)) { compileExpression = compile }

// ParseCondition reads a list of outcomes or an expression.
func ParseCondition(text string) (c Condition, err error) {
	c.text = strings.TrimSpace(text)
	if isExpression(c.text) {
		c.expression, err = compileExpression(c.text)
		if err != nil {
			return Condition{}, fmt.Errorf("condition %s: %w", quoted(c.text), err)
		}
		return c, nil
	}
	for item := range strings.SplitSeq(c.text, ",") {
		match, err := parseItem(strings.TrimSpace(item))
		if err != nil {
			return Condition{}, fmt.Errorf("condition %q: %w", text, err)
		}
		c.matches = append(c.matches, match)
	}
	return c, nil
}

// isExpression tells an expression from a list, whose items are of letters, digits and dashes. The names of gRPC's statuses
// have underscores, too.
func isExpression(text string) bool {
	for item := range strings.SplitSeq(text, ",") {
		isName := item == strings.ToUpper(item)
		if strings.ContainsFunc(strings.TrimSpace(item), func(r rune) bool {
			return r != '-' && (r != '_' || !isName) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			return true
		}
	}
	return false
}

// Match reports whether the outcome is in the set. An expression that cannot be evaluated does not match, and says why.
func (c Condition) Match(e Evidence) (bool, error) {
	if c.expression != nil {
		matches, err := c.expression.Match(e)
		if err != nil {
			return false, fmt.Errorf("condition %s %w", quoted(c.text), err)
		}
		return matches, nil
	}
	return slices.ContainsFunc(c.matches, func(match func(Evidence) bool) bool { return match(e) }), nil
}

// quoted shortens a long text for an error.
func quoted(text string) string {
	const most = 100
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}

// Captures returns the streams that the condition needs captured.
func (c Condition) Captures() CaptureMode {
	if c.expression == nil {
		return CaptureNone
	}
	return c.expression.Captures()
}

// String returns the condition as it was written.
func (c Condition) String() string { return c.text }

// named names the condition by its flag, after the verb for a list or for an expression.
func (c Condition) named(list, expression, flag string) string {
	if c.expression == nil {
		return list + " " + flag + " " + c.text
	}
	return expression + " " + flag + " '" + c.text + "'"
}

const conditionHint = "\nhint: a condition is a list such as 1,75,100-120,SIGSEGV,signal,timeout,any" +
	", for HTTP 429,5xx,dns,connect,tls,reset,truncated,timeout,any, for gRPC UNAVAILABLE,14,connect,timeout" +
	", or an expression such as exit == 75"

// wordHint suggests the right spelling of a word in other letters, or of a signal without its SIG.
func wordHint(item string) string {
	lower, upper := strings.ToLower(item), strings.ToUpper(item)
	switch {
	case slices.Contains([]string{"success", "true", "ok"}, lower):
		return "\nhint: an exit status of 0 is written 0"
	case slices.Contains([]string{"fail", "failed", "failure", "false", "error"}, lower):
		return "\nhint: write any for every failure"
	case slices.Contains([]string{"any", "timeout", "signal", Faults}, lower), isFault(lower), isStatusClass(lower):
		return "\nhint: write " + lower
	case isStatusName(upper):
		return "\nhint: write " + upper
	case IsSignal(upper):
		return "\nhint: write " + upper
	case IsSignal("SIG" + upper):
		return "\nhint: write SIG" + upper
	}
	if near := text.Nearest(upper, StatusNames()); near != "" {
		return "\nhint: did you mean " + near + "?"
	}
	return conditionHint
}

func parseItem(item string) (func(Evidence) bool, error) {
	switch {
	case item == "any":
		// Any end of a command that ran. One that cannot start is named by its number.
		return func(o Evidence) bool { return o.Started() && !o.IsCrash() && o.ExitCode() != 0 }, nil
	case item == "timeout":
		return func(o Evidence) bool { return o.Error == ErrorTimeout }, nil
	case item == "signal":
		return func(o Evidence) bool { return o.Error == ErrorNone && o.Signal != "" }, nil
	case IsSignal(item):
		return func(o Evidence) bool { return o.Error == ErrorNone && o.Signal == item }, nil
	case strings.HasPrefix(item, "SIG"):
		return nil, fmt.Errorf("unknown signal %q\nhint: signals are written like SIGSEGV, SIGTERM, SIGKILL;"+
			" the word signal means any of them", item)
	case isFault(item):
		return func(o Evidence) bool { return o.Error == ErrorClass(item) }, nil
	case item == Faults:
		return func(o Evidence) bool { return o.Error != ErrorNone && o.reply().Default.Class == ClassRetryable }, nil
	case isStatusName(item):
		return func(o Evidence) bool { return o.reply().StatusName == item }, nil
	case isStatusClass(item):
		return parseExit(item[:1] + "00-" + item[:1] + "99")
	case item != "" && strings.Trim(item, "0123456789-") == "":
		return parseExit(item)
	case item == "":
		return nil, fmt.Errorf("an item is empty%s", conditionHint)
	}
	return nil, fmt.Errorf("invalid item %q: want an exit code, a range, a signal or a known word%s", item, wordHint(item))
}

// IsSignal reports whether name is a signal that can end a process. A signal without a name is SIG and a number.
func IsSignal(name string) bool {
	number, _ := strings.CutPrefix(name, "SIG")
	_, err := strconv.ParseUint(number, 10, 7)
	return slices.Contains(signalNames, name) || err == nil && number != name
}

// parseExit reads 75 or 100-120: exit codes, or statuses of HTTP. A timed-out attempt of a command counts as
// ExitTimeout, which is how retry itself would end.
func parseExit(item string) (func(Evidence) bool, error) {
	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}
	low, err := strconv.ParseUint(first, 10, 31)
	high, err2 := strconv.ParseUint(last, 10, 31)
	if err != nil || err2 != nil || low > high {
		return nil, fmt.Errorf("invalid range %q: want an exit code or a range of them"+
			"\nhint: write 75, or 100-120 with the smaller one first", item)
	}
	return func(o Evidence) bool { return !o.IsCrash() && int(low) <= o.number() && o.number() <= int(high) }, nil
}

// SignalNames returns the names that IsSignal knows, without SIG and a number.
func SignalNames() []string { return slices.Clone(signalNames) }

// signalNames are the signals that POSIX and Linux name, less those that cannot end a process.
var signalNames = []string{
	"SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
	"SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGIO",
	"SIGPWR", "SIGSYS", "SIGEMT",
}

// Faults is the word of a list for the ends of a request without a status that are retried by default. Beside statuses in
// a retry-on it keeps what a list of statuses alone would give up.
const Faults = "faults"

// isFault reports whether item is a class of error that a list can name, beside timeout.
func isFault(item string) bool {
	return slices.Contains([]ErrorClass{ErrorDNS, ErrorConnect, ErrorTLS, ErrorReset, ErrorTruncated}, ErrorClass(item))
}

// isStatusName recognises the name of a status of gRPC. That of success is a number: 0.
func isStatusName(item string) bool { return item != "OK" && slices.Contains(StatusNames(), item) }

// isStatusClass recognises 4xx.
func isStatusClass(item string) bool {
	return len(item) == 3 && item[1:] == "xx" && '1' <= item[0] && item[0] <= '9'
}

// number is what the numbers of a list are compared with. A reply that failed in spite of its status has none.
func (o Outcome) number() int {
	switch {
	case o.Reply == nil:
		return o.ExitCode()
	case o.Reply.StatusName != "": // a client of gRPC makes up a status for some of its own failures
		return o.Reply.Status
	case o.Error != ErrorNone:
		return NoExit
	}
	return o.Reply.Status
}
