package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"
	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/text"
)

func TestPaint(t *testing.T) {
	color := Screen{Color: true}
	for _, tt := range []struct {
		screen Screen
		style  lipgloss.Style
		text   string
		want   string
	}{
		{screen: color, style: Bold, text: "ID", want: "\x1b[1mID\x1b[0m"},
		{screen: color, style: Faint, text: "│", want: "\x1b[2m│\x1b[0m"},
		{screen: color, style: Red, text: "exit 1", want: "\x1b[31mexit 1\x1b[0m"},
		{screen: color, style: Cyan, text: " ", want: "\x1b[36m \x1b[0m"},
		{screen: color, style: Red, text: "", want: ""},
		{screen: Screen{}, style: Red, text: "exit 1", want: "exit 1"},
	} {
		if got := tt.screen.Paint(tt.style, tt.text); got != tt.want {
			t.Errorf("%q on %+v: got %q, want %q", tt.text, tt.screen, got, tt.want)
		}
	}
}

func TestStylesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, style := range []lipgloss.Style{Bold, Faint, Red, Green, Yellow, Blue, Magenta, Cyan} {
		text := Screen{Color: true}.Paint(style, "x")
		if seen[text] {
			t.Errorf("got %q from two styles, want them to differ", text)
		}
		seen[text] = true
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{text: "command", width: 0, want: "command"},
		{text: "command", width: 7, want: "command"},
		{text: "command", width: 6, want: "comma…"},
		{text: "command", width: 1, want: "…"},
		{text: "日本語", width: 5, want: "日本…"},
		{text: "日本語", width: 4, want: "日…"},
		{text: "👩\u200d👩\u200d👧👧", width: 3, want: "👩\u200d👩\u200d👧…"},
		{text: "e\u0301e\u0301", width: 2, want: "e\u0301e\u0301"},
		{text: "\x1b[31mfailed\x1b[m", width: 6, want: "\x1b[31mfailed\x1b[m"},
		{text: "\x1b[31mfailed\x1b[m", width: 4, want: "\x1b[31mfai…\x1b[m"},
		{text: "\x1b[31mfailed\x1b[m \x1b[32mok\x1b[m", width: 3, want: "\x1b[31mfa…\x1b[m\x1b[32m\x1b[m"},
	} {
		if got := (Screen{Width: tt.width}).cut(tt.text); got != tt.want {
			t.Errorf("%q to %d cells: got %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, tt := range []struct {
		text  string
		cells int
		want  []string
	}{
		{text: "", cells: 4, want: []string{""}},
		{text: "one two", cells: 7, want: []string{"one two"}},
		{text: "one two", cells: 6, want: []string{"one", "two"}},
		{text: "one two three", cells: 7, want: []string{"one two", "three"}},
		{text: "one\n\ntwo", cells: 7, want: []string{"one", "", "two"}},
		{text: "an option is --tasks", cells: 15, want: []string{"an option is", "--tasks"}},
		{text: "日本 語", cells: 4, want: []string{"日本", "語"}},
		{text: "日本語", cells: 5, want: []string{"日本", "語"}},
		{text: "a longest b", cells: 3, want: []string{"a", "lon", "ges", "t b"}},
		{text: "is dns,tls,any", cells: 9, want: []string{"is", "dns,tls,", "any"}},
		{text: "a  b", cells: 4, want: []string{"a  b"}},
		{text: "日", cells: 1, want: []string{"日"}},
	} {
		if got := Wrapped(tt.text, tt.cells); !slices.Equal(got, tt.want) {
			t.Errorf("%q in %d cells: got %q, want %q", tt.text, tt.cells, got, tt.want)
		}
	}
}

// Whatever is wrapped fits, and nothing but the spaces of its ends goes.
func TestWrappedKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := text.Escape(rapid.StringOf(rapid.SampledFrom([]rune("a- é日👧\u0301\u200d🇩"))).Draw(t, "text"))
		cells := rapid.IntRange(2, 20).Draw(t, "cells")
		lines := Wrapped(text, cells)
		for _, line := range lines {
			if got := lipgloss.Width(line); got > cells {
				t.Errorf("%q: got %d cells, want at most %d", line, got, cells)
			}
		}
		if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(text, " ", ""); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A cell of a table keeps its line and its text, however the terminal draws its characters.
func TestTableAligns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		screen Screen
		rows   [][]string
		want   string
	}{
		{name: "plain", rows: [][]string{{"A", "B", ""}, {"one", "2", "x"}, {"1", "", ""}}, want: "A    B\none  2  x\n1\n"},
		{name: "wide", rows: [][]string{{"A", "B"}, {"日本語", "x"}, {"e\u0301", "y"}},
			want: "A       B\n日本語  x\ne\u0301       y\n"},
		{name: "a keycap", rows: [][]string{{"A"}, {"1\ufe0f\u20e3 and more text"}},
			want: "A\n1\ufe0f\u20e3 and more text\n"},
		{name: "cut", screen: Screen{Width: 8}, rows: [][]string{{"A", "B"}, {"one", "two three"}},
			want: "A    B\none  tw…\n"},
		{name: "coloured", screen: Screen{Color: true}, rows: [][]string{{"A", "B"}, {"\x1b[31mone\x1b[0m", "2"}},
			want: "\x1b[1mA\x1b[0m    \x1b[1mB\x1b[0m\n\x1b[31mone\x1b[0m  2\n"},
		{name: "titles alone", rows: [][]string{{"A", "B"}}, want: "A  B\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := tt.screen.WriteRows(&b, tt.rows); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != tt.want {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

// A frame begins in the corner and clears what the one before may have left; it is no higher and no wider than its
// screen.
func TestFrame(t *testing.T) {
	const text = "one\nfar too long\n\nlast\n"
	tests := []struct {
		height int
		want   string
	}{
		{9, "\x1b[H\x1b[Kone\r\n\x1b[Kfar t…\r\n\x1b[K\r\n\x1b[Klast\r\n\x1b[J"},
		{2, "\x1b[H\x1b[Kone\r\n\x1b[Kfar t…\r\n\x1b[J"},
	}
	for _, tt := range tests {
		if got := (Screen{Width: 6, Height: tt.height}).Frame(text); got != tt.want {
			t.Errorf("height %d: got %q", tt.height, got)
		}
	}
}
