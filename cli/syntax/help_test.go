package syntax

import "testing"

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
		got := HelpWidth(nil, func(name string) string { return map[string]string{"COLUMNS": columns}[name] })
		if got != want {
			t.Errorf("COLUMNS=%q: got %d, want %d", columns, got, want)
		}
	}
}
