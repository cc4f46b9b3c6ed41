// Package render writes every line that a person reads about tasks: tables, details, progress, schedules. What a command
// wrote passes through Escape before it reaches a terminal.
package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text safe for a terminal: control characters, invisible and bidirectional format characters and invalid UTF-8
// are shown as \x1b, \u202e and the like.
func Escape(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && isInvalid(text[i:]):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case safe(r):
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

// safe reports whether a terminal just draws the character. unicode.IsPrint leaves out C0, C1, format characters such as
// U+202E, and every space but the plain one.
func safe(r rune) bool {
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

// A text of any length may stand in a journal. These are the most characters of one that are drawn; JSON and the logs have all.
const (
	longText = 400
	longLine = 4000 // of what a command wrote, or of an error, which may hold several texts
)

// beginning cuts a text that is too long to be read, with an ellipsis.
func beginning(text string, most int) string {
	if end := offset(text, most); end < len(text) {
		return text[:end] + "…"
	}
	return text
}

// offset is where the first so many characters of a text end.
func offset(text string, characters int) int {
	for i := range text {
		if characters--; characters < 0 {
			return i
		}
	}
	return len(text)
}

// brief is Escape for a text of any length, where it stands among others.
func brief(text string) string { return Escape(beginning(text, longText)) }

// atLength is brief for a text that has its own line.
func atLength(text string) string { return Escape(beginning(text, longLine)) }

// Message writes an error and its hints, each line escaped.
func Message(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i := range lines {
		lines[i] = atLength(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Command writes an argument vector as a line that a shell (bash, zsh, ksh) would read back to it.
func Command(argv []string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = quote(arg)
	}
	return strings.Join(quoted, " ")
}

// briefCommand is the beginning of Command, enough to tell which it is.
func briefCommand(argv []string) string { return commandUpTo(argv, longText) }

// commandUpTo quotes no more of a command than it shows.
func commandUpTo(argv []string, most int) string {
	few := slices.Clone(argv[:min(len(argv), most+1)])
	for i, arg := range few {
		few[i] = arg[:offset(arg, most+1)] // one more than is shown: then the line is cut, too
	}
	return beginning(Command(few), most)
}

const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-^"

func quote(arg string) string {
	escaped := Escape(arg)
	switch {
	case arg == "":
		return "''"
	case strings.Trim(arg, plainCharacters) == "":
		return arg
	case escaped != arg:
		return "$'" + Escape(strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(arg)) + "'"
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
