package task

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
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

// MarshalJSON writes every field of policyJSON; a limit that is not set is null. It is on the way of every start, where a reflecting
// encoder takes as long as a write to the journal.
func (p Policy) MarshalJSON() ([]byte, error) {
	var b jsonObject
	b.text("name", p.Name)
	b.number("attempts", int64(p.Attempts))
	b.text("backoff", p.Backoff.Curve())
	b.text("jitter", p.Backoff.Jitter())
	b.limit("timeout_ms", p.Timeout)
	b.limit("kill_after_ms", p.KillAfter)
	b.limit("budget_ms", p.Budget)
	b.limit("reset_after_ms", p.ResetAfter)
	b.number("consecutive", int64(p.Consecutive))
	b.list("retry_on", p.RetryOn)
	b.list("stop_on", p.StopOn)
	b.list("success_on", p.SuccessOn)
	b.rules("rules", p.Rules)
	return append(b, '}'), nil
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

// jsonObject is a JSON object that is being written, without its closing brace.
type jsonObject []byte

func (b *jsonObject) key(name string) {
	open := byte(',')
	if len(*b) == 0 {
		open = '{'
	}
	*b = append(append(append(*b, open, '"'), name...), '"', ':')
}

func (b *jsonObject) number(name string, n int64) {
	b.key(name)
	*b = strconv.AppendInt(*b, n, 10)
}

// limit writes a duration in milliseconds. It never rounds one down to none, which is null.
func (b *jsonObject) limit(name string, d time.Duration) {
	if d == 0 {
		b.key(name)
		*b = append(*b, "null"...)
		return
	}
	b.number(name, max(1, d.Milliseconds()))
}

func (b *jsonObject) text(name, text string) {
	b.key(name)
	b.quote(text)
}

func (b *jsonObject) list(name string, conditions []Condition) {
	b.key(name)
	*b = append(*b, '[')
	for i, c := range conditions {
		if i > 0 {
			*b = append(*b, ',')
		}
		b.quote(c.String())
	}
	*b = append(*b, ']')
}

func (b *jsonObject) rules(name string, rules []Rule) {
	b.key(name)
	*b = append(*b, '[')
	for i, r := range rules {
		if i > 0 {
			*b = append(*b, ',')
		}
		var o jsonObject
		o.text("when", r.When.String())
		o.text("backoff", r.Backoff.Curve())
		o.text("jitter", r.Backoff.Jitter())
		*b = append(append(*b, o...), '}')
	}
	*b = append(*b, ']')
}

// plainText is what JSON writes as it is.
const plainText = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;*+-_/%()=!|~^'#@?$"

// quote leaves all but plain text to the library.
func (b *jsonObject) quote(text string) {
	if strings.Trim(text, plainText) == "" {
		*b = append(append(append(*b, '"'), text...), '"')
		return
	}
	quoted, _ := json.Marshal(text) // a string always can
	*b = append(*b, quoted...)
}
