package render

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// Stamp is a time, and how far it is from now; empty for none.
func Stamp(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return clock(t, now) + " (" + relative(t, now) + ")"
}

// past is a stamp of what is not to come.
func past(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return clock(t, now) + " (" + since(t, now) + ")"
}

// A text of any length may stand in a journal. These are the most characters of one that are drawn; JSON and the logs have all.
const (
	longText = 400
	longLine = 4000 // of what a command wrote, or of an error, which may hold several texts
)

// brief is Escape for a text of any length, where it stands among others.
func brief(txt string) string { return text.Escape(text.Shorten(txt, longText)) }

// atLength is brief for a text that has its own line.
func wholeLine(txt string) string { return text.Escape(text.Shorten(txt, longLine)) }

// Message writes an error and its hints, each line escaped.
func Message(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i := range lines {
		lines[i] = wholeLine(lines[i])
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

// relative writes a time as seen from now: "in 3m", "2h ago", "now".
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case t.IsZero():
		return ""
	case d >= time.Second:
		return "in " + text.Duration(d.Truncate(time.Second))
	case d <= -time.Second:
		return text.Duration(-max(d, -math.MaxInt64).Truncate(time.Second)) + " ago"
	}
	return "now"
}

// since writes a time that has passed as seen from now. To a clock that went back it may lie ahead; that is "now", too.
func since(t, now time.Time) string {
	if t.After(now) {
		return "now"
	}
	return relative(t, now)
}

// agoRoughly is since in one unit, for a table: "2h ago".
func agoRoughly(t, now time.Time) string {
	d := now.Sub(t)
	for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
		if d >= unit {
			return since(now.Add(-d.Truncate(unit)), now)
		}
	}
	return since(t, now)
}

// age is how long ago something was, in whole seconds, and never negative.
func age(t, now time.Time) string {
	return text.Duration(max(0, now.Sub(t).Truncate(time.Second)))
}

// clock writes a time for people: local, with the date where it is not today's.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
