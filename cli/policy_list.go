package cli

import (
	"context"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
)

// policyListCommand is `retry policy list`.
type policyListCommand struct {
	flags.StateFlag
	flags.ConfigFlag
	JSON bool `help:"Print JSON; its fields are stable."`
}

func (*policyListCommand) usage() string {
	return `List the policies by name, with where each is from, and what it hides.

Usage:
  retry policy list [flags]
`
}

func (c *policyListCommand) Run(p *Process) (int, error) {
	file, err := policies.Load(&c.ConfigFlag, p.Getenv, p.warn)
	if err != nil {
		return 0, err
	}
	stored, err := c.stored(p)
	if err != nil {
		p.warn(err)
	}
	rows := policies.Rows(stored, file)
	if c.JSON {
		return 0, render.PoliciesJSON(p.Stdout, rows)
	}
	return 0, render.Policies(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), rows)
}

// stored returns the journal's policies.
func (c *policyListCommand) stored(p *Process) (found []policies.Named, err error) {
	ctx := context.Background()
	journal, err := session.ReadJournal(ctx, &p.Host, c.State)
	if err != nil {
		return nil, err
	}
	defer func() { _ = journal.Close() }()
	all, err := journal.Policies(ctx)
	for i := range all {
		found = append(found, *policies.Stored(&all[i]))
	}
	return found, err
}
