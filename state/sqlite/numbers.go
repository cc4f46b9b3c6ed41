package sqlite

import (
	"database/sql"
	"math"
	"time"
)

// Whatever stands in a journal, what is read from it lies between these, so that nothing that is reckoned with it overflows.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	latest   = time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro() // a day past what RFC 3339 can write: the wait of a task made in 9999
)

// longest is a hundred years: two of them can be added.
const longest = 36_525 * 24 * time.Hour

// fromMicros returns a duration in [0, longest]; 0 for null.
func fromMicros(us integer) time.Duration { return spanOf(us.Int64) }

// spanOf returns so many microseconds, in [0, longest].
func spanOf(us int64) time.Duration {
	return time.Duration(min(max(us, 0), longest.Microseconds())) * time.Microsecond
}

// moment returns a time between the years 1900 and 10000; the zero time for null.
func moment(us integer) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return time.UnixMicro(min(max(us.Int64, earliest), latest))
}

// integer is a column of whole numbers. In a table that is not ours anything may stand; what is no such number counts as null.
type integer struct{ sql.NullInt64 }

// Scan implements sql.Scanner, and never fails.
func (i *integer) Scan(value any) error {
	if i.NullInt64.Scan(value) != nil {
		i.NullInt64 = sql.NullInt64{}
	}
	return nil
}

// span is what SQL reckoned in microseconds, in [0, longest] like fromMicros. SQLite turns a difference or a sum that is beyond 64
// bits into a float.
type span struct{ time.Duration }

// Scan implements sql.Scanner, and never fails.
func (s *span) Scan(value any) error {
	var us integer
	switch v := value.(type) {
	case int64:
		us.Int64 = v
	case float64:
		us.Int64 = int64(math.Max(0, math.Min(v, float64(longest.Microseconds())))) // NaN, which SQLite turns into null, cannot come
	}
	s.Duration = fromMicros(us)
	return nil
}
