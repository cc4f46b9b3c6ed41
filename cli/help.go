package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// usages open the help of each subcommand; kong adds the flags.
var usages = map[string]string{
	"run": `retry runs a command until it succeeds, writes every attempt down, and picks an interrupted run up.

Usage:
  retry [flags] [--] COMMAND [ARG…]    run a command; what follows it is its own
  retry status [TASK]                  what ran, what waits, what gave up
  retry logs TASK                      what it wrote, where that was captured
  retry resume TASK… | --all           go on with what was cut off
  retry cancel TASK…                   never go on with it
  retry requeue TASK…                  give one that has ended fresh attempts
  retry doctor                         what is wrong with the journal, and the fix
  retry stats                          what fails, what is rescued, how long it takes
  retry metrics                        the same for a monitor
  retry prune                          remove what finished long ago

Examples:
  retry -- ./deploy.sh                            five attempts, 1 s doubling to a minute between them
  retry -n 8 -b exp:2s..2m -B 30m -- rsync …      a policy of your own
  retry -n 5 -b lock-busy --retry-on 75 -- job    only a busy lock is worth another attempt
  retry -p sidekiq --dry-run                      the schedule of a policy; nothing runs

Times are like 90s, 1h30m, 2d; a bare number is seconds. Every flag under Policy has a variable: --kill-after is RETRY_KILL_AFTER.
`,
	"status": `List the tasks of the journal, newest first, or show one with its attempts.

Usage:
  retry status [flags] [TASK]

Examples:
  retry status --status exhausted,failed --since 1d    of the runs made since yesterday those that gave up
  retry status --status interrupted                    what a resume would go on with
  retry status --id nightly                            how the runs of that name went
  retry status --watch nightly                         the newest task of that name, as it goes on
`,
	"logs": `Show the end of what an attempt wrote: what --capture stderr, --capture both or held output (--output) kept of it.

Usage:
  retry logs [flags] TASK
`,
	"resume": `Go on with interrupted tasks: in their directory, with their numbers, keys and what is left of their budgets.
A task that has finished runs again only when it was requeued, and one whose owner lives is left alone.

Usage:
  retry resume [flags] TASK…
  retry resume [flags] --all
`,
	"cancel": `Cancel tasks that have not finished. The running attempt of one gets TERM.

Usage:
  retry cancel [flags] TASK…
`,
	"requeue": `Give tasks that have finished fresh attempts: their numbers go on, their keys stay, their budgets begin anew.
They wait for retry resume, unless --run runs one here.

Usage:
  retry requeue [flags] TASK…
`,
	"doctor": `Examine the journal and where it lies, and say how to mend what is wrong. It changes nothing.
It exits 0 when nothing is worse than a warning, 1 when there is a problem.

Usage:
  retry doctor [flags]
`,
	"stats": `Sum the tasks of the journal up by name, or by command line where they have none. What is broken now comes first: whose last run
failed. LAST is that run, or "running"; cancelled ones say nothing.
P50 and P95 are of a run's duration, waits included: half and 95 % of the runs that ended took no longer. WAITED is the time
between attempts, OPEN what has not finished. On a narrow terminal some columns give way to the command lines; a pipe gets all.

Usage:
  retry stats [flags]
`,
	"metrics": `Print figures of the journal as OpenMetrics. Only tasks that have a name (--id) are told apart.

Usage:
  retry metrics [flags]

Example, for node_exporter's textfile collector:
  * * * * *  retry metrics --textfile /var/lib/node_exporter/retry.prom
`,
	"prune": `Remove finished tasks from the journal. Others can write to it meanwhile. What has not finished stays, and so does a success that
--once remembers.

Usage:
  retry prune [flags]
`,
}

// versionFlag is --version.
type versionFlag struct {
	Version bool `help:"Print the version."`
}

// version is what the Go toolchain wrote into the binary.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

// printHelp prints the help of a subcommand.
func printHelp(subcommand string, options kong.HelpOptions, ctx *kong.Context) error {
	if _, err := fmt.Fprint(ctx.Stdout, usages[subcommand]); err != nil {
		return err
	}
	return kong.DefaultHelpPrinter(options, ctx)
}
