// Package wire is how the API writes tasks, attempts and policies as JSON, and how it reads them. It knows no store:
// what a task needs from outside, such as policies by name, is handed in with a Decoder.
package wire

import (
	"time"
)

// ms is a time as the API writes it: milliseconds since 1970 UTC. The zero time is null.
type ms time.Time

// MarshalJSON implements json.Marshaler.
func (m ms) MarshalJSON() ([]byte, error) {
	t := time.Time(m)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return appendInt(nil, t.UnixMilli()), nil
}
