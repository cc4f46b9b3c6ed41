package cli

import (
	"strings"
	"testing"
)

// Every flag of the two has a text, and every text a flag.
func TestFlagTexts(t *testing.T) {
	used := map[*flagText]bool{}
	for name, command := range map[string]subcommand{"run": &runCommand{}, "http": &httpCommand{}} {
		parser, err := testProcess().newParser(name, command)
		if err != nil {
			t.Fatal(err)
		}
		describe(name, parser.Model.Flags)
		for _, f := range parser.Model.Flags {
			used[textOf(name, f.Name)] = true
			if f.Help == "" && !f.Hidden {
				t.Errorf("%s: nothing is said of --%s", name, f.Name)
			}
			if !f.IsBool() && f.PlaceHolder == "" {
				t.Errorf("%s: nobody knows what --%s takes", name, f.Name)
			}
		}
	}
	for name, text := range flagTexts() {
		if !used[text] {
			t.Errorf("there is no flag %s", name)
		}
		if strings.TrimSpace(text.help) != text.help || text.help == "" {
			t.Errorf("%s: %q", name, text.help)
		}
	}
}

func TestTextOf(t *testing.T) {
	if run, http := textOf("run", "capture"), textOf("http", "capture"); run.placeholder != "none|stderr|both" || http.placeholder != "none|errors|all" {
		t.Errorf("%+v, %+v", run, http)
	}
	if textOf("status", "watch") != nil {
		t.Error("a subcommand that has its own texts got others")
	}
}
