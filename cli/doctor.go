package cli

import (
	"context"
	"slices"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/doctor"
)

type doctorCommand struct {
	flags.StateFlag
	JSON bool `help:"Print JSON; its fields are stable."`
}

const doctorUsage = `Examine the journal and where it lies, and say how to mend what is wrong. It changes nothing.
It exits 0 when nothing is worse than a warning, 1 when there is a problem.

Usage:
  retry doctor [flags]

Examples:
  retry doctor                           the journal of this user
  retry doctor --state /var/lib/retry    another one
`

func (c *doctorCommand) Run(p *Process) (int, error) {
	place, findings := doctor.Examine(context.Background(), c.State, p.Getenv, time.Now())
	code := 0
	if slices.ContainsFunc(findings, func(f state.Finding) bool { return f.Level == doctor.LevelProblem }) {
		code = 1
	}
	absent := session.JournalAbsent(&p.Host, c.State)
	if c.JSON {
		return code, render.DoctorJSON(p.Stdout, place.Dir, place.Source, absent == nil, findings)
	}
	return code, render.Doctor(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), absent, findings)
}
