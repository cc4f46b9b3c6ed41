// Package text holds what several packages do with text that people write or read: durations, numbers, the nearest
// known word to a mistyped one, and escapes for what a terminal must not interpret.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape makes text safe for a terminal: control characters, invisible and bidirectional format characters and invalid
// UTF-8 are shown as \x1b, \u202e and the like.
func Escape(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && isInvalid(text[i:]):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case Printable(r):
			b.WriteRune(r)
		default:
			b.WriteString(escapeRune(r))
		}
	}
	return b.String()
}

func isInvalid(text string) bool {
	_, size := utf8.DecodeRuneInString(text)
	return size == 1
}

// Printable reports whether a terminal just draws the character. unicode.IsPrint leaves out C0, C1, format characters
// such as U+202E, and every space but the plain one.
func Printable(r rune) bool {
	return unicode.IsPrint(r)
}

func escapeRune(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Shorten cuts a text that is too long to be read after so many characters, and puts an ellipsis there.
func Shorten(text string, most int) string {
	if end := Offset(text, most); end < len(text) {
		return text[:end] + "…"
	}
	return text
}

// Offset returns the index in bytes where the first so many characters of a text end.
func Offset(text string, characters int) int {
	for i := range text {
		if characters--; characters < 0 {
			return i
		}
	}
	return len(text)
}

// EscapeJSON writes the characters of JSON that are not safe as \u009b and the like. They can only stand in strings.
func EscapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case Printable(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
