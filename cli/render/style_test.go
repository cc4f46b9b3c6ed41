package render

import (
	"regexp"
	"testing"
)

var styles = regexp.MustCompile(`\x1b\[\d*m`)

// withoutStyles is what is left where a screen has no colours.
func withoutStyles(text string) string { return styles.ReplaceAllString(text, "") }

func TestPaint(t *testing.T) {
	colourful := Screen{Color: true}
	for _, tt := range []struct {
		screen Screen
		style  style
		text   string
		want   string
	}{
		{colourful, bold, "ID", "\x1b[1mID\x1b[m"},
		{colourful, faint, "│", "\x1b[2m│\x1b[m"},
		{colourful, red, "exit 1", "\x1b[31mexit 1\x1b[m"},
		{colourful, cyan, " ", "\x1b[36m \x1b[m"},
		{colourful, red, "", ""},
		{Screen{}, red, "exit 1", "exit 1"},
	} {
		if got := tt.screen.paint(tt.style, tt.text); got != tt.want {
			t.Errorf("paint(%q, %q) on %+v: got %q, want %q", tt.style, tt.text, tt.screen, got, tt.want)
		}
	}
}

func TestStylesDiffer(t *testing.T) {
	seen := map[style]bool{}
	for _, s := range []style{bold, faint, red, green, yellow, blue, magenta, cyan} {
		if seen[s] {
			t.Errorf("two styles are %q", s)
		}
		seen[s] = true
	}
}
