package cli

import (
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
)

// outputFlags say what retry itself prints about a run.
type outputFlags struct {
	Quiet     bool   `short:"q" group:"Output" help:"Print nothing about attempts."`
	Verbose   bool   `short:"v" group:"Output" help:"Print also when an attempt starts."`
	LogFormat string `group:"Output" enum:"text,json" default:"text" placeholder:"text|json" help:"Lines on stderr for people or for programs."`
}

// observer returns who tells people about a run: on stderr, since stdout is the command's.
func (f *outputFlags) observer(p *Process) render.Observer {
	switch {
	case f.Quiet:
		return render.Silent{}
	case f.LogFormat == "json":
		return render.NewLog(p.Stderr, f.Verbose)
	default:
		inForeground := func() bool { return p.getenv("TERM") != "dumb" && cmdexec.Interactive(p.Stderr) }
		return render.NewLines(p.Stderr, inForeground, f.Verbose)
	}
}
