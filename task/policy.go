package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
)

// Policy says how often, how long and after which outcomes a task is tried again. A zero limit is no limit.
type Policy struct {
	Name        string
	Attempts    int // all of them, the first included
	Backoff     backoff.Spec
	Timeout     time.Duration // of one attempt
	KillAfter   time.Duration // between TERM and KILL
	Budget      time.Duration // of the whole task, from its creation, waits and restarts included
	Deadline    bool          // the budget is the time to a deadline, for which only the wall clock counts
	ResetAfter  time.Duration // an attempt that ran this long starts the backoff anew
	Consecutive int           // successes in a row that make the task succeed
	RetryOn     []Condition
	StopOn      []Condition
	SuccessOn   []Condition
	Rules       []Rule // the first that matches gives the delay
	Ambiguous   Ambiguous
}

// Ambiguous says what a worker does after an attempt that may have taken effect. It is for requests that come through
// the API, which repeat unless their policy or they themselves say stop.
type Ambiguous string

// The answers to an ambiguous outcome.
const (
	AmbiguousDefault Ambiguous = "" // repeat
	AmbiguousRepeat  Ambiguous = "repeat"
	AmbiguousStop    Ambiguous = "stop"
)

// Left returns what is left of the budget of a task that began at a time.
func (p *Policy) Left(began, now time.Time) time.Duration {
	if p.Deadline {
		return p.Budget - now.Round(0).Sub(began.Round(0))
	}
	return p.Budget - elapsed(began, now)
}

// LeastRoom is the least that the budget leaves to a last attempt: in less, a quick one would be stopped now and then,
// and end with another exit status.
func (p *Policy) LeastRoom() time.Duration { return min(p.Budget/10, time.Second) }

// elapsed returns the time from start to now by the clock that has gone further: the monotonic one stops while the
// machine sleeps, and the wall clock may be set back.
func elapsed(start, now time.Time) time.Duration {
	return max(now.Sub(start), now.Round(0).Sub(start.Round(0)))
}

// DefaultPolicyName names the policy of a task that asks for none.
const DefaultPolicyName = "default"

// DefaultPolicy returns the policy of a task that asks for none: five attempts, 1 s doubling to a minute, phase jitter.
func DefaultPolicy() Policy {
	return shaped(DefaultPolicyName, 5, "exp:1s..1m", "")
}

// shaped returns a built-in policy.
func shaped(name string, attempts int, curve, jitter string) Policy {
	spec, err := backoff.Parse(curve, jitter)
	if err != nil {
		panic("built-in policy " + name + ": " + err.Error()) // a test parses every one of them
	}
	return Policy{Name: name, Attempts: attempts, Backoff: spec, KillAfter: 5 * time.Second, Consecutive: 1}
}

// BuiltinPolicy returns the policy of that name: default, or a preset of package backoff.
func BuiltinPolicy(name string) (Policy, error) {
	if name == DefaultPolicyName {
		return DefaultPolicy(), nil
	}
	names := []string{DefaultPolicyName}
	for _, p := range backoff.Presets() {
		if p.Name == name {
			return shaped(p.Name, p.Attempts, p.Curve, p.Jitter), nil
		}
		names = append(names, p.Name)
	}
	return Policy{}, fmt.Errorf("unknown policy %q\nhint: the policies are %s", name, strings.Join(names, ", "))
}

// Class says what kind of end an outcome is under a policy.
type Class int

// The classes of outcome.
const (
	ClassSuccess   Class = iota
	ClassRetryable       // another attempt may help
	ClassFatal           // another attempt would not help
)

// Classified is the class of an outcome under a policy.
type Classified struct {
	Class Class
	Named bool   // a condition matched; else it is the default for that kind of task
	Why   string // of a fatal one: what said so, as the rest of a sentence about the outcome
}

// Classify asks success-on, stop-on, retry-on and the default for that kind of task, in this order. A success-on or a
// retry-on replaces that part of the default. A condition that cannot be evaluated does not match; the first such error
// is returned beside the class.
func (p *Policy) Classify(e Evidence) (c Classified, trouble error) {
	for _, list := range []struct {
		conditions []Condition
		class      Class
	}{{p.SuccessOn, ClassSuccess}, {p.StopOn, ClassFatal}, {p.RetryOn, ClassRetryable}} {
		match, err := firstMatch(list.conditions, e, list.class)
		trouble = cmp.Or(trouble, err)
		if match != nil {
			c = Classified{Class: list.class, Named: true}
			switch {
			case c.Class == ClassFatal && p.stopsAtSuccess(match, e):
				c.Class = ClassSuccess
			case c.Class == ClassFatal:
				c.Why = match.named("is in", "matches", "--stop-on")
			}
			return c, trouble
		}
	}
	c.Class = p.classifyByDefault(e)
	if c.Class == ClassFatal {
		c.Why = p.whyFinal(e)
	}
	return c, trouble
}

// whyFinal says why an outcome that no condition names is not retried.
func (p *Policy) whyFinal(e Evidence) string {
	last := len(p.RetryOn) - 1
	switch {
	case last > 0:
		return fmt.Sprintf("matches none of the %d --retry-on", last+1)
	case last == 0:
		return p.RetryOn[0].named("is not in", "does not match", "--retry-on")
	case e.Error == ErrorNone && e.reply().StatusName != "":
		return fmt.Sprintf("is final unless --retry-on %s names it", e.Reply.StatusName)
	case e.Reply == nil, e.Error == ErrorNone:
		return fmt.Sprintf("is final unless --retry-on %d names it", e.number())
	case isFault(string(e.Error)):
		return fmt.Sprintf("is final unless --retry-on %s names it", e.Error)
	}
	return "is final"
}

// stopsAtSuccess reports whether a condition of stop-on stays a success: it names an exit of 0, and says no more than
// that no other attempt is wanted. One that looks at the output or at a reply has found a failure that exits with 0.
func (p *Policy) stopsAtSuccess(c *Condition, e Evidence) bool {
	looks := c.expression != nil && (e.Reply != nil || c.Captures() != CaptureNone)
	return e.ExitCode() == 0 && len(p.SuccessOn) == 0 && !looks
}

func (p *Policy) classifyByDefault(e Evidence) Class {
	switch {
	case e.Reply != nil && len(p.RetryOn) == 0 && e.ExitCode() != 0:
		return e.Reply.Default.Class
	case e.ExitCode() == 0 && len(p.SuccessOn) == 0:
		return ClassSuccess
	case len(p.RetryOn) > 0 || !e.Started():
		return ClassFatal
	case e.Reply == nil && (e.ExitCode() == ExitNotExecutable || e.ExitCode() == ExitNotFound): // a typo in a script
		return ClassFatal
	case e.reply().Default.Ambiguous: // a POST with a successful reply took effect, whatever success-on says
		return ClassFatal
	}
	return ClassRetryable
}

// firstMatch returns the first condition that matches; nil where none does. After a failure, an expression makes a
// success, or has an ambiguous request sent again, only where it looks at how the attempt ended. The output of a
// command that was killed does not say that it succeeded, and a status of 0 only says that no reply came.
func firstMatch(conditions []Condition, e Evidence, class Class) (match *Condition, trouble error) {
	failed := e.Error != ErrorNone || e.reply().Cut || e.Reply == nil && (e.Signal != "" || e.Stop != nil)
	unsure := class == ClassRetryable && e.reply().Default.Ambiguous
	for i, c := range conditions {
		x := c.expression
		switch {
		case x != nil && failed && (class == ClassSuccess || unsure) && !looksAtEnd(x):
			continue
		case x == nil && class == ClassSuccess && e.reply().Cut: // a list names the status of a whole reply
			continue
		}
		matches, err := c.Match(e)
		if matches {
			return &conditions[i], trouble
		}
		trouble = cmp.Or(trouble, err)
	}
	return nil, trouble
}

// looksAtEnd reports whether an expression names how an attempt ended.
func looksAtEnd(x Expression) bool {
	return slices.ContainsFunc([]string{"error", "exit", "signal"}, x.Uses)
}

// Captures returns the streams that the policy's conditions need captured.
func (p *Policy) Captures() CaptureMode {
	looks := CaptureNone
	for _, c := range slices.Concat(p.SuccessOn, p.StopOn, p.RetryOn) {
		looks = looks.And(c.Captures())
	}
	for _, r := range p.Rules {
		looks = looks.And(r.When.Captures())
	}
	return looks
}

// Rule gives some outcomes their own delay. It does not decide whether there is another attempt.
type Rule struct {
	When    Condition
	Backoff backoff.Spec
}

// ParseRule reads a rule; an empty jitter is the curve's own.
func ParseRule(when, curve, jitter string) (Rule, error) {
	condition, err := ParseCondition(when)
	if err != nil {
		return Rule{}, fmt.Errorf("when: %w", err)
	}
	spec, err := backoff.Parse(curve, jitter)
	return Rule{When: condition, Backoff: spec}, err
}

// rule returns the number of the first rule that matches, from 1; 0 where none does.
func (p *Policy) rule(e Evidence) (number int, trouble error) {
	for i, r := range p.Rules {
		matches, err := r.When.Match(e)
		if matches {
			return i + 1, trouble
		}
		trouble = cmp.Or(trouble, err)
	}
	return 0, trouble
}

// curve returns the backoff of the rule with that number; of the policy for 0.
func (p *Policy) curve(rule int) backoff.Spec {
	if rule == 0 {
		return p.Backoff
	}
	return p.Rules[rule-1].Backoff
}

// policyJSON is a policy in the journal and in the JSON for users; docs/json.md describes it.
type policyJSON struct {
	Name        string     `json:"name"`
	Attempts    int        `json:"attempts"`
	Backoff     string     `json:"backoff"`
	Jitter      string     `json:"jitter"`
	Timeout     *int64     `json:"timeout_ms"`
	KillAfter   *int64     `json:"kill_after_ms"`
	Budget      *int64     `json:"budget_ms"`
	Deadline    bool       `json:"deadline,omitempty"`
	ResetAfter  *int64     `json:"reset_after_ms"`
	Consecutive int        `json:"consecutive"`
	RetryOn     []string   `json:"retry_on"`
	StopOn      []string   `json:"stop_on"`
	SuccessOn   []string   `json:"success_on"`
	Rules       []ruleJSON `json:"rules"`
	Ambiguous   Ambiguous  `json:"ambiguous,omitempty"`
}

type ruleJSON struct {
	When    string `json:"when"`
	Backoff string `json:"backoff"`
	Jitter  string `json:"jitter"`
}

// MarshalJSON writes every field of policyJSON; a limit that is not set is null, an empty list is not.
func (p Policy) MarshalJSON() ([]byte, error) {
	rules := make([]ruleJSON, len(p.Rules))
	for i, r := range p.Rules {
		rules[i] = ruleJSON{When: r.When.String(), Backoff: r.Backoff.Curve(), Jitter: r.Backoff.Jitter()}
	}
	return json.Marshal(policyJSON{
		Name: p.Name, Attempts: p.Attempts, Backoff: p.Backoff.Curve(), Jitter: p.Backoff.Jitter(),
		Timeout: milliseconds(p.Timeout), KillAfter: milliseconds(p.KillAfter),
		Budget: milliseconds(p.Budget), Deadline: p.Deadline, ResetAfter: milliseconds(p.ResetAfter),
		Consecutive: p.Consecutive,
		RetryOn:     conditionTexts(p.RetryOn), StopOn: conditionTexts(p.StopOn), SuccessOn: conditionTexts(p.SuccessOn),
		Rules: rules, Ambiguous: p.Ambiguous,
	})
}

// milliseconds returns nil for no limit. It never rounds a limit down to none.
func milliseconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(max(1, d.Milliseconds()))
}

func conditionTexts(conditions []Condition) []string {
	texts := make([]string, len(conditions))
	for i, c := range conditions {
		texts[i] = c.String()
	}
	return texts
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Policy) UnmarshalJSON(data []byte) error {
	var j policyJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	spec, err := backoff.Parse(j.Backoff, j.Jitter)
	if err != nil {
		return fmt.Errorf("policy %q: %w", j.Name, err)
	}
	*p = Policy{
		Name: j.Name, Attempts: j.Attempts, Backoff: spec,
		Timeout: duration(j.Timeout), KillAfter: duration(j.KillAfter),
		Budget: duration(j.Budget), Deadline: j.Deadline, ResetAfter: duration(j.ResetAfter),
		Consecutive: j.Consecutive, Ambiguous: j.Ambiguous,
	}
	lists := []struct {
		from []string
		to   *[]Condition
	}{{j.RetryOn, &p.RetryOn}, {j.StopOn, &p.StopOn}, {j.SuccessOn, &p.SuccessOn}}
	for _, l := range lists {
		if *l.to, err = ParseConditions(l.from); err != nil {
			return fmt.Errorf("policy %q: %w", j.Name, err)
		}
	}
	for i, r := range j.Rules {
		rule, err := ParseRule(r.When, r.Backoff, r.Jitter)
		if err != nil {
			return fmt.Errorf("policy %q: rule %d: %w", j.Name, i+1, err)
		}
		p.Rules = append(p.Rules, rule)
	}
	return nil
}

// ParseConditions reads several conditions, any of which may match.
func ParseConditions(texts []string) ([]Condition, error) {
	var conditions []Condition
	for _, text := range texts {
		c, err := ParseCondition(text)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, c)
	}
	return conditions, nil
}

func duration(ms *int64) time.Duration {
	if ms == nil {
		return 0
	}
	return time.Duration(*ms) * time.Millisecond
}
