package render

import (
	"math"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Stamp writes a time, and its distance from now; it is empty for no time.
func Stamp(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return clock(t, now) + " (" + relative(t, now) + ")"
}

// stampPast is Stamp for a time that has passed.
func stampPast(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return clock(t, now) + " (" + sincePast(t, now) + ")"
}

// Texts in a journal may have any length. These are the most characters of one that people are shown; JSON and the logs
// have all.
const (
	longText = 400
	longLine = 4000 // of output, or of an error, which may hold several texts
)

// brief escapes and shortens a text that shares its line with others.
func brief(txt string) string { return text.Escape(text.Shorten(txt, longText)) }

// wholeLine escapes and shortens a text that has a line of its own.
func wholeLine(txt string) string { return text.Escape(text.Shorten(txt, longLine)) }

// Message writes an error and its hints, each line escaped.
func Message(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i := range lines {
		lines[i] = wholeLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Command writes an argument vector as a line from which a shell (bash, zsh, ksh) would read the same arguments.
func Command(argv []string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = quote(arg)
	}
	return strings.Join(quoted, " ")
}

// commandUpTo writes the first characters of a command.
func commandUpTo(argv []string, most int) string { return text.Shorten(Command(argv), most) }

// Title is what a task does in one line: its command, or its request with the secrets masked.
func Title(t *task.Task) string { return titleUpTo(t, longLine) }

// titleUpTo writes the first characters of a title, at most as many as are shown.
func titleUpTo(t *task.Task, most int) string {
	switch {
	case t.Target != nil:
		return text.Escape(text.Shorten(text.MaskPattern(t.Target.Title(), t.Options.Mask), most))
	case t.Kind != task.KindCommand:
		return "a request that cannot be read"
	}
	return commandUpTo(t.ShownCommand(), most)
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

// sincePast is relative for a time that has passed. If the clock was set back, such a time may be in the future: that
// is "now", too.
func sincePast(t, now time.Time) string {
	if t.After(now) {
		return "now"
	}
	return relative(t, now)
}

// agoRoughly is sincePast in one unit, for a table: "2h ago".
func agoRoughly(t, now time.Time) string {
	d := now.Sub(t)
	for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
		if d >= unit {
			return sincePast(now.Add(-d.Truncate(unit)), now)
		}
	}
	return sincePast(t, now)
}

// ageRoughly is age in one unit, for a table: "2h".
func ageRoughly(t, now time.Time) string {
	if now.Sub(t) < time.Second {
		return "0s"
	}
	return strings.TrimSuffix(agoRoughly(t, now), " ago")
}

// age is how long ago something was, in whole seconds, and never negative.
func age(t, now time.Time) string {
	return text.Duration(max(0, now.Sub(t).Truncate(time.Second)))
}

// clock writes a local time, with the date unless it is today's.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
