package cli

import (
	"context"
	"time"

	"github.com/10f93571/retry/cli/render"
)

// dryRun is --dry-run: what the policy would do, from the code that does it.
func (w *wrapper) dryRun(p *Process, now time.Time, lines render.Observer, asJSON bool) error {
	if err := w.choice.askReader(context.Background(), p, &w.stateFlag, lines.Warn); err != nil {
		return err
	}
	policy, err := w.choice.resolve(now)
	if err != nil {
		return err
	}
	schedule := render.NewSchedule(&policy)
	if asJSON {
		return schedule.WriteJSON(p.Stdout)
	}
	return schedule.Write(p.Stdout, render.ScreenOf(p.Stdout, p.getenv))
}
