package runner

import (
	"cmp"
	"fmt"

	"github.com/10f93571/retry/backoff"
)

// Rule gives one class of outcome its own delay. It says nothing of whether there is another attempt.
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

// curve returns what gives the delay under a rule of that number; 0 is none.
func (p *Policy) curve(rule int) backoff.Spec {
	if rule == 0 {
		return p.Backoff
	}
	return p.Rules[rule-1].Backoff
}
