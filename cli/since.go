package cli

import (
	"fmt"
	"time"

	"github.com/10f93571/retry/backoff"
)

// since is a flag's value that is a time gone by: a length such as 2h or 3d until now, 15:04 for the last time the clock showed
// that, a date for its beginning, or RFC 3339.
type since time.Time

// UnmarshalText reads the value of a flag.
func (s *since) UnmarshalText(text []byte) error {
	value, err := parseSince(string(text), time.Now())
	*s = since(value)
	return err
}

func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := backoff.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation("2006-01-02", text, now.Location()); err == nil {
		return t, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no time\nhint: write 2h, 3d, 15:04, 2026-11-20, or RFC 3339 like 2026-01-02T23:30:00+01:00", text)
	}
	t := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
	if t.After(now) {
		t = time.Date(now.Year(), now.Month(), now.Day()-1, clock.Hour(), clock.Minute(), 0, 0, now.Location())
	}
	return t, nil
}
