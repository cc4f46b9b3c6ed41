package cli

import (
	"errors"
	"fmt"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/internal/text"
)

// policyCheckCommand is `retry policy check [FILE]`.
type policyCheckCommand struct {
	flags.ConfigFlag
	File *string `arg:"" optional:"" help:"The file, - for stdin; else the config file."`
}

func (*policyCheckCommand) usage() string {
	return `Read a config file as a run would, but all of it, and say what is wrong: one message a mistake, with its line and the fix.
It exits 1 where there are mistakes, 125 where the file cannot be read.

Usage:
  retry policy check [FILE]
`
}

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

// read takes a policy also from a pipe, as in ssh HOST retry policy show NAME | retry policy check -.
func (c *policyCheckCommand) read(p *Process, path string) (*policies.File, []*policies.Mistake, error) {
	if c.File != nil && path == "-" {
		return policies.ReadFrom(path, p.Stdin)
	}
	return policies.Read(path)
}
