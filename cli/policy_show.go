package cli

import (
	"context"
	"errors"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
)

// policyShowCommand is `retry policy show [NAME]`.
type policyShowCommand struct {
	flags.PolicyFlags
	flags.ConfigFlag
	flags.StateFlag
	JSON bool    `help:"Print JSON; its fields are stable."`
	Name *string `arg:"" optional:"" help:"The policy; else what a run here would use."`
}

func (*policyShowCommand) usage() string {
	return `Print a policy as a part of a config file, each value with where it is from. Without a name it is what a run here would use: the
environment and the flags count.

Usage:
  retry policy show [NAME] [flags]

Examples:
  retry policy show zizq -n 8
  retry policy show deploy >>~/.config/retry/config.toml
`
}

func (c *policyShowCommand) Run(p *Process) (int, error) {
	if c.Name != nil {
		if c.Policy != nil {
			return 0, errors.New("a name and --policy say the same thing\nhint: give one of them")
		}
		c.Policy = c.Name
	}
	choice, err := policies.Choose(&c.PolicyFlags, &c.ConfigFlag, p.Getenv, p.warn)
	if err != nil {
		return 0, err
	}
	if err := session.AskReader(context.Background(), &p.Host, choice, c.State, p.warn); err != nil {
		return 0, err
	}
	policy, err := choice.Resolve(time.Now())
	if err != nil {
		return 0, err
	}
	shown := choice.Explain(&policy)
	if c.JSON {
		return 0, render.PolicyShownJSON(p.Stdout, &policy, shown)
	}
	return 0, render.PolicyTOML(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), shown)
}
