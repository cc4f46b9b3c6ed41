// Package httpexec executes the attempts of an HTTP request: one attempt is one request on the wire.
package httpexec

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
)

// Word is what a server says of when to come back.
type Word struct {
	Delay   time.Duration // 0 where it names none, or a time that has passed; at most backoff.Max
	Asked   bool          // it asks for another request: a Retry-After that can be read, even if its time has passed
	Nothing bool          // it says that no request is left for now
}

// ReadWord reads the headers of a reply that came at now: Retry-After-Ms, Retry-After, RateLimit as the IETF's drafts have it, and
// X-RateLimit-Remaining with X-RateLimit-Reset. The first that names a delay gives it. What cannot be read is passed over.
func ReadWord(h http.Header, now time.Time) Word {
	precise, isPrecise := number(h.Get("Retry-After-Ms"), time.Millisecond)
	after, isAfter := retryAfter(h.Values("Retry-After"), now)
	draft, draftNothing := rateLimit(strings.Join(h.Values("RateLimit"), ","))
	vendor, vendorNothing := vendorLimit(h, now)
	return Word{
		Delay:   cmp.Or(precise, after, draft, vendor),
		Asked:   isPrecise || isAfter,
		Nothing: draftNothing || vendorNothing,
	}
}

// retryAfter reads seconds, or a date in any of HTTP's three forms. Of several, as a server and a proxy before it send them, the longest holds.
func retryAfter(lines []string, now time.Time) (longest time.Duration, found bool) {
	for _, line := range lines {
		at, err := http.ParseTime(strings.TrimSpace(line))
		if err == nil {
			longest, found = max(longest, until(at, now)), true
			continue
		}
		for text := range strings.SplitSeq(line, ",") { // lines that were joined on the way
			if delay, ok := number(text, time.Second); ok {
				longest, found = max(longest, delay), true
			}
		}
	}
	return longest, found
}

// vendorLimit reads the headers that most services send. Their reset is in seconds, or a time since 1970 in seconds or milliseconds.
func vendorLimit(h http.Header, now time.Time) (delay time.Duration, nothing bool) {
	if remaining, ok := number(h.Get("X-RateLimit-Remaining"), time.Second); !ok || remaining > 0 {
		return 0, false
	}
	const (
		epoch             = 1e9  // 2001; 31 years as a delay
		epochMilliseconds = 1e11 // 5138; 1973 in milliseconds
	)
	value, ok := decimal(h.Get("X-RateLimit-Reset"))
	switch {
	case !ok:
		return 0, true
	case value >= epochMilliseconds:
		return until(time.UnixMilli(int64(min(value, math.MaxInt32*1e6))), now), true
	case value >= epoch:
		return until(time.UnixMilli(int64(value*1e3)), now), true
	}
	return saturated(value, time.Second), true
}

// until is the time from now to at; 0 where that has passed.
func until(at, now time.Time) time.Duration {
	return min(max(0, at.Sub(now)), backoff.Max) // Sub saturates
}

// number reads a delay that is written as a number of units.
func number(text string, unit time.Duration) (time.Duration, bool) {
	value, ok := decimal(text)
	return saturated(value, unit), ok
}

// decimal reads digits, with a fraction perhaps: some services send one. Nothing else is a number here, neither a sign nor 1e9.
func decimal(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(value, 1) { // as large as that is a number still
		return 0, false
	}
	return value, true
}

func saturated(value float64, unit time.Duration) time.Duration {
	return time.Duration(min(math.Ceil(value*float64(unit)), float64(backoff.Max)))
}
