package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Condition is a set of outcomes, written as a list: exit codes (75), ranges of them (100-120), signals (SIGSEGV), and the
// words signal, timeout and any.
type Condition struct {
	text    string
	matches []func(Outcome) bool
}

// ParseCondition reads a list of outcomes.
func ParseCondition(text string) (Condition, error) {
	c := Condition{text: text}
	for item := range strings.SplitSeq(text, ",") {
		match, err := parseItem(strings.TrimSpace(item))
		if err != nil {
			return Condition{}, fmt.Errorf("condition %q: %w", text, err)
		}
		c.matches = append(c.matches, match)
	}
	return c, nil
}

// Match reports whether the outcome is in the set.
func (c Condition) Match(o Outcome) bool {
	return slices.ContainsFunc(c.matches, func(match func(Outcome) bool) bool { return match(o) })
}

// String returns the condition as it was written.
func (c Condition) String() string {
	return c.text
}

const conditionHint = "\nhint: a condition is a list such as 1,75,100-120,SIGSEGV,signal,timeout,any"

func parseItem(item string) (func(Outcome) bool, error) {
	switch {
	case item == "any":
		// Any end of a command that ran. One that cannot start is named by its number.
		return func(o Outcome) bool { return o.Started() && !o.IsCrash() && o.ExitCode() != 0 }, nil
	case item == "timeout":
		return func(o Outcome) bool { return o.Error == ErrorTimeout }, nil
	case item == "signal":
		return func(o Outcome) bool { return o.Error == ErrorNone && o.Signal != "" }, nil
	case strings.HasPrefix(item, "SIG"):
		return parseSignal(item)
	case item != "" && strings.Trim(item, "0123456789-") == "":
		return parseExit(item)
	case item == "":
		return nil, fmt.Errorf("an item is empty%s", conditionHint)
	}
	return nil, fmt.Errorf("%q is no exit code, range, signal or known word%s", item, conditionHint)
}

func parseSignal(name string) (func(Outcome) bool, error) {
	if !slices.Contains(signalNames, name) {
		return nil, fmt.Errorf("unknown signal %q\nhint: signals are written like SIGSEGV, SIGTERM, SIGKILL; the word signal means any of them", name)
	}
	return func(o Outcome) bool { return o.Error == ErrorNone && o.Signal == name }, nil
}

// parseExit reads 75 or 100-120. A timed-out attempt counts as ExitTimeout, which is how retry itself would end.
func parseExit(item string) (func(Outcome) bool, error) {
	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}
	low, err := strconv.ParseUint(first, 10, 31)
	high, err2 := strconv.ParseUint(last, 10, 31)
	if err != nil || err2 != nil || low > high {
		return nil, fmt.Errorf("%q is no exit code or range of them\nhint: write 75, or 100-120 with the smaller one first", item)
	}
	return func(o Outcome) bool { return !o.IsCrash() && int(low) <= o.ExitCode() && o.ExitCode() <= int(high) }, nil
}

// signalNames are the signals that POSIX and Linux name, less those that cannot end a process.
var signalNames = []string{
	"SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
	"SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGIO",
	"SIGPWR", "SIGSYS", "SIGEMT",
}
