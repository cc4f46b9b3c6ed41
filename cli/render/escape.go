// Package render writes every line that a person reads about tasks: tables, details, progress, schedules. What a command
// wrote passes through Escape before it reaches a terminal.
package render

import (
	"slices"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// A text of any length may stand in a journal. These are the most characters of one that are drawn; JSON and the logs have all.
const (
	longText = 400
	longLine = 4000 // of what a command wrote, or of an error, which may hold several texts
)

// brief is Escape for a text of any length, where it stands among others.
func brief(txt string) string { return text.Escape(text.Shorten(txt, longText)) }

// atLength is brief for a text that has its own line.
func atLength(txt string) string { return text.Escape(text.Shorten(txt, longLine)) }

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
		few[i] = arg[:text.Offset(arg, most+1)] // one more than is shown: then the line is cut, too
	}
	return text.Shorten(Command(few), most)
}

const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-^"

func quote(arg string) string {
	escaped := text.Escape(arg)
	switch {
	case arg == "":
		return "''"
	case strings.Trim(arg, plainCharacters) == "":
		return arg
	case escaped != arg:
		return "$'" + text.Escape(strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(arg)) + "'"
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
