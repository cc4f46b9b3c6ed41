package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/cli/syntax"
	"github.com/10f93571/retry/task"
)

type runCommand struct {
	session.Wrapper
	flags.StreamFlags
	flags.ProcessGroupFlags
	flags.StopFlags
	Shell          *string `short:"c" group:"Running" placeholder:"STRING" help:"Run this string by sh -c, in place of a command: a pipeline, or whatever else is the shell's."`
	Version        bool    `help:"Print the version."`
	HelpAll        bool    `help:"Print all flags of a run."`
	IdempotencyKey string  `group:"Running" placeholder:"KEY" help:"What the command finds as RETRY_IDEMPOTENCY_KEY. Default a random one."`
	JSON           bool    `group:"Running" help:"With --dry-run or --version: as JSON."`

	Command []string `kong:"-"`
}

const runUsage = `retry runs a command until it succeeds, writes every attempt down, and goes on
after a crash or a reboot.

Usage:
  retry [flags] [--] COMMAND [ARG…]   what follows COMMAND is its own
  retry http [flags] URL              like curl; retry grpc makes a call
  retry wait HOST:PORT|URL|FILE       until it is there; -t 5m (1m); --gone

Flags:
  -n, --attempts=N      all attempts with the first (5); 0 = no limit
  -b, --backoff=SPEC    waits: 2s, list:1s,5s,1m, exp:2s..5m; default exp:1s..1m
  -c, --shell=STRING    run a string by sh -c: retry -c 'a | b'
  -t, --timeout=TIME    stop an attempt that takes longer
  -B, --budget=TIME     for everything together, waits included
      --retry-on=LIST   only these: 1,75,timeout, or 'stderr matches "busy"'
      --output=failure  show what the command wrote only if it failed for good
      --capture=stderr  keep the end of its stderr: retry logs shows it
  -q, --quiet           print no lines of retry's own
      --id=NAME         a name: to find the run, and to continue it if cut off
  All flags: retry --help-all. Those of a command: retry COMMAND --help

Commands:
  retry add COMMAND     queue it (--in 10m) for a retry worker to carry
  retry serve           an HTTP API to the queue, with a worker; retry token
  retry status [TASK]   what runs, waits or failed; one task in detail
  retry logs TASK       what it wrote, where --capture or --output kept that
  retry resume TASK     go on with what was cut off; --all: after a reboot
  retry requeue TASK    try again what failed for good; --run: right here
  retry cancel TASK     never go on with it
  retry stats           what fails, and how often; retry metrics is for monitors
  retry doctor          what is wrong with the journal; retry prune shrinks it
  retry policy          named policies; retry plot and retry simulate show one
  retry completion      for bash, zsh, fish; retry version tells the build

Examples:
  retry -n 5 -b 2s -- go test ./...                       a flaky test
  retry wait -t 2m localhost:5432 && ./migrate            a service that starts
  retry http -fT backup.tgz https://example.org/backups/  upload a file
  0 3 * * * retry -q --output failure --id nightly ./job  cron: mail on failure
  @reboot retry resume -q --all                           go on after a reboot
`

// runUsageAll is what --help-all prints above the flags.
const runUsageAll = `Run a command until it succeeds, or until the policy says that it will not.
Its stdin, stdout, stderr and exit status are passed on.

Usage:
  retry [flags] [--] COMMAND [ARG…]

Examples:
  retry -- ./deploy.sh                           five attempts, 1 s doubling to a minute between them
  retry -n 8 -b exp:2s..2m -B 30m -- rsync …     a policy of your own
  retry -n 5 -b lock-busy --retry-on 75 -- job   only a busy lock is worth another attempt
  retry -p sidekiq --dry-run                     the schedule of a policy; nothing runs

Times are like 90s, 5min, 1h30, 2d; a bare number is seconds. Flags have variables: --kill-after is RETRY_KILL_AFTER.
`

func (c *runCommand) Run(p *Process) (int, error) {
	if c.Version {
		return 0, p.printVersion(c.JSON)
	}
	if c.HelpAll {
		parser, err := p.newParser("run", c)
		if err == nil {
			_, err = io.WriteString(p.Stdout, parser.Help(syntax.HelpWidth(p.Stdout, p.Getenv), true))
		}
		return 0, err
	}
	code, err := c.Wrap(&p.Host, c, c.JSON)
	if err == nil && c.NotFound() && !c.Quiet && c.LogFormat == "text" {
		if hint := c.meant(); hint != "" {
			fmt.Fprintf(p.Stderr, "hint: %s\n", hint)
		}
	}
	return code, err
}

// Check implements session.Work.
func (c *runCommand) Check(*session.Host) error {
	switch {
	case c.JSON:
		return errors.New("--json goes with --dry-run" +
			"\nhint: the command's own --json follows it: retry -- COMMAND --json")
	case c.Foreground && c.Group:
		return errors.New("--foreground and --group exclude each other\nhint: give one of them")
	case c.Shell != nil && len(c.Command) > 0:
		return errors.New("-c takes all of it as one string, and words follow it" +
			"\nhint: quote it: retry -c 'a | b'; a command that needs no shell stands alone: retry -- COMMAND")
	case c.Shell != nil && strings.TrimSpace(*c.Shell) == "":
		return errors.New("-c is empty\nhint: a variable that is not set?")
	case c.Shell != nil:
		c.Command = []string{"sh", "-c", *c.Shell}
	case len(c.Command) == 0:
		return errors.New("no command to run" +
			"\nhint: retry -- COMMAND [ARG…], for example retry -n 3 -- curl -fsS https://example.org")
	case isURL(c.Command[0]): // the message leaves the URL out: it may hold a password
		return errors.New("a URL is no command to run\nhint: retry http URL sends a request")
	case c.Command[0] == "":
		return errors.New("the command's name is empty\nhint: a variable that is not set? retry -- COMMAND [ARG…]")
	}
	return c.CheckConditions(task.KindCommand)
}

// isURL reports whether the name of a program is a URL in fact.
func isURL(word string) bool {
	scheme, _, found := strings.Cut(strings.ToLower(word), "://")
	return found && (scheme == "http" || scheme == "https")
}

// Fill implements session.Work.
func (c *runCommand) Fill(_ *session.Host, t *task.Task) error {
	t.Kind, t.Command = task.KindCommand, c.Command
	t.Options = c.StreamFlags.Over(t.Options)
	t.Options.Signal = string(c.Signal)
	t.IdempotencyKey = c.IdempotencyKey
	return nil
}

// Read implements session.Work. What a command reads is its own.
func (c *runCommand) Read(*session.Host, *task.Task, *task.Source) error { return nil }

// ExecOptions implements session.Work.
func (c *runCommand) ExecOptions() session.ExecOptions {
	return session.ExecOptions{Group: &c.ProcessGroupFlags}
}
