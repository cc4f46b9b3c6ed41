package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/task"
)

type runCommand struct {
	session.Wrapper
	flags.StreamFlags
	flags.ProcessGroupFlags
	Version        bool   `help:"Print the version."`
	IdempotencyKey string `group:"Running" placeholder:"KEY" help:"What the command finds as RETRY_IDEMPOTENCY_KEY. Default a random one."`
	JSON           bool   `group:"Running" help:"With --dry-run: as JSON."`

	Command []string `kong:"-"`
}

const runUsage = `retry runs a command until it succeeds, writes every attempt down, and picks an interrupted run up.

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
`

func (c *runCommand) Run(p *Process) (int, error) {
	if c.Version {
		_, err := fmt.Fprintf(p.Stdout, "retry %s\n", session.Version())
		return 0, err
	}
	return c.Wrap(&p.Host, c, c.JSON)
}

// Check implements session.Work.
func (c *runCommand) Check(*session.Host) error {
	switch {
	case c.JSON:
		return errors.New("--json goes with --dry-run" +
			"\nhint: the command's own --json follows it: retry -- COMMAND --json")
	case c.Foreground && c.Group:
		return errors.New("--foreground and --group exclude each other\nhint: give one of them")
	case len(c.Command) == 0:
		return errors.New("no command to run" +
			"\nhint: retry -- COMMAND [ARG…], for example retry -n 3 -- curl -fsS https://example.org")
	case isURL(c.Command[0]): // the message leaves the URL out: it may hold a password
		return errors.New("a URL is no command to run\nhint: retry http URL sends a request")
	case c.Command[0] == "":
		return errors.New("the command's name is empty\nhint: a variable that is not set? retry -- COMMAND [ARG…]")
	}
	return nil
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
	if c.IdempotencyKey != "" {
		t.IdempotencyKey = c.IdempotencyKey
	}
	return nil
}

// ExecOptions implements session.Work.
func (c *runCommand) ExecOptions() session.ExecOptions {
	return session.ExecOptions{Group: &c.ProcessGroupFlags}
}
