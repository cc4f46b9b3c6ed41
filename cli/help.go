package cli

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// usages open the help of each subcommand; kong adds the flags. A map would be made at every start.
var usages = []struct{ name, text string }{
	{"run", `retry runs a command until it succeeds, writes every attempt down, and picks an interrupted run up.

Usage:
  retry [flags] [--] COMMAND [ARG…]    run a command; what follows it is its own
  retry http [flags] URL               send a request, with the flags of curl, until it succeeds
  retry status [TASK]                  what ran, what waits, what gave up
  retry logs TASK                      what it wrote, where that was captured
  retry resume TASK… | --all           go on with what was cut off
  retry cancel TASK…                   never go on with it
  retry requeue TASK…                  give one that has ended fresh attempts
  retry doctor                         what is wrong with the journal, and the fix
  retry stats                          what fails, what is rescued, how long it takes
  retry metrics                        the same for a monitor
  retry prune                          remove what finished long ago
  retry policy list|show|set|rm|check  policies by name, for -p
  retry simulate lock|outage SPEC…     what many clients do to a lock, or to a service that comes back
  retry plot [SPEC…]                   see what a policy does before it is used

Examples:
  retry -- ./deploy.sh                            five attempts, 1 s doubling to a minute between them
  retry -n 8 -b exp:2s..2m -B 30m -- rsync …      a policy of your own
  retry -n 5 -b lock-busy --retry-on 75 -- job    only a busy lock is worth another attempt
  retry -p sidekiq --dry-run                      the schedule of a policy; nothing runs

Times are like 90s, 1h30m, 2d; a bare number is seconds. Every flag under Policy has a variable: --kill-after is RETRY_KILL_AFTER.
`},
	{"http", `Send an HTTP request until it succeeds, but never twice what is not safe to repeat. The flags are curl's where curl has them, and so
are the exit statuses: 22 for a status of 400 or more, 6 DNS, 7 connect, 18 body cut, 28 timeout, 35 and 60 TLS, 52 and 56 no reply.

Usage:
  retry http [flags] URL

Examples:
  retry http -fo data.csv https://example.org/data.csv            a download; what was cut goes on where it was
  retry http --json @order.json https://example.org/orders        a POST: sent again only where it cannot have taken effect
  retry http --idempotency-key order-17 --json @order.json URL    one that the server knows by its key: safe to send again
  retry http -H 'Authorization: Bearer {env:TOKEN}' URL           the token is read at each send, and never stored
`},
	{"status", `List the tasks of the journal, newest first, or show one with its attempts.

Usage:
  retry status [flags] [TASK]

Examples:
  retry status --status exhausted,failed --since 1d    of the runs made since yesterday those that gave up
  retry status --status interrupted                    what a resume would go on with
  retry status --id nightly                            how the runs of that name went
  retry status --watch nightly                         the newest task of that name, as it goes on
`},
	{"logs", `Show the end of what an attempt wrote: what --capture stderr, --capture both or held output (--output) kept of it.

Usage:
  retry logs [flags] TASK
`},
	{"resume", `Go on with interrupted tasks: in their directory, with their numbers, keys and what is left of their budgets.
A task that has finished runs again only when it was requeued, and one whose owner lives is left alone.

Usage:
  retry resume [flags] TASK…
  retry resume [flags] --all
`},
	{"cancel", `Cancel tasks that have not finished. The running attempt of one gets TERM.

Usage:
  retry cancel [flags] TASK…
`},
	{"requeue", `Give tasks that have finished fresh attempts: their numbers go on, their keys stay, their budgets begin anew.
They wait for retry resume, unless --run runs one here.

Usage:
  retry requeue [flags] TASK…
`},
	{"doctor", `Examine the journal and where it lies, and say how to mend what is wrong. It changes nothing.
It exits 0 when nothing is worse than a warning, 1 when there is a problem.

Usage:
  retry doctor [flags]
`},
	{"stats", `Sum the tasks of the journal up by name, or by command line where they have none. What is broken now comes first: whose last run
failed. LAST is that run, or "running"; cancelled ones say nothing.
P50 and P95 are of a run's duration, waits included: half and 95 % of the runs that ended took no longer. WAITED is the time
between attempts, OPEN what has not finished. On a narrow terminal some columns give way to the command lines; a pipe gets all.

Usage:
  retry stats [flags]
`},
	{"metrics", `Print figures of the journal as OpenMetrics. Only tasks that have a name (--id) are told apart.

Usage:
  retry metrics [flags]

Example, for node_exporter's textfile collector:
  * * * * *  retry metrics --textfile /var/lib/node_exporter/retry.prom
`},
	{"simulate", `Let many clients of a policy loose on a lock, or on a service that is down and comes back, and see what becomes of them. Several
SPECs stand side by side; without one it is the policy that a run here would use.

Usage:
  retry simulate lock [flags] [SPEC[/JITTER]…]
  retry simulate outage [flags] [SPEC[/JITTER]…]
`},
	{"simulate lock", `Clients that all want one lock, each once. All call first at time 0, and none ever gives up: attempts and budgets do not count.
A call that finds the lock taken waits for it for as long as --spin says; those who wait get it in the order in which they came. Else it
is a collision, and the client backs off.

Usage:
  retry simulate lock [flags] [SPEC[/JITTER]…]

Example:
  retry simulate lock --hold 10ms lock-busy exp:100ms..10s/none exp:100ms..10s/equal exp:100ms..10s/full
`},
	{"simulate outage", `Clients of a service that is down, and comes back. All call first at time 0, and none ever gives up: attempts and budgets do
not count. Once it is back the service answers as many calls a second as --capacity says, up to that many at once, and rejects the
others. REJECTED are those alone, not the calls while it was down.

Usage:
  retry simulate outage [flags] [SPEC[/JITTER]…]

Examples:
  retry simulate outage exp:10s exp:10s/full exp:10s/equal sidekiq
  retry simulate outage --clients 5000 --down 10m --capacity 50 deploy --json
`},
	{"policy", `Policies by name, for retry -p NAME. They are built in, or kept in the journal (retry policy set), or stand in the config file:
$XDG_CONFIG_HOME/retry/config.toml, ~/.config/retry/config.toml, or what --config or RETRY_CONFIG names. In this order a later one replaces
an earlier one of its name whole. Then come the environment (RETRY_ATTEMPTS, …) and the flags. A run without -p uses the one named default.

Usage:
  retry policy list                   all of them, and where each is from
  retry policy show [NAME] [flags]    what a run would use, as a part of a config file
  retry policy set NAME [flags]       keep one in the journal
  retry policy rm NAME…               remove it from there
  retry policy check [FILE]           every mistake in a config file
  retry policy schema                 a JSON schema of the file, for editors

Example of a config file:
  [policy.deploy]
  attempts = 8
  backoff  = "exp:2s..2m"
  budget   = "30m"
  stop-on  = [2, "SIGSEGV"]
  [[policy.deploy.rule]]              # a busy lock is tried fast, all else backs off
  when    = 75
  backoff = "lock-busy"
`},
	{"policy list", `List the policies by name, with where each is from, and what it hides.

Usage:
  retry policy list [flags]
`},
	{"policy show", `Print a policy as a part of a config file, each value with where it is from. Without a name it is what a run here would use: the
environment and the flags count.

Usage:
  retry policy show [NAME] [flags]

Examples:
  retry policy show zizq -n 8
  retry policy show deploy >>~/.config/retry/config.toml
`},
	{"policy set", `Keep a policy in the journal. It begins with the built-in default, or with the policy that -p names, and replaces one of its name whole.
The environment is no part of it. Tasks that exist keep the policy that they were made with.

Usage:
  retry policy set NAME [flags]

Examples:
  retry policy set deploy -n 8 -b exp:2s..2m -B 30m --stop-on 2
  retry policy set default -p aws -n 10
`},
	{"policy rm", `Remove policies from the journal. Tasks that exist keep the policy that they were made with.

Usage:
  retry policy rm NAME…
`},
	{"policy check", `Read a config file as a run would, but all of it, and say what is wrong: one message a mistake, with its line and the fix.
It exits 1 where there are mistakes, 125 where the file cannot be read.

Usage:
  retry policy check [FILE]
`},
	{"policy schema", `Print a JSON schema of the config file, for editors that complete and check TOML.

Usage:
  retry policy schema
`},
	{"plot", `Draw what policies do to many tasks that fail together: the delay before each retry with the range that jitter gives it, when each task
retries, the load that this makes, and figures to compare. It plays the policy through with the code that runs, and runs nothing.

Usage:
  retry plot [flags] [SPEC[/JITTER]…]

A SPEC is a backoff, a preset, or the name of a policy; a /JITTER after it puts another in place of its own. Without a SPEC it is the
policy that a run here would use: the environment and the flags count. What has no limit of attempts is shown with 9, if --attempts
does not say how many.

Examples:
  retry plot exp:1s..1m                      a curve with its jitter, phase
  retry plot exp:10s/none exp:10s/full       what jitter is good for
  retry plot sidekiq zizq --html both.html   a page with sliders
  retry plot -p deploy -n 12                 a policy of the config file, with more attempts
`},
	{"prune", `Remove finished tasks from the journal. Others can write to it meanwhile. What has not finished stays, and so does a success that
--once remembers.

Usage:
  retry prune [flags]
`},
}

func usageOf(subcommand string) string {
	for _, usage := range usages {
		if usage.name == subcommand {
			return usage.text
		}
	}
	return ""
}

// versionFlag is --version.
type versionFlag struct {
	Version bool
}

// printHelp prints the help of a subcommand.
func printHelp(subcommand string, options kong.HelpOptions, ctx *kong.Context) error {
	if _, err := fmt.Fprint(ctx.Stdout, usageOf(subcommand)); err != nil {
		return err
	}
	describe(subcommand, ctx.Model.Flags)
	return kong.DefaultHelpPrinter(options, ctx)
}
