package httpexec

import (
	"strings"
	"time"
)

// rateLimit reads the header of draft-ietf-httpapi-ratelimit-headers: "burst";r=0;t=5, "daily";r=90;t=3600. An older draft wrote
// limit=10, remaining=0, reset=5. The delay is the longest of the limits with nothing remaining.
func rateLimit(text string) (delay time.Duration, nothing bool) {
	var older limit
	for member := range splitOutsideQuotes(text, ',') {
		var l limit
		for parameter := range splitOutsideQuotes(member, ';') {
			key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
			switch strings.ToLower(key) {
			case "r":
				l.remaining = value
			case "t":
				l.reset = value
			case "remaining":
				older.remaining = value
			case "reset":
				older.reset = value
			}
		}
		delay, nothing = l.add(delay, nothing)
	}
	return older.add(delay, nothing)
}

// limit is how many requests are left, and for how many seconds, as the server wrote it.
type limit struct{ remaining, reset string }

// add puts a limit to those before it.
func (l limit) add(delay time.Duration, nothing bool) (time.Duration, bool) {
	if left, ok := decimal(l.remaining); !ok || left > 0 {
		return delay, nothing
	}
	reset, _ := number(l.reset, time.Second)
	return max(delay, reset), true
}

// splitOutsideQuotes gives the parts of a structured field. A name in quotes can hold anything.
func splitOutsideQuotes(text string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		quoted, start := false, 0
		for i := 0; i < len(text); i++ {
			switch {
			case text[i] == '\\' && quoted:
				i++
			case text[i] == '"':
				quoted = !quoted
			case text[i] == separator && !quoted:
				if !yield(text[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(text[start:])
	}
}
