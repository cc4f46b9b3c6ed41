package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/runner"
)

// policyFlags are the flags that make a policy. Each has its variable, RETRY_ and its name in capitals.
type policyFlags struct {
	Policy      *string   `short:"p" group:"Policy" placeholder:"NAME" help:"Start from a named policy: default, sidekiq, zizq, aws, grpc, lock-busy."`
	Attempts    *count    `short:"n" group:"Policy" placeholder:"N" help:"All attempts, the first included; 0 = no limit. Default 5."`
	Retries     *count    `group:"Policy" placeholder:"N" help:"The same, without the first one."`
	Backoff     *string   `short:"b" group:"Policy" placeholder:"SPEC" help:"Delays: constant:5s, linear:2s, exp:1s..30s, exp:1s*1.5, fib:1s, poly:15s+n^4, list:1s,5s,1m, buckets:3, or a preset. Default exp:1s..1m."`
	Jitter      *string   `short:"j" group:"Policy" placeholder:"SPEC" help:"phase (default), none, full, equal, decorrelated, 30%, add:5s, add:1s..5s, add:30s*n."`
	Timeout     *duration `short:"t" group:"Policy" placeholder:"TIME" help:"Stop an attempt that takes longer: TERM to its process group, then KILL."`
	KillAfter   *duration `group:"Policy" placeholder:"TIME" help:"Between TERM and KILL. Default 5s."`
	Budget      *duration `short:"B" group:"Policy" placeholder:"TIME" help:"For everything together, waits included."`
	Deadline    *moment   `group:"Policy" placeholder:"WHEN" help:"A budget by the clock: 23:30, or RFC 3339."`
	ResetAfter  *duration `group:"Policy" placeholder:"TIME" help:"An attempt that ran this long starts the backoff anew."`
	Consecutive *count    `group:"Policy" placeholder:"N" help:"Succeed after so many successes in a row."`
	RetryOn     []string  `group:"Policy" sep:"none" placeholder:"LIST" help:"Retry these outcomes only: 1,75,100-120,SIGSEGV,signal,timeout,any."`
	StopOn      []string  `group:"Policy" sep:"none" placeholder:"LIST" help:"Never retry these."`
	SuccessOn   []string  `group:"Policy" sep:"none" placeholder:"LIST" help:"These, and only these, are a success."`
}

// policyVariables are the flags that the environment may give. RETRY_DEADLINE is not one of them: it comes from an outer retry.
var policyVariables = []string{"policy", "attempts", "retries", "backoff", "jitter", "timeout", "kill-after", "budget",
	"reset-after", "consecutive", "retry-on", "stop-on", "success-on"}

// resolve layers the named policy, the environment and the flags.
func (f *policyFlags) resolve(getenv func(string) string, now time.Time) (runner.Policy, error) {
	env, err := policyFromEnv(getenv)
	if err != nil {
		return runner.Policy{}, err
	}
	policy := runner.DefaultPolicy()
	for _, layer := range []*policyFlags{env, f} {
		if layer.Policy == nil {
			continue
		}
		if policy, err = runner.BuiltinPolicy(*layer.Policy); err != nil && layer == env {
			return policy, inEnvironment(getenv, err)
		} else if err != nil {
			return policy, err
		}
	}
	if err := env.overlay(&policy, now); err != nil {
		return policy, inEnvironment(getenv, err)
	}
	if err := f.overlay(&policy, now); err != nil {
		return policy, err
	}
	return policy, obeyOuterDeadline(&policy, getenv(cmdexec.EnvDeadline), now)
}

// policyFromEnv reads the RETRY_… variables as if they were flags.
func policyFromEnv(getenv func(string) string) (*policyFlags, error) {
	var args []string
	for _, flag := range policyVariables {
		if value := getenv(variable(flag)); value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	flags := &policyFlags{}
	if len(args) == 0 {
		return flags, nil
	}
	parser, err := kong.New(flags, kong.NoDefaultHelp())
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, inEnvironment(getenv, err)
	}
	return flags, nil
}

// variable is the name of a flag in the environment.
func variable(flag string) string {
	return "RETRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// inEnvironment names the variables that an error can come from.
func inEnvironment(getenv func(string) string, err error) error {
	var names []string
	for _, flag := range policyVariables {
		if getenv(variable(flag)) != "" {
			names = append(names, variable(flag))
		}
	}
	return fmt.Errorf("in the environment (%s): %w", strings.Join(names, ", "), withHint(err, "correct the variable, or unset it"))
}

// overlay replaces what the flags set.
func (f *policyFlags) overlay(p *runner.Policy, now time.Time) (err error) {
	if p.Backoff, err = p.Backoff.With(value(f.Backoff), value(f.Jitter)); err != nil {
		return err
	}
	if err := errors.Join(notEmpty("backoff", f.Backoff), notEmpty("jitter", f.Jitter)); err != nil {
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
		return fmt.Errorf("%d successes in a row need more than %d attempts\nhint: raise --attempts, or lower --consecutive", p.Consecutive, p.Attempts)
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

func (f *policyFlags) overlayAttempts(p *runner.Policy) error {
	if f.Attempts != nil && f.Retries != nil {
		return errors.New("--attempts and --retries say the same thing\nhint: give one of them; --retries N is --attempts N+1")
	}
	set(&p.Attempts, f.Attempts)
	if f.Retries != nil {
		p.Attempts = int(*f.Retries) + 1
	}
	return nil
}

func (f *policyFlags) overlayConditions(p *runner.Policy) error {
	lists := []struct {
		flag  string
		texts []string
		to    *[]runner.Condition
	}{{"retry-on", f.RetryOn, &p.RetryOn}, {"stop-on", f.StopOn, &p.StopOn}, {"success-on", f.SuccessOn, &p.SuccessOn}}
	for _, l := range lists {
		if l.texts == nil {
			continue
		}
		conditions, err := runner.ParseConditions(l.texts)
		if err != nil {
			return fmt.Errorf("--%s: %w", l.flag, err)
		}
		*l.to = conditions
	}
	return nil
}

// obeyOuterDeadline keeps the task inside the budget of a retry that runs this one.
func obeyOuterDeadline(p *runner.Policy, text string, now time.Time) error {
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
func limitBudget(p *runner.Policy, left time.Duration) {
	if p.Budget == 0 || left < p.Budget {
		p.Budget = left
	}
}

func notEmpty(flag string, text *string) error {
	if text != nil && *text == "" {
		return fmt.Errorf("--%s is empty\nhint: leave it out, or see retry --help for what it takes", flag)
	}
	return nil
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
