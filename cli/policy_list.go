package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/task"
)

// policyListCommand is `retry policy list`.
type policyListCommand struct {
	stateFlag
	configFlag
	JSON bool `help:"Print JSON; its fields are stable."`
}

func (c *policyListCommand) run(p *Process) (int, error) {
	file, err := c.load(p.getenv, p.warn)
	if err != nil {
		return 0, err
	}
	stored, err := c.stored(p)
	if err != nil {
		p.warn(err)
	}
	rows := policyRows(stored, file)
	if c.JSON {
		return 0, render.PoliciesJSON(p.Stdout, rows)
	}
	return 0, render.Policies(p.Stdout, render.ScreenOf(p.Stdout, p.getenv), rows)
}

// stored returns the journal's policies.
func (c *policyListCommand) stored(p *Process) (policies []namedPolicy, err error) {
	ctx := context.Background()
	journal, err := c.read(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = journal.Close() }()
	all, err := journal.Policies(ctx)
	for i := range all {
		policies = append(policies, *storedPolicy(&all[i]))
	}
	return policies, err
}

// policyRows are all policies by name, the default first; each knows which it hides.
func policyRows(stored []namedPolicy, file *policyFile) []render.PolicyRow {
	rows := map[string]*render.PolicyRow{}
	add := func(n namedPolicy) {
		row := render.PolicyRow{Policy: n.Policy, Layer: n.layer(), Damage: n.damage}
		if n.file != nil {
			row.File, row.Line = n.file.Path, n.file.At(n.entry.Offset).Line
		}
		if earlier := rows[n.Name]; earlier != nil {
			row.Hides = slices.Concat(earlier.Hides, []string{earlier.Layer})
		}
		rows[n.Name] = &row
	}
	for _, name := range builtinNames() {
		add(*builtinPolicy(name))
	}
	for _, n := range stored {
		add(n)
	}
	for _, e := range file.entries() {
		policy, mistakes := file.policy(&e)
		add(namedPolicy{Policy: policy, file: file, entry: &e, damage: joined(mistakes)})
	}
	var sorted []render.PolicyRow
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b render.PolicyRow) int { return byName(a.Name, b.Name) })
	return sorted
}

func byName(a, b string) int {
	switch task.DefaultPolicyName {
	case a:
		return -1
	case b:
		return 1
	}
	return strings.Compare(a, b)
}
