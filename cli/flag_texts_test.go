package cli

import (
	"strings"
	"testing"

	"github.com/10f93571/retry/cli/flags"
)

// Every flag of the two has a text, and every text a flag.
func TestFlagTexts(t *testing.T) {
	used := map[*flags.FlagText]bool{}
	for name, command := range map[string]subcommand{"run": &runCommand{}, "http": &httpCommand{}} {
		parser, err := testProcess().newParser(name, command)
		if err != nil {
			t.Fatal(err)
		}
		describe(name, parser.Model.Flags)
		for _, f := range parser.Model.Flags {
			used[flags.TextOf(name, f.Name)] = true
			if f.Help == "" && !f.Hidden {
				t.Errorf("%s: nothing is said of --%s", name, f.Name)
			}
			if !f.IsBool() && f.PlaceHolder == "" {
				t.Errorf("%s: nobody knows what --%s takes", name, f.Name)
			}
		}
	}
	for name, text := range flags.FlagTexts() {
		if !used[text] {
			t.Errorf("there is no flag %s", name)
		}
		if strings.TrimSpace(text.Help) != text.Help || text.Help == "" {
			t.Errorf("%s: %q", name, text.Help)
		}
	}
}

func TestTextOf(t *testing.T) {
	if run, http := flags.TextOf("run", "capture"), flags.TextOf("http", "capture"); run.Placeholder != "none|stderr|both" || http.Placeholder != "none|errors|all" {
		t.Errorf("%+v, %+v", run, http)
	}
	if flags.TextOf("status", "watch") != nil {
		t.Error("a subcommand that has its own texts got others")
	}
}
