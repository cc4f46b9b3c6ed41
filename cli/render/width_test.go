package render

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/text"
)

func TestCellsOf(t *testing.T) {
	for text, want := range map[string]int{
		"":                        0,
		"plain":                   5,
		"日本語":                     6,
		"한글":                      4,
		"ｆ":                       2, // fullwidth
		"é":                       1,
		"e\u0301":                 1,
		"\u0301":                  0,
		"नि":                      1,
		"👩\u200d👩\u200d👧":         2,
		"👍🏽":                      2,
		"🇩🇪":                      2,
		"🇩":                       2,
		"❤":                       1,
		"❤\ufe0f":                 2, // asked for as an emoji
		"1\ufe0f\u20e3":           2,
		"…±│█⠿×":                  6, // wide in some East Asian fonts only
		"\x1b[1m日本\x1b[m":         4,
		"\x1b[38;5;3mab\x1b[0m c": 4,
		"\t":                      0, // Escape has made it `\t` where it matters, escapeLine spaces
	} {
		if got := cellsOf(text); got != want {
			t.Errorf("%q: got %d cells, want %d", text, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		text  string
		cells int
		tail  string
		want  string
	}{
		{"command", 7, "…", "command"},
		{"command", 6, "…", "comma…"},
		{"command", 6, "", "comman"},
		{"command", 1, "…", "…"},
		{"日本語", 5, "…", "日本…"},
		{"日本語", 4, "…", "日…"},
		{"👩\u200d👩\u200d👧👧", 3, "…", "👩\u200d👩\u200d👧…"},
		{"e\u0301e\u0301", 1, "", "e\u0301"},
		{"1\ufe0f\u20e3", 1, "", ""},
		{"\x1b[31mfailed\x1b[m", 6, "…", "\x1b[31mfailed\x1b[m"},
		{"\x1b[31mfailed\x1b[m", 4, "…", "\x1b[31mfai…\x1b[m"},
		{"\x1b[31mfailed\x1b[m \x1b[32mok\x1b[m", 3, "…", "\x1b[31mfa…\x1b[m\x1b[32m\x1b[m"},
	} {
		if got := truncate(tt.text, tt.cells, tt.tail); got != tt.want {
			t.Errorf("%q to %d with %q: got %q, want %q", tt.text, tt.cells, tt.tail, got, tt.want)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, tt := range []struct {
		text  string
		cells int
		want  []string
	}{
		{"", 4, []string{""}},
		{"one two", 7, []string{"one two"}},
		{"one two", 6, []string{"one", "two"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one\n\ntwo", 7, []string{"one", "", "two"}},
		{"an option is --tasks", 15, []string{"an option is", "--tasks"}},
		{"日本 語", 4, []string{"日本", "語"}},
		{"日本語", 5, []string{"日本", "語"}},
		{"a longest b", 3, []string{"a", "lon", "ges", "t b"}},
		{"a  b", 4, []string{"a  b"}},
		{"日", 1, []string{"日"}},
	} {
		if got := wrapped(tt.text, tt.cells); !slices.Equal(got, tt.want) {
			t.Errorf("%q in %d: got %q, want %q", tt.text, tt.cells, got, tt.want)
		}
	}
}

// Whatever is wrapped fits, and nothing but the spaces of its ends goes.
func TestWrappedKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := text.Escape(rapid.StringOf(rapid.SampledFrom([]rune("a- é日👧\u0301\u200d🇩"))).Draw(t, "text"))
		cells := rapid.IntRange(2, 20).Draw(t, "cells")
		lines := wrapped(text, cells)
		for _, line := range lines {
			if cellsOf(line) > cells {
				t.Errorf("%q has %d cells, more than %d", line, cellsOf(line), cells)
			}
		}
		if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(text, " ", ""); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
