package cli

import (
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
)

// outputFlags say what retry itself prints about a run.
type outputFlags struct {
	Quiet     bool   `short:"q"`
	Verbose   bool   `short:"v"`
	LogFormat string `enum:"text,json" default:"text"`
	CI        string `enum:"auto,github,gitlab,none" default:"auto"`
}

// observer returns who tells people about a run: on stderr, since stdout is the command's.
func (f *outputFlags) observer(p *Process) render.Observer {
	switch {
	case f.Quiet:
		return render.NewQuiet(render.NewLines(p.lines(), nil, nil, false))
	case f.LogFormat == "json":
		return render.NewLog(p.lines(), f.Verbose)
	}
	switch f.service(p) {
	case render.CIGitHub:
		return render.NewGitHub(p.lines(), f.Verbose, p.getenv("GITHUB_STEP_SUMMARY"))
	case render.CIGitLab:
		return render.NewGitLab(p.lines(), f.Verbose)
	default:
		inForeground := func() bool { return p.getenv("TERM") != "dumb" && proc.Interactive(p.Stderr) }
		return render.NewLines(p.lines(), p.Stderr, inForeground, f.Verbose)
	}
}

// service returns the service in whose log the run is read. To auto, a nested retry is a part of an attempt: groups do not
// nest, and its failure is not the last word.
func (f *outputFlags) service(p *Process) render.CI {
	service := render.CI(f.CI)
	if service == render.CIAuto && p.getenv(cmdexec.EnvTaskID) != "" {
		return render.CINone
	}
	return service.Detect(p.getenv)
}
