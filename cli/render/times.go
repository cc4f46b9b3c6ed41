package render

import (
	"math"
	"time"

	"github.com/10f93571/retry/internal/text"
)

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
