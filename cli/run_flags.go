package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/flags"
)

// runFlags are a struct of flags of `retry run`: their names and letters, each between spaces.
type runFlags struct {
	names string
	of    func(*runCommand) any
}

// runFlagGroups lets a run build the parser of the flags that are typed: kong takes about 10 µs for each that it knows.
var runFlagGroups = []runFlags{
	{" policy p attempts n retries backoff b jitter j timeout t kill-after budget B deadline reset-after consecutive retry-on stop-on success-on ",
		func(c *runCommand) any { return &c.PolicyFlags }},
	{" quiet q verbose v log-format ci ", func(c *runCommand) any { return &c.OutputFlags }},
	{" id fresh once kill-orphans if-running ", func(c *runCommand) any { return &c.NameFlags }},
	{" state ", func(c *runCommand) any { return &c.StateFlag }},
	{" no-state require-state retention ", func(c *runCommand) any { return &c.JournalFlags }},
	{" stdin output output-limit capture ", func(c *runCommand) any { return &c.StreamFlags }},
	{" on-retry on-success on-failure seed ", func(c *runCommand) any { return &c.HookFlags }},
	{" foreground group ", func(c *runCommand) any { return &c.ProcessGroupFlags }},
	{" keep-env ", func(c *runCommand) any { return &c.EnvironmentFlags }},
	{" config ", func(c *runCommand) any { return &c.ConfigFlag }},
	{" report ", func(c *runCommand) any { return &c.ReportFlags }},
}

// ungroupedFlags need the whole parser.
const ungroupedFlags = " help h dry-run idempotency-key json version "

// newRunCommand has the defaults that kong would give it, for the flags that it is not told of.
func newRunCommand() *runCommand {
	c := &runCommand{}
	c.IfRunning, c.LogFormat, c.CI = "fail", "text", "auto"
	c.StreamFlags = flags.StreamFlags{Stdin: "auto", Output: "stream", OutputLimit: 2 << 30, Capture: "none"}
	return c
}

// typedFlags is the part of run that args may have flags of, as a struct for kong. It is nil where that may be any.
func typedFlags(run *runCommand, args []string) *kong.Plugins {
	typed := typedNames(args)
	if namesAny(ungroupedFlags, typed) {
		return nil
	}
	plugins := kong.Plugins{}
	for _, g := range runFlagGroups {
		if namesAny(g.names, typed) {
			plugins = append(plugins, g.of(run))
		}
	}
	return &plugins
}

func namesAny(names string, typed []string) bool {
	for _, name := range typed {
		if strings.Contains(names, " "+name+" ") {
			return true
		}
	}
	return false
}

// typedNames are all that could be names of flags before the command: also the command's own flags, and values that begin with a dash, since
// where the command begins is not known yet.
func typedNames(args []string) (names []string) {
	if len(args) > 0 && !isFlag(args[0]) && args[0] != "run" {
		return nil
	}
	for _, arg := range args {
		long, isLong := strings.CutPrefix(arg, "--")
		switch {
		case arg == "--":
			return names
		case isLong:
			name, _, _ := strings.Cut(long, "=")
			names = append(names, name)
		case isFlag(arg):
			names = append(names, arg[1:])
			for _, letter := range arg[1:] {
				names = append(names, string(letter))
			}
		}
	}
	return names
}
