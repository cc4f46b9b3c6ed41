package httpexec

import (
	"net/http"
	"strings"
)

// Safety is what sending a request twice may do.
type Safety struct {
	Idempotent bool // two of them do what one does: by the method, by a key of the user's own, or because the user says so
	Keyed      bool // it is, and a key goes out with it
}

// Facts are what the headers of a reply say that bears on another attempt.
type Facts struct {
	Word
	Replayed   bool // it is the kept reply to an earlier request of the same key: another one would get it again
	Redirected bool // the request itself was answered with a redirect to look elsewhere; what follows is about that
	Advice     Advice
}

// Advice is what a server says outright of another attempt.
type Advice int

// The kinds of advice.
const (
	AdviceNone  Advice = iota
	AdviceRetry        // it is safe and of use
	AdviceStop         // it is not
)

// adviceOf reads the headers with which a few services say whether to retry.
func adviceOf(h http.Header) Advice {
	for _, name := range []string{"X-Should-Retry", "Stripe-Should-Retry"} {
		switch strings.ToLower(strings.TrimSpace(h.Get(name))) {
		case "true":
			return AdviceRetry
		case "false":
			return AdviceStop
		}
	}
	return AdviceNone
}

// factsOf reads a reply's headers, given the word of when to come back.
func factsOf(h http.Header, word Word) Facts {
	return Facts{
		Word:     word,
		Replayed: strings.EqualFold(strings.TrimSpace(h.Get("Idempotent-Replayed")), "true"),
		Advice:   adviceOf(h),
	}
}
