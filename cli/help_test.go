package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// retry --help fits on one screen, and what it says of flags is true.
func TestHelpOfRetry(t *testing.T) {
	p := newTestParser(t, "run", &runCommand{})
	text := p.help(80, false)
	if n := strings.Count(text, "\n"); n > 40 {
		t.Errorf("got %d lines, want at most 40", n)
	}
	if strings.Count(text, "\n") != strings.Count(runUsage, "\n") {
		t.Errorf("got lines that are broken at 80 columns: %s", text)
	}
	for word := range strings.FieldsSeq(text) {
		name, isLong := strings.CutPrefix(strings.Trim(word, ",.:"), "--")
		name, _, _ = strings.Cut(name, "=")
		known := p.known[name] != nil
		for _, c := range commands {
			known = known || newTestParser(t, c.name, c.make()).known[name] != nil
		}
		if isLong && name != "" && !known {
			t.Errorf("no command has a flag --%s", name)
		}
	}
}

// No line of any help is wider than the screen, and --help-all has every flag.
func TestHelpFitsTheScreen(t *testing.T) {
	for _, c := range commands {
		p := newTestParser(t, c.name, c.make())
		for _, width := range []int{40, 60, 80, 110} {
			for _, all := range []bool{false, true} {
				for line := range strings.Lines(p.help(width, all)) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
						t.Errorf("%s at %d columns: got %d in %q", c.name, width, n, line)
					}
				}
			}
		}
		text := p.help(80, true)
		for _, f := range p.Model.Flags {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s: its help lacks --%s", c.name, f.Name)
			}
		}
	}
}

func TestLayout(t *testing.T) {
	tests := []struct {
		name, text, want string
		width            int
	}{
		{"a paragraph", "one two\nthree four\n\nfive\n", "one two three\nfour\n\nfive\n", 13},
		{"an explanation", "  -n, --attempts=N  " + "one two three four five six seven\n",
			"  -n, --attempts=N  one two three four five\n                    six seven\n", 44},
		{"no room for it", "  retry http -o data.csv URL  a download\n", "  retry http -o data.csv URL\n        a download\n", 36},
		{"no explanation", "  retry one two three\n", "  retry one\n    two three\n", 16},
	}
	for _, tt := range tests {
		if got := layout(tt.text, tt.width); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestHelpWidth(t *testing.T) {
	for columns, want := range map[string]int{"": 80, "60": 60, "x": 80, "-1": 80, "300": widestHelp} {
		got := helpWidth(nil, func(name string) string { return map[string]string{"COLUMNS": columns}[name] })
		if got != want {
			t.Errorf("COLUMNS=%q: got %d, want %d", columns, got, want)
		}
	}
}
