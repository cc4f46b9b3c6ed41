package cli

import (
	"fmt"
	"strings"
)

// group is a subcommand that has subcommands of its own.
type group struct {
	verbs    []string // their names in the order of the help
	commands map[string]func() subcommand
}

// groups are those subcommands, by their first word.
var groups = map[string]group{
	"policy": {[]string{"list", "show", "set", "rm", "check", "schema"}, map[string]func() subcommand{
		"list":   func() subcommand { return &policyListCommand{} },
		"show":   func() subcommand { return &policyShowCommand{} },
		"set":    func() subcommand { return &policySetCommand{} },
		"rm":     func() subcommand { return &policyRemoveCommand{} },
		"check":  func() subcommand { return &policyCheckCommand{} },
		"schema": func() subcommand { return &policySchemaCommand{} },
	}},
	"simulate": {[]string{"lock", "outage"}, map[string]func() subcommand{
		"lock":   func() subcommand { return &simulateLockCommand{} },
		"outage": func() subcommand { return &simulateOutageCommand{} },
	}},
}

// hasVerb reports whether a subcommand of two words is there.
func hasVerb(word, verb string) bool {
	return groups[word].commands[verb] != nil
}

// groupCommand is a group's word with a second word that there is not, or none.
type groupCommand struct {
	word  string
	Words []string `arg:"" optional:"" hidden:""`
}

func (c *groupCommand) run(*Process) (int, error) {
	verbs := groups[c.word].verbs
	all := fmt.Sprintf("retry %s %s; retry %[1]s --help tells more", c.word, strings.Join(verbs, "|"))
	if len(c.Words) == 0 {
		return 0, fmt.Errorf("retry %s needs a word more\nhint: %s", c.word, all)
	}
	hint := "write " + all + "."
	if found := nearest(c.Words[0], verbs); found != "" {
		hint = fmt.Sprintf("did you mean retry %s %s?", c.word, found)
	}
	return 0, fmt.Errorf("retry %s has no %q\nhint: %s To run a program named %[1]s: retry -- %[1]s", c.word, c.Words[0], hint)
}
