package cli

import (
	"fmt"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// groupCommand is the first word of commands of two words, with a second word that no command has, or without one.
type groupCommand struct {
	Words []string `arg:"" optional:"" hidden:""`

	word, text string
}

func (c *groupCommand) usage() string {
	return c.text
}

func (c *groupCommand) Run(*Process) (int, error) {
	var verbs []string
	for _, other := range commands {
		if verb, ok := strings.CutPrefix(other.name, c.word+" "); ok {
			verbs = append(verbs, verb)
		}
	}
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

const policyUsage = `Policies by name, for retry -p NAME. They are built in, or kept in the journal (retry policy set), or stand in the config file:
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
`

const simulateUsage = `Let many clients of a policy loose on a lock, or on a service that is down and comes back, and see what becomes of them. Several
SPECs stand side by side; without one it is the policy that a run here would use.

Usage:
  retry simulate lock [flags] [SPEC[/JITTER]…]
  retry simulate outage [flags] [SPEC[/JITTER]…]
`
