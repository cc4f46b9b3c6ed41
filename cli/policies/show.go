package policies

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Explain writes the policy as lines of a config file, with where each value is from.
func (c *Choice) Explain(policy *task.Policy) []render.Setting {
	settings := []render.Setting{{Text: "[" + dottedKey(policyTable, policy.Name) + "]", Origin: c.Base.source()}}
	for _, k := range fileKeys() {
		if text := k.toml(policy); text != "" {
			settings = append(settings, render.Setting{Key: k.Name, Text: text, Origin: c.origin(&k, policy)})
		}
	}
	for i, r := range policy.Rules {
		settings = append(settings, render.Setting{Text: "[[" + dottedKey(policyTable, policy.Name, ruleKey) + "]]", Origin: c.Base.ruleOrigin(i)},
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
		case k.Name == "jitter" && l.flags.Backoff != nil && over(c.Flags, c.Env).Jitter == nil && policy.Backoff.Jitter() != c.Base.Backoff.Jitter():
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
	if limit := map[string]time.Duration{"timeout": p.Timeout, "budget": p.Budget, "reset-after": p.ResetAfter}[k.Name]; limit > 0 {
		return quote(text.FormatDuration(limit))
	}
	var quoted []string
	for _, c := range map[string][]task.Condition{"retry-on": p.RetryOn, "stop-on": p.StopOn, "success-on": p.SuccessOn}[k.Name] {
		quoted = append(quoted, quote(c.String()))
	}
	if quoted == nil {
		return ""
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Rows are all policies by name, the default first; each knows which it hides.
func Rows(stored []Named, file *File) []render.PolicyRow {
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
	for _, n := range stored {
		add(n)
	}
	for _, name := range file.Names() {
		policy, mistakes := file.Policy(name)
		add(Named{Policy: policy, file: file, damage: joined(mistakes)})
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
