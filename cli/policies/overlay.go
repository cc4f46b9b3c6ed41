package policies

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// FromEnvironment reads the RETRY_… variables as if they were flags.
func FromEnvironment(getenv func(string) string) (*flags.PolicyFlags, error) {
	flags := &flags.PolicyFlags{}
	for _, k := range Keys() {
		set := getenv(Variable(k.Name))
		if set == "" || k.Name == "deadline" { // RETRY_DEADLINE comes from an outer retry
			continue
		}
		if err := k.set(flags, set); err != nil {
			return nil, text.WithHint(fmt.Errorf("in the environment (%s): %w", Variable(k.Name), err), "correct the variable, or unset it")
		}
	}
	if flags.Attempts != nil && flags.Retries != nil {
		return nil, inEnvironment(flags, errAttemptsTwice)
	}
	return flags, nil
}

// inEnvironment names the variables that an error can come from.
func inEnvironment(env *flags.PolicyFlags, err error) error {
	var names []string
	for _, k := range Keys() {
		if k.Given(env) {
			names = append(names, Variable(k.Name))
		}
	}
	return fmt.Errorf("in the environment (%s): %w", strings.Join(names, ", "), text.WithHint(err, "correct the variable, or unset it"))
}

// Overlay replaces what the flags set.
func Overlay(p *task.Policy, f *flags.PolicyFlags, now time.Time) (err error) {
	if p.Backoff, err = p.Backoff.With(flags.OrEmpty(f.Backoff), flags.OrEmpty(f.Jitter)); err != nil {
		return err
	}
	set(&p.Timeout, f.Timeout)
	set(&p.KillAfter, f.KillAfter)
	set(&p.Budget, f.Budget)
	set(&p.ResetAfter, f.ResetAfter)
	set(&p.Consecutive, f.Consecutive)
	p.Consecutive = max(p.Consecutive, 1)
	set(&p.Attempts, f.Attempts)
	if f.Retries != nil {
		p.Attempts = int(*f.Retries) + 1
	}
	if f.Attempts != nil && f.Retries != nil {
		return errAttemptsTwice
	}
	if p.Attempts > 0 && p.Consecutive > p.Attempts {
		return fmt.Errorf("%d successes in a row need more than %d attempts"+
			"\nhint: raise attempts, or lower consecutive", p.Consecutive, p.Attempts)
	}
	if f.Deadline != nil {
		left := Until(time.Time(*f.Deadline), now)
		if left <= 0 {
			return fmt.Errorf("--deadline: %s has passed"+
				"\nhint: write a time to come; 15:04 is the next time the clock shows that", time.Time(*f.Deadline).Format(time.RFC3339))
		}
		limitBudget(p, left)
	}
	return overlayConditions(p, f)
}

var errAttemptsTwice = errors.New("--attempts and --retries say the same thing" +
	"\nhint: give one of them; --retries N is --attempts N+1")

func overlayConditions(p *task.Policy, f *flags.PolicyFlags) error {
	lists := []struct {
		flag  string
		texts []string
		to    *[]task.Condition
	}{{"retry-on", f.RetryOn, &p.RetryOn}, {"stop-on", f.StopOn, &p.StopOn}, {"success-on", f.SuccessOn, &p.SuccessOn}}
	for _, l := range lists {
		if l.texts == nil {
			continue
		}
		conditions, err := task.ParseConditions(l.texts)
		if err != nil {
			return fmt.Errorf("--%s: %w", l.flag, err)
		}
		*l.to = conditions
	}
	return nil
}

// obeyOuterDeadline keeps the task inside the budget of a retry that runs this one.
func obeyOuterDeadline(p *task.Policy, text string, now time.Time) error {
	if text == "" {
		return nil
	}
	deadline, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%s: invalid time %q: want RFC 3339"+
			"\nhint: unset it, or write it like 2026-01-02T23:30:00Z", cmdexec.EnvDeadline, text)
	}
	if !deadline.After(now) {
		return fmt.Errorf("%w: %s=%s", ErrDeadlinePassed, cmdexec.EnvDeadline, text)
	}
	limitBudget(p, Until(deadline, now))
	return nil
}

// Until returns the time to a deadline as a budget, rounded up to milliseconds. The journal keeps no more of it, and a
// resumed attempt has to find the deadline of the first.
func Until(deadline, now time.Time) time.Duration {
	left := deadline.Sub(now)
	if rest := left % time.Millisecond; rest > 0 {
		left += time.Millisecond - rest
	}
	return left
}

// ErrDeadlinePassed ends retry as the end of its budget would, before anything ran.
var ErrDeadlinePassed = errors.New("the deadline has passed")

// limitBudget makes the budget no longer than left.
func limitBudget(p *task.Policy, left time.Duration) {
	if p.Budget == 0 || left < p.Budget {
		p.Budget = left
	}
}

// set replaces a field where the flag was given.
func set[To, From ~int | ~int64](to *To, from *From) {
	if from != nil {
		*to = To(*from)
	}
}
