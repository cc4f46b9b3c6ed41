package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain ünï 日本 🙂", "plain ünï 日本 🙂"},
		{"\x1b[31mred", `\x1b[31mred`},
		{"a\nb\tc\rd\be\x07", `a\nb\tc\rd\x08e\x07`},
		{"\u202eevil\u2066", `\u202eevil\u2066`},
		{"\u009b31m", `\u009b31m`}, // CSI in one character
		{"\xff\xfe", `\xff\xfe`},
		{"\u200b\ufeff\u00ad", `\u200b\ufeff\u00ad`},
		{"\U000e0001", `\U000e0001`},
		{"\x7f", `\x7f`},
		{"\u2028", `\u2028`},
		{"\ufffd", "\ufffd"}, // the character itself is no error
	}
	for _, tt := range tests {
		if got := Escape(tt.in); got != tt.want {
			t.Errorf("Escape(%q): got %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"\x1b]0;title\x07", "\xc3\x28", "\u202e", "ok", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := Escape(text)
		if !utf8.ValidString(escaped) || strings.ContainsFunc(escaped, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Escape(%q): got %q, want printable characters", text, escaped)
		}
	})
}
