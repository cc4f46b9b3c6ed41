package policies

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/config"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// valueReader reads the values of a policy and collects what is wrong with them.
type valueReader struct {
	file     *File
	path     []string
	mistakes []*config.Error
}

func (r *valueReader) mistake(offset int, err error, keys ...string) {
	r.mistakes = append(r.mistakes, r.file.Errorf(offset, config.Key(slices.Concat(r.path, keys)...), "%w", err))
}

// Policy reads an entry that has the structure of a policy. What it leaves out is as in the built-in default.
func (f *File) Policy(e *config.Entry) (task.Policy, []*config.Error) {
	r := &valueReader{file: f, path: []string{policyTable, e.Key}}
	policy := task.DefaultPolicy()
	policy.Name = e.Key
	flags := &flags.PolicyFlags{}
	for _, setting := range e.Value.Table.Entries {
		if setting.Key == ruleKey {
			policy.Rules = r.rules(setting)
		} else if k := keyNamed(setting.Key); k != nil {
			r.setting(k, flags, setting.Value)
		}
	}
	if len(r.mistakes) == 0 {
		r.together(e.Value.Table, flags, &policy)
	}
	return policy, r.mistakes
}

// setting reads a value into the flag of the same name.
func (r *valueReader) setting(k *Key, values *flags.PolicyFlags, v config.Value) {
	for _, item := range items(k.Kind, v) {
		word, ok := textIn(k.Kind, item)
		if !ok {
			r.mistake(item.Offset, wrongKind(k, item.Kind), k.Name)
			continue
		}
		alone := &flags.PolicyFlags{} // a wrong item of a list is not to be said again with the next
		if err := k.set(alone, word); err != nil {
			r.mistake(item.Offset, text.WithHint(err, "for example "+k.line()), k.Name)
			continue
		}
		_ = k.set(values, word) // each item is right alone, and so are all
	}
}

// items are the conditions of a list, or the one value.
func items(kind keyKind, v config.Value) []config.Value {
	if kind == keyConditions && v.Kind == config.List {
		return v.Items
	}
	return []config.Value{v}
}

// textIn is how a value would be written for the flag; false where its type does not go with the key.
func textIn(kind keyKind, v config.Value) (text string, ok bool) {
	switch {
	case v.Kind == config.String:
		return v.Text, kind != keyCount
	case v.Kind == config.Integer && kind != keySpec:
		if n, small := v.Integer(); small {
			return strconv.FormatInt(n, 10), true
		}
		return v.Text, true // which the flag finds too large
	case v.Kind == config.Float && kind == keyDuration:
		n, err := strconv.ParseFloat(strings.ReplaceAll(v.Text, "_", ""), 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return v.Text, true
		}
		return strconv.FormatFloat(n, 'f', -1, 64), true
	}
	return "", false
}

func wrongKind(k *Key, got config.Kind) error {
	return fmt.Errorf("%s where %s belongs\nhint: for example %s", got, k.Kind, k.line())
}

// line is an example of the key in a file.
func (k *Key) line() string {
	switch k.Kind {
	case keyCount:
		return k.Name + " = " + k.Example
	case keyConditions:
		return k.Name + " = [" + config.Quote(k.Example) + "]"
	}
	return k.Name + " = " + config.Quote(k.Example)
}

// together lays the values over the default, where some may not go with each other.
func (r *valueReader) together(table *config.Table, flags *flags.PolicyFlags, policy *task.Policy) {
	var err error
	if policy.Backoff, err = policy.Backoff.With(Value(flags.Backoff), Value(flags.Jitter)); err != nil {
		key := firstOf(table, "jitter", "backoff")
		r.mistake(key.Value.Offset, err, key.Key)
		return
	}
	flags.Backoff, flags.Jitter = nil, nil
	if err := Overlay(policy, flags, time.Time{}); err != nil {
		key := firstOf(table, "consecutive", "attempts")
		r.mistake(key.Value.Offset, err, key.Key)
	}
}

// firstOf returns the first of the keys that a table has.
func firstOf(table *config.Table, keys ...string) *config.Entry {
	for _, k := range keys {
		if e := table.Get(k); e != nil {
			return e
		}
	}
	return &config.Entry{Key: keys[0]}
}

// rules reads the tables of a list.
func (r *valueReader) rules(e config.Entry) (rules []task.Rule) {
	for _, item := range e.Value.Items {
		if item.Kind != config.Tables {
			continue
		}
		before := len(r.mistakes)
		when := r.ruleText(item, "when")
		curve := r.ruleText(item, "backoff")
		jitter := r.ruleText(item, "jitter")
		if len(r.mistakes) > before {
			continue
		}
		rule, err := task.ParseRule(when, curve, jitter)
		if err != nil { // each is right alone
			key := firstOf(item.Table, "jitter", "backoff")
			r.mistake(key.Value.Offset, err, ruleKey, key.Key)
		}
		rules = append(rules, rule)
	}
	return rules
}

// ruleText reads and checks one key of a rule, of which only jitter may be left out.
func (r *valueReader) ruleText(rule config.Value, name string) string {
	examples := map[string]string{"when": "exit == 75", "backoff": "constant:500ms", "jitter": "30%"}
	e := rule.Table.Get(name)
	if e == nil {
		if name != "jitter" {
			r.mistake(rule.Offset, fmt.Errorf("a rule without %s\nhint: add for example %[1]s = %s", name, config.Quote(examples[name])), ruleKey)
		}
		return ""
	}
	kind := keySpec
	if name == "when" {
		kind = keyConditions
	}
	text, ok := textIn(kind, e.Value)
	if !ok {
		err := fmt.Errorf("%s where a text belongs\nhint: for example %s = %s", e.Value.Kind, name, config.Quote(examples[name]))
		r.mistake(e.Value.Offset, err, ruleKey, name)
		return ""
	}
	if err := checkRuleText(name, text); err != nil {
		r.mistake(e.Value.Offset, err, ruleKey, name)
	}
	return text
}

func checkRuleText(name, text string) (err error) {
	if name == "when" {
		_, err = task.ParseCondition(text)
		return err
	}
	flags := &flags.PolicyFlags{}
	return keyNamed(name).set(flags, text)
}
