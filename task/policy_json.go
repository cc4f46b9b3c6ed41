package task

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/10f93571/retry/backoff"
)

// policyJSON is a policy in the journal and in the JSON for users; docs/json.md describes it.
type policyJSON struct {
	Name        string     `json:"name"`
	Attempts    int        `json:"attempts"`
	Backoff     string     `json:"backoff"`
	Jitter      string     `json:"jitter"`
	Timeout     *int64     `json:"timeout_ms"`
	KillAfter   *int64     `json:"kill_after_ms"`
	Budget      *int64     `json:"budget_ms"`
	ResetAfter  *int64     `json:"reset_after_ms"`
	Consecutive int        `json:"consecutive"`
	RetryOn     []string   `json:"retry_on"`
	StopOn      []string   `json:"stop_on"`
	SuccessOn   []string   `json:"success_on"`
	Rules       []ruleJSON `json:"rules"`
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
		Timeout: milliseconds(p.Timeout), KillAfter: milliseconds(p.KillAfter), Budget: milliseconds(p.Budget), ResetAfter: milliseconds(p.ResetAfter),
		Consecutive: p.Consecutive, RetryOn: conditionTexts(p.RetryOn), StopOn: conditionTexts(p.StopOn), SuccessOn: conditionTexts(p.SuccessOn),
		Rules: rules,
	})
}

// milliseconds never rounds a limit down to none, which is nil.
func milliseconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := max(1, d.Milliseconds())
	return &ms
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
		Timeout: duration(j.Timeout), KillAfter: duration(j.KillAfter), Budget: duration(j.Budget), ResetAfter: duration(j.ResetAfter),
		Consecutive: j.Consecutive,
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
