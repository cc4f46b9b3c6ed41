package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/task"
)

// policyFlags are the flags that make a policy. Each has its variable, RETRY_ and its name in capitals, and most are keys of the config
// file. An example is for its schema.
type policyFlags struct {
	Policy      *string      `short:"p"`
	Attempts    *flags.Count `short:"n"`
	Retries     *flags.Count
	Backoff     *string         `short:"b"`
	Jitter      *string         `short:"j"`
	Timeout     *flags.Duration `short:"t"`
	KillAfter   *flags.Duration
	Budget      *flags.Duration `short:"B"`
	Deadline    *flags.Moment
	ResetAfter  *flags.Duration
	Consecutive *flags.Count
	RetryOn     []string `sep:"none"`
	StopOn      []string `sep:"none"`
	SuccessOn   []string `sep:"none"`
}

// resolve layers the environment and the flags over a named policy; outer is the deadline of a retry that runs this one.
func (f *policyFlags) resolve(base task.Policy, env *policyFlags, outer string, now time.Time) (task.Policy, error) {
	policy := base
	if err := f.over(env).overlay(&policy, now); err != nil {
		if alone := base; f.overlay(&alone, now) == nil {
			return policy, inEnvironment(env, err)
		}
		return policy, err
	}
	return policy, obeyOuterDeadline(&policy, outer, now)
}

// policyFromEnv reads the RETRY_… variables as if they were flags.
func policyFromEnv(getenv func(string) string) (*policyFlags, error) {
	flags := &policyFlags{}
	for _, k := range policyKeys() {
		text := getenv(variable(k.name))
		if text == "" || k.name == "deadline" { // RETRY_DEADLINE comes from an outer retry
			continue
		}
		if err := k.set(flags, text); err != nil {
			return nil, withHint(fmt.Errorf("in the environment (%s): %w", variable(k.name), err), "correct the variable, or unset it")
		}
	}
	if flags.Attempts != nil && flags.Retries != nil {
		return nil, inEnvironment(flags, errAttemptsTwice)
	}
	return flags, nil
}

// inEnvironment names the variables that an error can come from.
func inEnvironment(env *policyFlags, err error) error {
	var names []string
	for _, k := range policyKeys() {
		if k.given(env) {
			names = append(names, variable(k.name))
		}
	}
	return fmt.Errorf("in the environment (%s): %w", strings.Join(names, ", "), withHint(err, "correct the variable, or unset it"))
}

// overlay replaces what the flags set.
func (f *policyFlags) overlay(p *task.Policy, now time.Time) (err error) {
	if p.Backoff, err = p.Backoff.With(value(f.Backoff), value(f.Jitter)); err != nil {
		return err
	}
	set(&p.Timeout, f.Timeout)
	set(&p.KillAfter, f.KillAfter)
	set(&p.Budget, f.Budget)
	set(&p.ResetAfter, f.ResetAfter)
	set(&p.Consecutive, f.Consecutive)
	p.Consecutive = max(p.Consecutive, 1)
	if err := f.overlayAttempts(p); err != nil {
		return err
	}
	if p.Attempts > 0 && p.Consecutive > p.Attempts {
		return fmt.Errorf("%d successes in a row need more than %d attempts\nhint: raise attempts, or lower consecutive", p.Consecutive, p.Attempts)
	}
	if f.Deadline != nil {
		left := until(time.Time(*f.Deadline), now)
		if left <= 0 {
			return fmt.Errorf("--deadline: %s has passed\nhint: write a time to come; 15:04 is the next time the clock shows that", time.Time(*f.Deadline).Format(time.RFC3339))
		}
		limitBudget(p, left)
	}
	return f.overlayConditions(p)
}

var errAttemptsTwice = errors.New("--attempts and --retries say the same thing\nhint: give one of them; --retries N is --attempts N+1")

func (f *policyFlags) overlayAttempts(p *task.Policy) error {
	if f.Attempts != nil && f.Retries != nil {
		return errAttemptsTwice
	}
	set(&p.Attempts, f.Attempts)
	if f.Retries != nil {
		p.Attempts = int(*f.Retries) + 1
	}
	return nil
}

func (f *policyFlags) overlayConditions(p *task.Policy) error {
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
		return fmt.Errorf("%s=%q is no RFC 3339 time\nhint: unset it, or write it like 2026-01-02T23:30:00Z", cmdexec.EnvDeadline, text)
	}
	if !deadline.After(now) {
		return fmt.Errorf("%w: %s=%s", errDeadlinePassed, cmdexec.EnvDeadline, text)
	}
	limitBudget(p, until(deadline, now))
	return nil
}

// until returns the time to a deadline as a budget, rounded up to milliseconds. The journal keeps no more of it, and a resumed
// attempt has to find the deadline of the first.
func until(deadline, now time.Time) time.Duration {
	left := deadline.Sub(now)
	if rest := left % time.Millisecond; rest > 0 {
		left += time.Millisecond - rest
	}
	return left
}

// errDeadlinePassed ends retry as the end of its budget would, before anything ran.
var errDeadlinePassed = errors.New("the deadline has passed")

// limitBudget makes the budget no longer than left.
func limitBudget(p *task.Policy, left time.Duration) {
	if p.Budget == 0 || left < p.Budget {
		p.Budget = left
	}
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// set replaces a field where the flag was given.
func set[To, From ~int | ~int64](to *To, from *From) {
	if from != nil {
		*to = To(*from)
	}
}
