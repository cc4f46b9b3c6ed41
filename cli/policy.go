package cli

import (
	"errors"
	"fmt"
	"strings"
)

// policyWord is the subcommand that has subcommands of its own.
const policyWord = "policy"

// policyCommands makes the flags of each, by the second word.
var policyCommands = map[string]func() subcommand{
	"list":   func() subcommand { return &policyListCommand{} },
	"show":   func() subcommand { return &policyShowCommand{} },
	"set":    func() subcommand { return &policySetCommand{} },
	"rm":     func() subcommand { return &policyRemoveCommand{} },
	"check":  func() subcommand { return &policyCheckCommand{} },
	"schema": func() subcommand { return &policySchemaCommand{} },
}

// policyVerbs are their names in the order of the help.
var policyVerbs = []string{"list", "show", "set", "rm", "check", "schema"}

// policyCommand is `retry policy` with a second word that there is not, or none.
type policyCommand struct {
	Words []string `arg:"" optional:"" name:"command" help:"list, show, set, rm, check or schema; each has a --help of its own."`
}

func (c *policyCommand) run(*Process) (int, error) {
	all := "retry policy " + strings.Join(policyVerbs, "|") + "; retry policy --help tells more"
	if len(c.Words) == 0 {
		return 0, errors.New("retry policy needs a word more\nhint: " + all)
	}
	hint := "write " + all + "."
	if found := nearest(c.Words[0], policyVerbs); found != "" {
		hint = "did you mean retry policy " + found + "?"
	}
	return 0, fmt.Errorf("retry policy has no %q\nhint: %s To run a program named policy: retry -- policy", c.Words[0], hint)
}

// warn tells of what does not keep a report from being printed.
func (p *Process) warn(err error) {
	printError(p.Stderr, fmt.Errorf("warning: %w", err))
}
