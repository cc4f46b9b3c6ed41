package policies

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
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
			return nil, text.WithHint(fmt.Errorf("in the environment (%s): %w", Variable(k.Name), err),
				"correct the variable, or unset it")
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
	return fmt.Errorf("in the environment (%s): %w", strings.Join(names, ", "),
		text.WithHint(err, "correct the variable, or unset it"))
}

// Overlay replaces what the flags set.
func Overlay(p *task.Policy, f *flags.PolicyFlags, now time.Time) (err error) {
	if p.Backoff, err = p.Backoff.With(flags.OrEmpty(f.Backoff), flags.OrEmpty(f.Jitter)); err != nil {
		return err
	}
	set(&p.Timeout, f.Timeout)
	set(&p.KillAfter, f.KillAfter)
	if f.Budget != nil {
		p.Budget, p.Deadline = time.Duration(*f.Budget), false
	}
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
				"\nhint: write a time to come; 15:04 is the next time the clock shows that",
				time.Time(*f.Deadline).Format(time.RFC3339))
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

// Until returns the time to a deadline in whole milliseconds, which the journal keeps: a resume has the same deadline.
func Until(deadline, now time.Time) time.Duration {
	left := deadline.Sub(now)
	if rest := left % time.Millisecond; rest > 0 {
		left += time.Millisecond - rest
	}
	return left
}

// ErrDeadlinePassed ends retry as the end of its budget would, before anything ran.
var ErrDeadlinePassed = errors.New("the deadline has passed")

// limitBudget makes the budget no longer than the time that is left until a deadline.
func limitBudget(p *task.Policy, left time.Duration) {
	if p.Budget == 0 || left < p.Budget {
		p.Budget, p.Deadline = left, true
	}
}

// set replaces a field where the flag was given.
func set[To, From ~int | ~int64](to *To, from *From) {
	if from != nil {
		*to = To(*from)
	}
}

// Explain writes the policy as lines of a config file, with where each value is from.
func (c *Choice) Explain(policy *task.Policy) []render.Setting {
	settings := []render.Setting{{Text: "[" + dottedKey(policyTable, policy.Name) + "]", Origin: c.Base.source()}}
	for _, k := range fileKeys() {
		if text := k.toml(policy); text != "" {
			settings = append(settings, render.Setting{Key: k.Name, Text: text, Origin: c.origin(&k, policy)})
		}
	}
	for i, r := range policy.Rules {
		header := "[[" + dottedKey(policyTable, policy.Name, ruleKey) + "]]"
		settings = append(settings, render.Setting{Text: header, Origin: c.Base.ruleOrigin(i)},
			render.Setting{Key: "when", Text: quote(r.When.String())},
			render.Setting{Key: "backoff", Text: quote(r.Backoff.Curve())},
			render.Setting{Key: "jitter", Text: quote(r.Backoff.Jitter())})
	}
	return settings
}

// origin says which flag, variable or layer gave a key its value.
func (c *Choice) origin(k *Key, policy *task.Policy) string {
	origin := c.Base.origin(k.Name)
	layers := []struct {
		flags *flags.PolicyFlags
		name  func(string) string
	}{{c.Env, Variable}, {c.Flags, func(key string) string { return "--" + key }}}
	for _, l := range layers {
		switch {
		case k.Given(l.flags):
			origin = l.name(k.Name)
		case k.Name == "attempts" && l.flags.Retries != nil:
			origin = l.name("retries")
		case k.Name == "jitter" && l.flags.Backoff != nil && over(c.Flags, c.Env).Jitter == nil &&
			policy.Backoff.Jitter() != c.Base.Backoff.Jitter():
			origin = l.name("backoff")
		}
	}
	if k.Name == "budget" {
		return c.budgetOrigin(origin, policy)
	}
	return origin
}

// budgetOrigin knows that a deadline is a budget, too, where it is the shorter one.
func (c *Choice) budgetOrigin(origin string, policy *task.Policy) string {
	written := c.Base.Budget
	set(&written, over(c.Flags, c.Env).Budget)
	switch {
	case policy.Budget == written:
		return origin
	case c.Flags.Deadline != nil && c.outer == "":
		return "--deadline"
	case c.Flags.Deadline != nil:
		return "--deadline, " + cmdexec.EnvDeadline
	}
	return cmdexec.EnvDeadline
}

// ruleOrigin says where a rule stands.
func (n *Named) ruleOrigin(i int) string {
	if n.file == nil {
		return n.source()
	}
	return n.file.Place(policyTable, n.Name, ruleKey, strconv.Itoa(i))
}

// toml is how a policy's setting is written in the file; "" where it is as if it were left out.
func (k *Key) toml(p *task.Policy) string {
	switch k.Name {
	case "attempts":
		return strconv.Itoa(p.Attempts)
	case "consecutive":
		if p.Consecutive <= 1 {
			return ""
		}
		return strconv.Itoa(p.Consecutive)
	case "backoff":
		return quote(p.Backoff.Curve())
	case "jitter":
		return quote(p.Backoff.Jitter())
	case "kill-after":
		return quote(text.FormatDuration(p.KillAfter))
	}
	limits := map[string]time.Duration{"timeout": p.Timeout, "budget": p.Budget, "reset-after": p.ResetAfter}
	if limit := limits[k.Name]; limit > 0 {
		return quote(text.FormatDuration(limit))
	}
	lists := map[string][]task.Condition{"retry-on": p.RetryOn, "stop-on": p.StopOn, "success-on": p.SuccessOn}
	var quoted []string
	for _, c := range lists[k.Name] {
		quoted = append(quoted, quote(c.String()))
	}
	if quoted == nil {
		return ""
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Rows are all policies by name, the default first; each knows which it hides.
func Rows(stored []state.StoredPolicy, file *File) []render.PolicyRow {
	rows := map[string]*render.PolicyRow{}
	add := func(n Named) {
		row := render.PolicyRow{Policy: n.Policy, Layer: n.layer(), Damage: n.damage}
		if n.file != nil {
			row.File, row.Line = n.file.Path, n.file.Line(policyTable, n.Name)
		}
		if earlier := rows[n.Name]; earlier != nil {
			row.Hides = slices.Concat(earlier.Hides, []string{earlier.Layer})
		}
		rows[n.Name] = &row
	}
	for _, name := range BuiltinNames() {
		add(*Builtin(name))
	}
	for _, s := range stored {
		add(Named{Policy: s.Policy, stored: true, damage: s.Damage})
	}
	for _, name := range file.Names() {
		policy, mistakes := file.Policy(name)
		add(Named{Policy: policy, file: file, damage: joined(append(file.mistakesIn(name), mistakes...))})
	}
	var sorted []render.PolicyRow
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	sortKey := func(r render.PolicyRow) string {
		if r.Name == task.DefaultPolicyName {
			return "" // it comes first
		}
		return r.Name
	}
	slices.SortFunc(sorted, func(a, b render.PolicyRow) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return sorted
}
