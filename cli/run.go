package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/task"
)

// runCommand is `retry [run] [flags] [--] COMMAND`.
type runCommand struct {
	session.Wrapper
	flags.StreamFlags
	flags.ProcessGroupFlags
	versionFlag
	IdempotencyKey string
	JSON           bool

	Command []string `kong:"-"`
}

func (c *runCommand) run(p *Process) (int, error) {
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
		return errors.New("--json goes with --dry-run\nhint: the command's own --json follows it: retry -- COMMAND --json")
	case c.Foreground && c.Group:
		return errors.New("--foreground and --group exclude each other\nhint: give one of them")
	case len(c.Command) == 0:
		return errors.New("no command to run\nhint: retry -- COMMAND [ARG…], for example retry -n 3 -- curl -fsS https://example.org")
	case isURL(c.Command[0]): // not the URL, which may hold a password
		return errors.New("a URL is no command to run\nhint: retry http URL sends a request")
	case c.Command[0] == "":
		return errors.New("the command's name is empty\nhint: a variable that is not set? retry -- COMMAND [ARG…]")
	}
	return nil
}

// isURL knows what nobody calls a program.
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

// Means implements session.Work.
func (c *runCommand) Means() session.Means {
	return session.Means{Group: &c.ProcessGroupFlags}
}
