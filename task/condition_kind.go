package task

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// CheckCondition returns an error for a condition that no outcome of this kind of task can match: a command has no
// status, and a request or a call neither an exit status in lists nor a signal. In a policy that commands and requests share,
// such a condition is no mistake.
func CheckCondition(kind Kind, text string) error {
	c, err := ParseCondition(text)
	if err != nil {
		return err
	}
	if c.expression == nil {
		check := checkRequestItem
		switch kind {
		case KindCommand:
			check = checkCommandItem
		case KindGRPC:
			check = checkCallItem
		}
		for item := range strings.SplitSeq(c.text, ",") {
			if err := check(strings.TrimSpace(item)); err != nil {
				return fmt.Errorf("condition %q: %w", text, err)
			}
		}
		return nil
	}
	absent, owner := []string{"status", "header", "body"}, "a command"
	hint := "a command has exit, signal, stdout and stderr"
	if kind != KindCommand {
		absent, owner = []string{"signal", "stdout", "stderr"}, "a request"
		hint = "a request has status, header, body and error"
	}
	for _, name := range absent {
		if c.expression.Uses(name) {
			return fmt.Errorf("condition %s: %s has no %s\nhint: %s", quoted(c.text), owner, name, hint)
		}
	}
	return nil
}

// largestExit is the largest exit status of a process.
func largestExit() int {
	if runtime.GOOS == "windows" {
		return 1<<31 - 1
	}
	return 255
}

func checkCommandItem(item string) error {
	const hint = "\nhint: a command ends with 1,75,100-120,SIGSEGV,signal,timeout or any; "
	first, _, _ := strings.Cut(item, "-")
	switch number, err := strconv.Atoi(first); {
	case isStatusName(item):
		return fmt.Errorf("%s is a status of gRPC"+hint+"retry grpc makes a call", item)
	case isFault(item), item == Faults:
		return fmt.Errorf("%s is an end of requests, not of commands"+hint+"retry http sends a request", item)
	case isStatusClass(item):
		return fmt.Errorf("%s is for the statuses of requests"+hint+"retry http sends a request", item)
	case err == nil && number > largestExit():
		return fmt.Errorf("no command exits with %s"+hint+"its exit status is 0 to %d", item, largestExit())
	}
	return nil
}

func checkRequestItem(item string) error {
	const least, most = 100, 999
	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}
	low, _ := strconv.Atoi(first)
	high, err := strconv.Atoi(last)
	switch {
	case isStatusName(item):
		return fmt.Errorf("%s is a status of gRPC\nhint: a request ends with 429,5xx,dns,connect,tls,reset,truncated,timeout"+
			" or any; retry grpc makes a call", item)
	case err == nil && (high < least || low > most):
		return fmt.Errorf("invalid HTTP status %s\nhint: an exit status is written as exit == 22", item)
	case item == "signal", IsSignal(item):
		return fmt.Errorf("no signal ends a request\nhint: write 429,5xx,dns,connect,tls,reset,truncated,timeout or any")
	}
	return nil
}

func checkCallItem(item string) error {
	const hint = "\nhint: a call ends with UNAVAILABLE,ABORTED,14,dns,connect,tls,reset,timeout,faults or any"
	_, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = item
	}
	high, err := strconv.Atoi(last)
	switch {
	case err == nil && high >= len(StatusNames()), isStatusClass(item):
		return fmt.Errorf("%s is no status of gRPC, which are 0 to 16"+hint, item)
	case item == "signal", IsSignal(item):
		return fmt.Errorf("no signal ends a call" + hint)
	case item == string(ErrorTruncated):
		return fmt.Errorf("a reply of gRPC that is cut is none: write reset" + hint)
	}
	return nil
}
