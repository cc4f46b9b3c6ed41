package flags

import (
	"fmt"
	"time"

	"github.com/docker/go-units"

	"github.com/10f93571/retry/internal/text"
)

// Duration is a flag's value such as 1h30m, 2d or 45 (seconds).
type Duration time.Duration

// UnmarshalText reads the value of a flag.
func (d *Duration) UnmarshalText(b []byte) error {
	value, err := text.ParseDuration(string(b))
	*d = Duration(value)
	return err
}

// Count is a flag's value that is a whole number of 0 or more.
type Count int

// MaxCount is larger than anybody needs, and small enough that sums do not overflow.
const MaxCount = 1_000_000_000

// UnmarshalText reads the value of a flag.
func (c *Count) UnmarshalText(b []byte) error {
	var n int
	if _, err := fmt.Sscanf(string(b)+"\n", "%d\n", &n); err != nil || n < 0 || n > MaxCount {
		return fmt.Errorf("invalid number %q: want a whole number from 0 to %d", b, MaxCount)
	}
	*c = Count(n)
	return nil
}

// Moment is a flag's value that is a time to come: RFC 3339, or 15:04 for the next time the clock shows that.
type Moment time.Time

// UnmarshalText reads the value of a flag.
func (m *Moment) UnmarshalText(b []byte) error {
	value, err := parseMoment(string(b), time.Now())
	*m = Moment(value)
	return err
}

func parseMoment(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	clock, err := time.Parse("15:04", s)
	if err != nil {
		return time.Time{}, fmt.Errorf("invalid time %q"+
			"\nhint: write 23:30, or RFC 3339 like 2026-01-02T23:30:00+01:00", s)
	}
	t := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
	if t.Before(now) {
		t = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0, now.Location())
	}
	return t, nil
}

// Since is a flag's value that is a time in the past.
type Since time.Time

// UnmarshalText reads the value of a flag.
func (m *Since) UnmarshalText(b []byte) error {
	value, err := parseSince(string(b), time.Now())
	*m = Since(value)
	return err
}

// parseSince reads how long ago, the last time that the clock showed 15:04, a day, or RFC 3339.
func parseSince(s string, now time.Time) (time.Time, error) {
	if clock, err := time.Parse("15:04", s); err == nil {
		today := func(days int) time.Time {
			return time.Date(now.Year(), now.Month(), now.Day()+days, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		}
		if t := today(0); !t.After(now) {
			return t, nil
		}
		return today(-1), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	if ago, err := text.ParseDuration(s); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("invalid time %q"+
		"\nhint: write 2h or 3d for how long ago, 15:04, 2026-01-31, or RFC 3339 like 2026-01-31T15:04:00+01:00", s)
}

// Size is a flag's value that is a number of bytes: 2GiB, 512M, 4096.
type Size int64

// UnmarshalText reads the value of a flag.
func (s *Size) UnmarshalText(b []byte) error {
	n, err := units.RAMInBytes(string(b))
	if err != nil || n < 0 {
		return fmt.Errorf("invalid size %q\nhint: write it like 512M, 2GiB, or a number of bytes", b)
	}
	*s = Size(n)
	return nil
}

// String writes the size as a flag accepts it.
func (s Size) String() string {
	return units.BytesSize(float64(s))
}
