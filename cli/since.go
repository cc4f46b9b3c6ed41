package cli

import (
	"errors"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// since is a flag's value that is a time gone by.
type since time.Time

// UnmarshalText reads the value of a flag.
func (m *since) UnmarshalText(text []byte) error {
	value, err := parseSince(string(text), time.Now())
	*m = since(value)
	return err
}

// parseSince reads how long ago, the last time that the clock showed 15:04, a day, or RFC 3339.
func parseSince(txt string, now time.Time) (time.Time, error) {
	if clock, err := time.Parse("15:04", txt); err == nil {
		today := func(days int) time.Time {
			return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		}
		if t := today(0); !t.After(now) {
			return t, nil
		}
		return today(-1), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, txt, now.Location()); err == nil {
			return t, nil
		}
	}
	if ago, err := text.ParseDuration(txt); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, errors.New(`"` + txt + "\" is no time\nhint: write 2h or 3d for how long ago, 15:04, 2026-01-31, or RFC 3339 like 2026-01-31T15:04:00+01:00")
}
