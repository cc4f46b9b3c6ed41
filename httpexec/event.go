package httpexec

import "strconv"

// Event is what an attempt came to: a row of the table in rules.go.
type Event string

// The events without a status, or in spite of one.
const (
	EventUnsent      Event = "the request was not sent" // DNS, connect, proxy or TLS failed in a way that may pass
	EventNoHost      Event = "there is no such host"
	EventHopeless    Event = "the request cannot be sent"       // bad URL, certificate not valid, TLS alert, redirect loop
	EventUnprocessed Event = "the server refused to process it" // REFUSED_STREAM of HTTP/2
	EventLost        Event = "there was no reply"               // EOF, reset or timeout after the request was written
	EventCut         Event = "the reply was cut"                // a 2xx whose body did not come whole
	EventNotHTTP     Event = "the reply is not HTTP"
	EventUnkept      Event = "the reply could not be kept" // no room for a success
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
