package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/config"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// policyShowCommand is `retry policy show [NAME]`.
type policyShowCommand struct {
	policyFlags
	configFlag
	stateFlag
	JSON bool    `help:"Print JSON; its fields are stable."`
	Name *string `arg:"" optional:"" help:"The policy; else what a run here would use."`
}

func (c *policyShowCommand) run(p *Process) (int, error) {
	if c.Name != nil {
		if c.Policy != nil {
			return 0, errors.New("a name and --policy say the same thing\nhint: give one of them")
		}
		c.Policy = c.Name
	}
	choice, err := p.choose(&c.policyFlags, &c.configFlag, p.warn)
	if err != nil {
		return 0, err
	}
	if err := choice.askReader(context.Background(), p, &c.stateFlag, p.warn); err != nil {
		return 0, err
	}
	policy, err := choice.resolve(time.Now())
	if err != nil {
		return 0, err
	}
	shown := choice.explain(&policy)
	if c.JSON {
		return 0, render.PolicyShownJSON(p.Stdout, &policy, shown)
	}
	return 0, render.PolicyTOML(p.Stdout, render.ScreenOf(p.Stdout, p.getenv), shown)
}

// explain writes the policy as lines of a config file, with where each value is from.
func (c *policyChoice) explain(policy *task.Policy) []render.Setting {
	settings := []render.Setting{{Text: "[" + config.Key(policyTable, policy.Name) + "]", Origin: c.base.source()}}
	for _, k := range fileKeys() {
		if text := k.toml(policy); text != "" {
			settings = append(settings, render.Setting{Key: k.name, Text: text, Origin: c.origin(&k, policy)})
		}
	}
	for i, r := range policy.Rules {
		settings = append(settings, render.Setting{Text: "[[" + config.Key(policyTable, policy.Name, ruleKey) + "]]", Origin: c.base.ruleOrigin(i)},
			render.Setting{Key: "when", Text: config.Quote(r.When.String())},
			render.Setting{Key: "backoff", Text: config.Quote(r.Backoff.Curve())},
			render.Setting{Key: "jitter", Text: config.Quote(r.Backoff.Jitter())})
	}
	return settings
}

// origin says which flag, variable or layer gave a key its value.
func (c *policyChoice) origin(k *policyKey, policy *task.Policy) string {
	origin := c.base.origin(k.name)
	layers := []struct {
		flags *policyFlags
		name  func(string) string
	}{{c.env, variable}, {c.flags, func(key string) string { return "--" + key }}}
	for _, l := range layers {
		switch {
		case k.given(l.flags):
			origin = l.name(k.name)
		case k.name == "attempts" && l.flags.Retries != nil:
			origin = l.name("retries")
		case k.name == "jitter" && l.flags.Backoff != nil && c.flags.over(c.env).Jitter == nil && policy.Backoff.Jitter() != c.base.Backoff.Jitter():
			origin = l.name("backoff")
		}
	}
	if k.name == "budget" {
		return c.budgetOrigin(origin, policy)
	}
	return origin
}

// budgetOrigin knows that a deadline is a budget, too, where it is the shorter one.
func (c *policyChoice) budgetOrigin(origin string, policy *task.Policy) string {
	written := c.base.Budget
	set(&written, c.flags.over(c.env).Budget)
	switch {
	case policy.Budget == written:
		return origin
	case c.flags.Deadline != nil && c.outer == "":
		return "--deadline"
	case c.flags.Deadline != nil:
		return "--deadline, " + cmdexec.EnvDeadline
	}
	return cmdexec.EnvDeadline
}

// ruleOrigin says where a rule stands.
func (n *namedPolicy) ruleOrigin(i int) string {
	if n.file == nil {
		return n.source()
	}
	return n.file.Place(n.entry.Value.Table.Get(ruleKey).Value.Items[i].Offset)
}

// toml is how a policy's setting is written in the file; "" where it is as if it were left out.
func (k *policyKey) toml(p *task.Policy) string {
	switch k.name {
	case "attempts":
		return strconv.Itoa(p.Attempts)
	case "consecutive":
		if p.Consecutive <= 1 {
			return ""
		}
		return strconv.Itoa(p.Consecutive)
	case "backoff":
		return config.Quote(p.Backoff.Curve())
	case "jitter":
		return config.Quote(p.Backoff.Jitter())
	case "kill-after":
		return config.Quote(text.FormatDuration(p.KillAfter))
	}
	if limit := map[string]time.Duration{"timeout": p.Timeout, "budget": p.Budget, "reset-after": p.ResetAfter}[k.name]; limit > 0 {
		return config.Quote(text.FormatDuration(limit))
	}
	return quotedList(map[string][]task.Condition{"retry-on": p.RetryOn, "stop-on": p.StopOn, "success-on": p.SuccessOn}[k.name])
}

// quotedList is "" for no conditions.
func quotedList(conditions []task.Condition) string {
	if len(conditions) == 0 {
		return ""
	}
	var quoted []string
	for _, c := range conditions {
		quoted = append(quoted, config.Quote(c.String()))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
