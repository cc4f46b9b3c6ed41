package httpexec

import (
	"cmp"
	"iter"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
)

// RetryAfter is what a server says about when to send the next request.
type RetryAfter struct {
	Delay    time.Duration // 0: it names none, or a time that has passed; at most backoff.Max
	Asked    bool          // it asks for another request: there is a valid Retry-After, even if its time has passed
	NoneLeft bool          // it says that a limit on requests is reached
}

// readRetryAfter reads the headers of a reply that arrived at now: Retry-After-Ms, Retry-After, RateLimit as the drafts
// of the IETF define it, and X-RateLimit-Remaining with X-RateLimit-Reset. The first that names a delay is used, and
// invalid ones are ignored.
func readRetryAfter(h http.Header, now time.Time) RetryAfter {
	precise, isPrecise := number(h.Get("Retry-After-Ms"), time.Millisecond)
	after, isAfter := retryAfterHeader(h.Values("Retry-After"), now)
	draft, draftNothing := rateLimit(strings.Join(h.Values("RateLimit"), ","))
	vendor, vendorNothing := vendorLimit(h, now)
	return RetryAfter{
		Delay:    cmp.Or(precise, after, draft, vendor),
		Asked:    isPrecise || isAfter,
		NoneLeft: draftNothing || vendorNothing,
	}
}

// retryAfterHeader reads seconds, or a date in any of the three forms of HTTP. Of several lines it returns the longest
// delay: a server and a proxy may each send one.
func retryAfterHeader(lines []string, now time.Time) (longest time.Duration, found bool) {
	for _, line := range lines {
		at, err := http.ParseTime(strings.TrimSpace(line))
		if err == nil {
			longest, found = max(longest, until(at, now)), true
			continue
		}
		for text := range strings.SplitSeq(line, ",") { // a proxy may have joined several lines
			if delay, ok := number(text, time.Second); ok {
				longest, found = max(longest, delay), true
			}
		}
	}
	return longest, found
}

// vendorLimit reads the headers that most services send. Their reset is in seconds, or a time since 1970 in seconds or
// milliseconds.
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

// decimal reads digits, perhaps with a fraction, which some services send. A sign or an exponent is invalid.
func decimal(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(value, 1) { // a number that is too large is valid
		return 0, false
	}
	return value, true
}

func saturated(value float64, unit time.Duration) time.Duration {
	return time.Duration(min(math.Ceil(value*float64(unit)), float64(backoff.Max)))
}

// rateLimit reads the header of draft-ietf-httpapi-ratelimit-headers: "burst";r=0;t=5, "daily";r=90;t=3600. An older
// draft wrote limit=10, remaining=0, reset=5. The delay is the longest of the limits with nothing remaining.
func rateLimit(text string) (delay time.Duration, nothing bool) {
	if text == "" {
		return 0, false
	}
	add := func(remaining, reset string) {
		if left, ok := decimal(remaining); ok && left == 0 {
			after, _ := number(reset, time.Second)
			delay, nothing = max(delay, after), true
		}
	}
	all := map[string]string{}
	for member := range splitOutsideQuotes(text, ',') {
		limit := map[string]string{}
		for parameter := range splitOutsideQuotes(member, ';') {
			key, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(parameter)), "=")
			limit[key], all[key] = value, value
		}
		add(limit["r"], limit["t"])
	}
	add(all["remaining"], all["reset"])
	return delay, nothing
}

// splitOutsideQuotes yields the parts of a structured field. A name in quotes may hold the separator.
func splitOutsideQuotes(text string, separator byte) iter.Seq[string] {
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

// Safety says whether a request may be sent twice.
type Safety struct {
	Idempotent bool // two requests have the effect of one: by the method, by a key of the user's own, or by --idempotent
	Keyed      bool // it is idempotent, and a key is sent with it
}

// Facts are what the reply says about another attempt.
type Facts struct {
	RetryAfter
	Replayed   bool // the server repeats its reply to an earlier request of the same key, and would do so again
	Redirected bool // the request itself was answered, with a redirect to its result; the reply is about the result
	Unmet      bool // the service was told that it takes another request, or another protocol: see isUnmet
	Advice     Advice
}

// Advice is a server's explicit advice on another attempt.
type Advice int

// The kinds of advice.
const (
	AdviceNone Advice = iota
	AdviceRetry
	AdviceStop
)

// factsOf reads what the headers of a reply say about another attempt. A few services send explicit advice.
func factsOf(h http.Header, after RetryAfter) Facts {
	word := func(name string) string { return strings.ToLower(strings.TrimSpace(h.Get(name))) }
	f := Facts{RetryAfter: after, Replayed: word("Idempotent-Replayed") == "true"}
	for _, name := range []string{"Stripe-Should-Retry", "X-Should-Retry"} { // the last one decides
		switch word(name) {
		case "true":
			f.Advice = AdviceRetry
		case "false":
			f.Advice = AdviceStop
		}
	}
	return f
}
