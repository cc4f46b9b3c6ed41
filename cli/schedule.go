package cli

import (
	"context"
	"time"

	"github.com/10f93571/retry/cli/render"
)

// dryRun is --dry-run: what the policy would do, from the code that does it.
func (c *runCommand) dryRun(p *Process, now time.Time, lines render.Observer) error {
	if err := c.choice.askReader(context.Background(), p, &c.stateFlag, lines.Warn); err != nil {
		return err
	}
	policy, err := c.choice.resolve(now)
	if err != nil {
		return err
	}
	schedule := render.NewSchedule(&policy)
	if c.JSON {
		return schedule.WriteJSON(p.Stdout)
	}
	return schedule.Write(p.Stdout, render.ScreenOf(p.Stdout, p.getenv))
}
