package httpexec

import (
	"slices"
	"strconv"

	"github.com/10f93571/retry/task"
)

// Event is how an attempt ended: a status, or one of the texts below.
type Event string

// The events other than a status.
const (
	EventUnsent      Event = "the request was not sent" // DNS, connect, proxy or TLS failed in a way that may pass
	EventNoHost      Event = "there is no such host"
	EventInvalid     Event = "the request cannot be sent"       // bad URL, certificate not valid, TLS alert, redirect loop
	EventRefused     Event = "the target is refused"            // by the guard of what came through the API
	EventUnprocessed Event = "the server refused to process it" // REFUSED_STREAM of HTTP/2
	EventLost        Event = "there was no reply"               // EOF, reset or timeout after the request was written
	EventCut         Event = "the reply was cut"                // a 2xx whose body is incomplete
	EventNotHTTP     Event = "the reply is not HTTP"
	EventNotStored   Event = "the reply could not be kept" // no room for a success
	EventLocal       Event = "retry could not do its part" // no room for an error's body, an unreadable file
)

// StatusEvent returns the event of a reply that was received.
func StatusEvent(status int) Event { return Event(strconv.Itoa(status)) }

// row is one row of the table: what follows from an event for a request that is idempotent, and for any other, such as
// a POST without a key.
type row struct {
	events            []Event
	statuses          []int
	class             int                      // 4 for every status of 4xx, 5 for every one of 5xx
	when              func(Safety, Facts) bool // nil: always
	idempotent, other task.Eligibility
}

// The outcomes of the table.
var (
	retry     = task.Eligibility{Class: task.ClassRetryable}
	stop      = task.Eligibility{Class: task.ClassFatal}
	ambiguous = task.Eligibility{Class: task.ClassFatal, Ambiguous: true} // the request may have taken effect

	// Retried until so many attempts in a row have ended like that.
	atMost2 = task.Eligibility{Class: task.ClassRetryable, AtMost: 2}
	atMost3 = task.Eligibility{Class: task.ClassRetryable, AtMost: 3}
)

// The conditions of the table.
func asked(_ Safety, f Facts) bool    { return f.Asked } // the server did not process the request then
func limited(_ Safety, f Facts) bool  { return f.Asked || f.NoneLeft }
func keyed(s Safety, _ Facts) bool    { return s.Keyed } // the server may still process the same request
func replayed(_ Safety, f Facts) bool { return f.Replayed }

// table is what is retried unless the policy says otherwise. The first row that fits an event decides.
var table = []row{
	{events: []Event{EventUnsent, EventUnprocessed}, idempotent: retry, other: retry},
	{events: []Event{EventNoHost}, idempotent: atMost3, other: atMost3},
	{events: []Event{EventInvalid, EventRefused, EventLocal}, idempotent: stop, other: stop},
	{events: []Event{EventNotStored}, idempotent: stop, other: ambiguous},
	{events: []Event{EventLost, EventCut}, idempotent: retry, other: ambiguous},
	{events: []Event{EventNotHTTP}, idempotent: atMost2, other: ambiguous},

	{statuses: []int{408, 421, 425, 429, 529}, idempotent: retry, other: retry},
	{statuses: []int{503}, when: asked, idempotent: retry, other: retry},
	{statuses: []int{503}, idempotent: retry, other: ambiguous},
	{statuses: []int{525}, idempotent: atMost3, other: atMost3},
	{statuses: []int{403, 413}, when: limited, idempotent: retry, other: retry},
	{statuses: []int{409}, when: keyed, idempotent: retry, other: stop},
	{statuses: []int{501, 505, 506, 507, 508, 510, 511, 526}, idempotent: stop, other: stop},
	{class: 4, idempotent: stop, other: stop},
	{class: 5, when: replayed, idempotent: stop, other: ambiguous},
	{class: 5, idempotent: retry, other: ambiguous}, // RFC 9110 treats unknown statuses of 5xx as 500
}

// Default returns what follows from an event unless a condition of the policy matches it.
func Default(e Event, s Safety, f Facts) task.Eligibility {
	eligibility := lookUp(e, s, f)
	// After such a redirect a fatal failure is ambiguous too: the server has answered the request itself.
	if f.Redirected && !s.Idempotent && eligibility.Class != task.ClassSuccess {
		eligibility = ambiguous
	}
	eligibility.Event = string(e)
	return eligibility
}

// lookUp finds the row of an event, and the column of the request.
func lookUp(e Event, s Safety, f Facts) task.Eligibility {
	status, _ := strconv.Atoi(string(e)) // 0 for an event without one
	switch {
	case status != 0 && f.Unmet && s.Idempotent:
		return stop
	case status != 0 && f.Unmet:
		return ambiguous // it may have done what a POST asked for, and redirect to its result
	case status >= 100 && status < 400:
		// Ambiguous matters where success-on does not accept the status.
		return task.Eligibility{Class: task.ClassSuccess, Ambiguous: !s.Idempotent}
	case status != 0 && f.Advice == AdviceStop:
		return stop
	case status != 0 && f.Advice == AdviceRetry && !f.Replayed:
		return retry
	}
	for _, r := range table {
		fits := slices.Contains(r.events, e) || slices.Contains(r.statuses, status) ||
			(r.class != 0 && r.class == status/100)
		switch {
		case !fits || (r.when != nil && !r.when(s, f)):
		case s.Idempotent:
			return r.idempotent
		default:
			return r.other
		}
	}
	return stop // a status that HTTP does not know
}
