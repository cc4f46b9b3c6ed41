package cli

import (
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/runner"
)

// printSchedule is --dry-run: what the policy would do, from the code that does it.
func (c *runCommand) printSchedule(p *Process, policy *runner.Policy) error {
	schedule := render.NewSchedule(policy)
	if c.JSON {
		return schedule.WriteJSON(p.Stdout)
	}
	return schedule.Write(p.Stdout, render.ScreenOf(p.Stdout, p.getenv))
}
