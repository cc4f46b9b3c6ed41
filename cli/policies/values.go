package policies

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Policy reads a policy of the file. What it leaves out is as in the built-in default.
func (f *File) Policy(name string) (task.Policy, []*Mistake) {
	r := &reader{file: f, table: []string{policyTable, name}}
	policy := task.DefaultPolicy()
	policy.Name = name
	table, values := f.policies[name], &flags.PolicyFlags{}
	for _, k := range fileKeys() {
		if value, given := table[k.Name]; given {
			r.setting(&k, values, value)
		}
	}
	if len(r.mistakes) == 0 {
		r.together(table, values, &policy)
	}
	policy.Rules = r.rules(table[ruleKey])
	return policy, r.sorted()
}

// setting reads a value into the flag of the same name.
func (r *reader) setting(k *Key, values *flags.PolicyFlags, v any) {
	items := []any{v}
	if list, isList := v.([]any); isList && k.Kind == keyConditions {
		items = list
	}
	for _, item := range items {
		word, ok := textIn(k.Kind, item)
		if !ok {
			r.mistake(fmt.Errorf("%s where %s belongs\nhint: for example %s", kindOfValue(item), k.Kind, k.line()), k.Name)
			continue
		}
		// A wrong item of a list is not added to the values: it would be reported again with the next one.
		if err := k.set(&flags.PolicyFlags{}, word); err != nil {
			r.mistake(text.WithHint(err, "for example "+k.line()), k.Name)
			continue
		}
		_ = k.set(values, word)
	}
}

// kindOfValue names the type of a TOML value as a person would.
func kindOfValue(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or a time"
}

// textIn is how a value would be written for the flag; false where its type does not go with the key.
func textIn(kind keyKind, v any) (word string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, kind != keyCount
	case int64:
		return strconv.FormatInt(v, 10), kind != keySpec
	case float64:
		word = strconv.FormatFloat(v, 'f', -1, 64)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			word = strings.ToLower(strings.TrimPrefix(word, "+"))
		}
		return word, kind == keyDuration
	}
	return "", false
}

// line is an example of the key in a file.
func (k *Key) line() string {
	switch k.Kind {
	case keyCount:
		return k.Name + " = " + k.Example
	case keyConditions:
		return k.Name + " = [" + quote(k.Example) + "]"
	}
	return k.Name + " = " + quote(k.Example)
}

// together lays the values over the default, where some may not go with each other.
func (r *reader) together(table map[string]any, values *flags.PolicyFlags, policy *task.Policy) {
	var err error
	if policy.Backoff, err = policy.Backoff.With(flags.OrEmpty(values.Backoff), flags.OrEmpty(values.Jitter)); err != nil {
		r.mistake(err, firstOf(table, "jitter", "backoff"))
		return
	}
	values.Backoff, values.Jitter = nil, nil
	if err := Overlay(policy, values, time.Time{}); err != nil {
		r.mistake(err, firstOf(table, "consecutive", "attempts"))
	}
}

// firstOf returns the first of the keys that a table has; "" for none.
func firstOf(table map[string]any, keys ...string) string {
	for _, k := range keys {
		if table[k] != nil {
			return k
		}
	}
	return ""
}

// rules reads the tables of a list. What is no table was found when the file was read.
func (r *reader) rules(list any) (rules []task.Rule) {
	tables, _ := list.([]any)
	policy := r.table
	for i, item := range tables {
		if table, isTable := item.(map[string]any); isTable {
			r.table = slices.Concat(policy, []string{ruleKey, strconv.Itoa(i)})
			rules = append(rules, r.rule(table))
		}
	}
	return rules
}

// rule reads the values of a rule, of which only jitter may be left out.
func (r *reader) rule(table map[string]any) (rule task.Rule) {
	before, values := len(r.mistakes), &flags.PolicyFlags{}
	for _, k := range ruleKeys() {
		if value, given := table[k.Name]; given {
			r.setting(&k, values, value)
		} else if k.Name != "jitter" {
			r.mistake(fmt.Errorf("a rule without %s\nhint: add for example %s", k.Name, k.line()))
		}
	}
	if len(r.mistakes) > before {
		return rule
	}
	rule, err := task.ParseRule(values.RetryOn[0], *values.Backoff, flags.OrEmpty(values.Jitter))
	if err != nil { // each value is right alone
		r.mistake(err, firstOf(table, "jitter", "backoff"))
	}
	return rule
}
