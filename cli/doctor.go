package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/doctor"
)

type doctorCommand struct {
	flags.StateFlag
	JSON bool `help:"Print JSON; its fields are stable."`
}

const doctorUsage = `Examine the journal, where it lies, the config file and the RETRY_ variables, and say how to mend
what is wrong. It changes nothing.
It exits 0 when nothing is worse than a warning, 1 when there is a problem.

Usage:
  retry doctor [flags]

Examples:
  retry doctor                           the journal of this user
  retry doctor --state /var/lib/retry    another one
`

func (c *doctorCommand) Run(p *Process) (int, error) {
	done := p.Busy("examines the journal")
	place, findings := doctor.Examine(context.Background(), c.State, p.Getenv, time.Now())
	done()
	findings = append(findings, c.configuration(p)...)
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

// configuration examines the config file and the variables, as each run reads them.
func (c *doctorCommand) configuration(p *Process) (findings []state.Finding) {
	add := func(name, level string, err error, fix string) {
		message, hint, _ := strings.Cut(err.Error(), "\nhint: ")
		findings = append(findings, state.Finding{Name: name, Level: level, Text: message, Fix: cmp.Or(hint, fix)})
	}
	path, named := (&flags.ConfigFlag{}).Path(p.Getenv)
	switch file, mistakes, err := policies.Read(path); {
	case path == "", errors.Is(err, policies.ErrAbsent) && !named:
		findings = append(findings, state.Finding{Name: "config", Level: doctor.LevelOK, Text: "no config file"})
	case err != nil:
		add("config", doctor.LevelProblem, err, "correct the path, or unset RETRY_CONFIG")
	default:
		mistakes = file.Check(mistakes)
		for _, m := range mistakes {
			add("config", doctor.LevelWarning, m, "correct it; retry policy check looks again")
		}
		if len(mistakes) == 0 {
			what := path + ": " + text.Count(len(file.Names()), "policy") + ", no mistakes"
			findings = append(findings, state.Finding{Name: "config", Level: doctor.LevelOK, Text: what})
		}
	}
	if _, err := policies.FromEnvironment(p.Getenv); err != nil {
		add("environment", doctor.LevelProblem, err, "")
	}
	if err := policies.SetDefaults(&runCommand{}, nil, nil, p.Environ); err != nil {
		add("environment", doctor.LevelProblem, err, "")
	}
	if err := policies.SetDefaults(&serveCommand{}, nil, nil, p.Environ); err != nil { // of a worker too
		add("environment", doctor.LevelWarning, err, "")
	}
	policies.WarnOfVariables(p.Environ, func(err error) { add("environment", doctor.LevelWarning, err, "") })
	return findings
}
