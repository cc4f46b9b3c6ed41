package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// verbsOf are the second words of a subcommand that has such, in the order of the help.
func verbsOf(word string) []string {
	switch word {
	case "policy":
		return []string{"list", "show", "set", "rm", "check", "schema"}
	case "simulate":
		return []string{"lock", "outage"}
	}
	return nil
}

// ofTwoWords makes the flags of such a subcommand; nil: there is none.
func ofTwoWords(name string) subcommand {
	switch name {
	case "policy list":
		return &policyListCommand{}
	case "policy show":
		return &policyShowCommand{}
	case "policy set":
		return &policySetCommand{}
	case "policy rm":
		return &policyRemoveCommand{}
	case "policy check":
		return &policyCheckCommand{}
	case "policy schema":
		return &policySchemaCommand{}
	case "simulate lock":
		return &simulateLockCommand{}
	case "simulate outage":
		return &simulateOutageCommand{}
	}
	return nil
}

// hasVerb reports whether a subcommand of two words is there.
func hasVerb(word, verb string) bool {
	return slices.Contains(verbsOf(word), verb)
}

// groupCommand is a group's word with a second word that there is not, or none.
type groupCommand struct {
	word  string
	Words []string `arg:"" optional:"" hidden:""`
}

func (c *groupCommand) run(*Process) (int, error) {
	verbs := verbsOf(c.word)
	all := fmt.Sprintf("retry %s %s; retry %[1]s --help tells more", c.word, strings.Join(verbs, "|"))
	if len(c.Words) == 0 {
		return 0, fmt.Errorf("retry %s needs a word more\nhint: %s", c.word, all)
	}
	hint := "write " + all + "."
	if found := text.Nearest(c.Words[0], verbs); found != "" {
		hint = fmt.Sprintf("did you mean retry %s %s?", c.word, found)
	}
	return 0, fmt.Errorf("retry %s has no %q\nhint: %s To run a program named %[1]s: retry -- %[1]s", c.word, c.Words[0], hint)
}
