package cli

import (
	"strings"
	"testing"
)

// The names are written in three places: the help, what makes the flags, and the verbs that a group lists.
func TestSubcommandsAreNamedAlike(t *testing.T) {
	helped := map[string]bool{}
	for _, usage := range usages {
		helped[usage.name] = true
		if usage.name != "run" && newSubcommand(usage.name) == nil {
			t.Errorf("there is help of %q, which is no subcommand", usage.name)
		}
		word, verb, both := strings.Cut(usage.name, " ")
		if both && !hasVerb(word, verb) {
			t.Errorf("%s does not list %s", word, verb)
		}
		if !isSubcommand(word) {
			t.Errorf("%q is no subcommand", word)
		}
	}
	for _, word := range []string{"policy", "simulate"} {
		for _, verb := range verbsOf(word) {
			if !helped[word+" "+verb] {
				t.Errorf("there is no help of %s %s", word, verb)
			}
		}
	}
}

func TestOtherWordsAreCommands(t *testing.T) {
	for _, word := range []string{"", "true", "policy list", "list", "policy "} {
		if isSubcommand(word) {
			t.Errorf("%q is taken for a subcommand", word)
		}
	}
}
