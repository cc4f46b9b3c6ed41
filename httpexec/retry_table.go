package httpexec

import (
	"strconv"

	"github.com/10f93571/retry/task"
)

// Event is what an attempt came to: a row of the table below.
type Event string

// The events without a status, or in spite of one.
const (
	EventUnsent      Event = "the request was not sent" // DNS, connect, proxy or TLS failed in a way that may pass
	EventNoHost      Event = "there is no such host"
	EventInvalid     Event = "the request cannot be sent"       // bad URL, certificate not valid, TLS alert, redirect loop
	EventUnprocessed Event = "the server refused to process it" // REFUSED_STREAM of HTTP/2
	EventLost        Event = "there was no reply"               // EOF, reset or timeout after the request was written
	EventCut         Event = "the reply was cut"                // a 2xx whose body is incomplete
	EventNotHTTP     Event = "the reply is not HTTP"
	EventNotStored   Event = "the reply could not be kept" // no room for a success
	EventLocal       Event = "retry could not do its part" // no room for an error's body, a file that cannot be read
)

// StatusEvent is a reply that came with a status.
func StatusEvent(status int) Event { return Event(strconv.Itoa(status)) }

// status returns the event's status; 0 for one of the others.
func (e Event) status() int {
	status, err := strconv.Atoi(string(e))
	if err != nil {
		return 0
	}
	return status
}

// row is one row of the table: what an event leads to, for a request that is idempotent and for any other.
type row struct {
	events            []Event
	statuses          []statuses
	idempotent, other rule
}

// statuses is a range of them, both ends included.
type statuses struct{ first, last int }

// rule says whether an event is worth another attempt, given what else is known.
type rule func(Safety, Facts) task.Eligibility

// table is what is retried unless the policy says otherwise. The first row that an event is in decides.
func table() []row {
	return []row{
		{events: []Event{EventUnsent, EventUnprocessed}, idempotent: retry, other: retry},
		{events: []Event{EventNoHost}, idempotent: atMost(3), other: atMost(3)},
		{events: []Event{EventInvalid, EventLocal}, idempotent: stop, other: stop},
		{events: []Event{EventNotStored}, idempotent: stop, other: ambiguous},
		{events: []Event{EventLost, EventCut}, idempotent: retry, other: ambiguous},
		{events: []Event{EventNotHTTP}, idempotent: atMost(2), other: ambiguous},

		{statuses: some(408, 421, 425, 429, 529), idempotent: retry, other: retry},
		{statuses: some(503), idempotent: retry, other: ifAsked},
		{statuses: some(525), idempotent: atMost(3), other: atMost(3)},
		{statuses: some(403, 413), idempotent: ifAskedOrNothing, other: ifAskedOrNothing},
		{statuses: some(409), idempotent: ifKeyed, other: stop},
		{statuses: []statuses{{501, 501}, {505, 508}, {510, 511}, {526, 526}}, idempotent: stop, other: stop},
		{statuses: []statuses{{400, 499}}, idempotent: stop, other: stop},
		// RFC 9110 treats unknown statuses of 5xx as 500.
		{statuses: []statuses{{500, 599}}, idempotent: unlessReplayed, other: ambiguous},
	}
}

// Default returns what follows from an event where no condition of the policy says it. It is pure.
func Default(e Event, s Safety, f Facts) task.Eligibility {
	eligibility := lookUp(e, s, f)
	// Fatal failures count, too: the server has answered the request itself.
	if f.Redirected && !s.Idempotent && eligibility.Class != task.ClassSuccess {
		eligibility = ambiguous(s, f)
	}
	eligibility.Event = string(e)
	return eligibility
}

// lookUp finds the row of an event, and what it says for the safety of the request.
func lookUp(e Event, s Safety, f Facts) task.Eligibility {
	status := e.status()
	switch {
	case status >= 100 && status < 400:
		// Ambiguous matters where success-on does not accept the status.
		return task.Eligibility{Class: task.ClassSuccess, Ambiguous: !s.Idempotent}
	case status != 0 && f.Advice == AdviceStop:
		return stop(s, f)
	case status != 0 && f.Advice == AdviceRetry && !f.Replayed:
		return retry(s, f)
	}
	for _, r := range table() {
		if !r.covers(e, status) {
			continue
		}
		if s.Idempotent {
			return r.idempotent(s, f)
		}
		return r.other(s, f)
	}
	return stop(s, f) // a status that HTTP does not know
}

func (r row) covers(e Event, status int) bool {
	for _, event := range r.events {
		if event == e {
			return true
		}
	}
	for _, of := range r.statuses {
		if of.first <= status && status <= of.last {
			return true
		}
	}
	return false
}

// some makes ranges of single statuses.
func some(list ...int) (ranges []statuses) {
	for _, status := range list {
		ranges = append(ranges, statuses{status, status})
	}
	return ranges
}

func retry(Safety, Facts) task.Eligibility {
	return task.Eligibility{Class: task.ClassRetryable}
}

func stop(Safety, Facts) task.Eligibility {
	return task.Eligibility{Class: task.ClassFatal}
}

// ambiguous stops since the request may have taken effect.
func ambiguous(Safety, Facts) task.Eligibility {
	return task.Eligibility{Class: task.ClassFatal, Ambiguous: true}
}

// atMost retries until n attempts in a row have ended so.
func atMost(n int) rule {
	return func(Safety, Facts) task.Eligibility {
		return task.Eligibility{Class: task.ClassRetryable, AtMost: n}
	}
}

// ifAsked retries where the server asked for it, as it did not process the request then. Otherwise that is unknown.
func ifAsked(s Safety, f Facts) task.Eligibility {
	if f.Asked {
		return retry(s, f)
	}
	return ambiguous(s, f)
}

// ifAskedOrNothing retries where the refusal is one of a limit.
func ifAskedOrNothing(s Safety, f Facts) task.Eligibility {
	if f.Asked || f.NoneLeft {
		return retry(s, f)
	}
	return stop(s, f)
}

// ifKeyed retries where the conflict may be with the same request, still under way.
func ifKeyed(s Safety, f Facts) task.Eligibility {
	if s.Keyed {
		return retry(s, f)
	}
	return stop(s, f)
}

// unlessReplayed retries unless the server has kept this very reply.
func unlessReplayed(s Safety, f Facts) task.Eligibility {
	if f.Replayed {
		return stop(s, f)
	}
	return retry(s, f)
}
