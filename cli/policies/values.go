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

// valueReader reads the values of a policy and collects what is wrong with them.
type valueReader struct {
	file     *File
	path     []string
	mistakes []*Mistake
}

func (r *valueReader) mistake(err error, keys ...string) {
	path := slices.Concat(r.path, keys)
	r.mistakes = append(r.mistakes, r.file.valueMistake(err, dottedKey(path...), path...))
}

// Policy reads a policy of the file. What it leaves out is as in the built-in default.
func (f *File) Policy(name string) (task.Policy, []*Mistake) {
	r := &valueReader{file: f, path: []string{policyTable, name}}
	policy := task.DefaultPolicy()
	policy.Name = name
	table := f.policies[name]
	values := &flags.PolicyFlags{}
	for _, k := range fileKeys() {
		if value, given := table[k.Name]; given {
			r.setting(&k, values, value)
		}
	}
	policy.Rules = r.rules(table[ruleKey])
	if len(r.mistakes) == 0 {
		r.together(table, values, &policy)
	}
	sortMistakes(r.mistakes)
	return policy, r.mistakes
}

// setting reads a value into the flag of the same name.
func (r *valueReader) setting(k *Key, values *flags.PolicyFlags, v any) {
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
		alone := &flags.PolicyFlags{} // so that a wrong item of a list is not reported again with the next
		if err := k.set(alone, word); err != nil {
			r.mistake(text.WithHint(err, "for example "+k.line()), k.Name)
			continue
		}
		_ = k.set(values, word) // each item is right alone, and so are all
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
func (r *valueReader) together(table map[string]any, values *flags.PolicyFlags, policy *task.Policy) {
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

// rules reads the tables of a list.
func (r *valueReader) rules(list any) (rules []task.Rule) {
	tables, _ := list.([]any)
	for i, item := range tables {
		table, isTable := item.(map[string]any)
		if !isTable {
			continue
		}
		wrong := func(err error, keys ...string) {
			path := slices.Concat(r.path, []string{ruleKey, strconv.Itoa(i)}, keys)
			name := dottedKey(slices.Concat(r.path, []string{ruleKey}, keys)...)
			r.mistakes = append(r.mistakes, r.file.valueMistake(err, name, path...))
		}
		before := len(r.mistakes)
		when := ruleText(table, "when", wrong)
		curve := ruleText(table, "backoff", wrong)
		jitter := ruleText(table, "jitter", wrong)
		if len(r.mistakes) > before {
			continue
		}
		rule, err := task.ParseRule(when, curve, jitter)
		if err != nil { // each is right alone
			wrong(err, firstOf(table, "jitter", "backoff"))
		}
		rules = append(rules, rule)
	}
	return rules
}

// ruleText reads and checks one key of a rule, of which only jitter may be left out.
func ruleText(rule map[string]any, name string, wrong func(err error, keys ...string)) string {
	example := map[string]string{"when": "exit == 75", "backoff": "constant:500ms", "jitter": "30%"}[name]
	value, given := rule[name]
	if !given {
		if name != "jitter" {
			wrong(fmt.Errorf("a rule without %s\nhint: add for example %[1]s = %s", name, quote(example)))
		}
		return ""
	}
	kind := keySpec
	if name == "when" {
		kind = keyConditions
	}
	word, ok := textIn(kind, value)
	var err error
	switch {
	case !ok:
		err = fmt.Errorf("%s where a text belongs\nhint: for example %s = %s", kindOfValue(value), name, quote(example))
	case name == "when":
		_, err = task.ParseCondition(word)
	default:
		err = keyNamed(name).set(&flags.PolicyFlags{}, word)
	}
	if err != nil {
		wrong(err, name)
	}
	return word
}
