package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
)

const policyUsage = `Policies by name, for retry -p NAME. They are built in, or kept in the journal (retry policy set), or stand in the config file:
$XDG_CONFIG_HOME/retry/config.toml, ~/.config/retry/config.toml, or what --config or RETRY_CONFIG names; /etc/retry/config.toml where a user
has none. In this order a later one replaces an earlier one of its name whole. Then come the environment (RETRY_ATTEMPTS, …) and the flags. A run without -p uses the one named default.

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
`

type policyListCommand struct {
	flags.StateFlag
	flags.ConfigFlag
	JSON bool `help:"Print JSON; its fields are stable."`
}

const policyListUsage = `List the policies by name, with where each is from, and what it hides.

Usage:
  retry policy list [flags]

Example:
  retry policy list --config ./config.toml    also those of a file that is not the usual one
`

func (c *policyListCommand) Run(p *Process) (int, error) {
	file, err := policies.Load(&c.ConfigFlag, p.Getenv, p.warn)
	if err != nil {
		return 0, err
	}
	file.Warn("", p.warn)
	var stored []state.StoredPolicy
	err = p.withJournal(session.ReadJournal, c.State, func(ctx context.Context, journal state.Store) (err error) {
		stored, err = journal.Policies(ctx)
		return err
	})
	if err != nil {
		p.warn(err)
	}
	rows := policies.Rows(stored, file)
	if c.JSON {
		return 0, render.PoliciesJSON(p.Stdout, rows)
	}
	return 0, render.Policies(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), rows)
}

type policyShowCommand struct {
	flags.PolicyFlags
	flags.ConfigFlag
	flags.StateFlag
	JSON bool    `help:"Print JSON; its fields are stable."`
	Name *string `arg:"" optional:"" help:"The policy; else what a run here would use."`
}

const policyShowUsage = `Print a policy as a part of a config file, each value with where it is from. Without a name it is what a run here would use: the
environment and the flags count.

Usage:
  retry policy show [NAME] [flags]

Examples:
  retry policy show zizq -n 8
  retry policy show deploy >>~/.config/retry/config.toml
`

func (c *policyShowCommand) Run(p *Process) (int, error) {
	if c.Name != nil {
		if c.Policy != nil {
			return 0, errors.New("a name and --policy say the same thing\nhint: give one of them")
		}
		c.Policy = c.Name
	}
	choice, err := policies.Choose(&c.PolicyFlags, &c.ConfigFlag, p.Getenv, p.warn)
	if err != nil {
		return 0, err
	}
	if err := session.AskReader(context.Background(), &p.Host, choice, c.State, p.warn); err != nil {
		return 0, err
	}
	policy, err := choice.Resolve(time.Now())
	if err != nil {
		return 0, err
	}
	shown := choice.Explain(&policy)
	if c.JSON {
		return 0, render.PolicyShownJSON(p.Stdout, &policy, shown)
	}
	return 0, render.PolicyTOML(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), shown)
}

type policyCheckCommand struct {
	flags.ConfigFlag
	File *string `arg:"" optional:"" help:"The file, - for stdin; else the config file."`
}

const policyCheckUsage = `Read a config file as a run would, but all of it, and say what is wrong: one message a mistake, with its line and the fix.
It exits 1 where there are mistakes, 125 where the file cannot be read.

Usage:
  retry policy check [FILE]

Examples:
  retry policy check                              the file that runs here read
  ssh other retry policy show | retry policy check -
`

// exitMistakes is the status of a check that found something, as linters have it.
const exitMistakes = 1

func (c *policyCheckCommand) Run(p *Process) (int, error) {
	if c.File != nil {
		if c.Config != nil {
			return 0, errors.New("FILE and --config say the same thing\nhint: give one of them")
		}
		c.Config = c.File
	}
	path, named := c.Path(p.Getenv)
	if path == "" {
		return 0, errors.New("there is no config file to check\nhint: retry policy check FILE")
	}
	file, mistakes, err := c.read(p, path)
	switch {
	case errors.Is(err, policies.ErrAbsent) && !named:
		return 0, text.WithHint(err, "retry policy check FILE names another one; without a file retry uses the policies of retry policy list")
	case err != nil:
		return 0, text.WithHint(err, "retry policy check FILE")
	}
	if mistakes = file.Check(mistakes); len(mistakes) == 0 {
		_, err := fmt.Fprintf(p.Stdout, "%s: %s, no mistakes\n", text.Escape(path), text.Count(len(file.Names()), "policy"))
		return 0, err
	}
	for _, m := range mistakes {
		if _, err := fmt.Fprintln(p.Stdout, render.Message(m)); err != nil {
			return 0, err
		}
	}
	_, err = fmt.Fprintf(p.Stdout, "%s: %s\n", text.Escape(path), text.Count(len(mistakes), "mistake"))
	return exitMistakes, err
}

// read reads the file, or stdin as in ssh HOST retry policy show NAME | retry policy check -.
func (c *policyCheckCommand) read(p *Process, path string) (*policies.File, []*policies.Mistake, error) {
	if c.File != nil && path == "-" {
		return policies.ReadFrom(path, p.Stdin)
	}
	return policies.Read(path)
}

type policySchemaCommand struct{}

const policySchemaUsage = `Print a JSON schema of the config file, for editors that complete and check TOML.

Usage:
  retry policy schema

Example:
  retry policy schema >policy.schema.json
`

func (c *policySchemaCommand) Run(p *Process) (int, error) {
	text, err := policies.Schema()
	if err != nil {
		return 0, err
	}
	_, err = p.Stdout.Write(text)
	return 0, err
}
