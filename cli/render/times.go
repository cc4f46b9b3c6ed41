package render

import (
	"fmt"
	"math"
	"time"
)

// Duration writes a duration for people: two units at the most, and no more digits than they can use.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-max(d, -math.MaxInt64))
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return fmt.Sprintf("%.2gms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return trimZero(fmt.Sprintf("%.1f", d.Truncate(100*time.Millisecond).Seconds())) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(d, time.Minute, "m", time.Second, "s")
	case d < 24*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "m")
	}
	return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
}

func trimZero(text string) string {
	if n := len(text) - 2; n > 0 && text[n:] == ".0" {
		return text[:n]
	}
	return text
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

// relative writes a time as seen from now: "in 3m", "2h ago", "now".
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case t.IsZero():
		return ""
	case d >= time.Second:
		return "in " + Duration(d.Truncate(time.Second))
	case d <= -time.Second:
		return Duration(-max(d, -math.MaxInt64).Truncate(time.Second)) + " ago"
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
	return Duration(max(0, now.Sub(t).Truncate(time.Second)))
}

// clock writes a time for people: local, with the date where it is not today's.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
