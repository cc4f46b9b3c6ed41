package grpcexec

import "github.com/10f93571/retry/task"

// event is how an attempt ended: a status of gRPC, or one of the texts below.
type event string

// The events other than a status that the server sent.
const (
	eventUnsent      event = "the call was not sent" // DNS, connect or TLS failed in a way that may pass
	eventNoHost      event = "there is no such host"
	eventInvalid     event = "the call cannot be sent"           // certificate not valid, no HTTP/2
	eventRefused     event = "the target is refused"             // by the guard of what came through the API
	eventUnprocessed event = "the server refused to process it"  // REFUSED_STREAM of HTTP/2
	eventLost        event = "there was no reply"                // reset, or timeout after the call was sent
	eventNotStored   event = "the reply could not be kept"       // it is too large, or does not fit its type
	eventLocal       event = "retry could not do its part"       // the JSON does not fit the type, no reflection
	eventProxy       event = "a proxy had no reply from it"      // HTTP status 502, 503 or 504
	eventNotGRPC     event = "the reply is not gRPC"             // any other HTTP status without a grpc-status
	eventBrokenReply event = "the server's error is not of HTTP" // 5xx without a grpc-status
)

// row is one row of the table: what follows from an event for a call that is idempotent, and for any other.
type row struct {
	events            []event
	idempotent, other task.Eligibility
}

// table is what is retried unless the policy says otherwise. UNAVAILABLE is the status that gRPC's retry design (A6) has
// in its examples; others have to be named, as they have there.
func table() []row {
	retry := task.Eligibility{Class: task.ClassRetryable}
	stop := task.Eligibility{Class: task.ClassFatal}
	ambiguous := task.Eligibility{Class: task.ClassFatal, Ambiguous: true} // the call may have taken effect
	atMost3 := task.Eligibility{Class: task.ClassRetryable, AtMost: 3}
	return []row{
		{[]event{eventUnsent, eventUnprocessed, "UNAVAILABLE"}, retry, retry},
		{[]event{eventNoHost}, atMost3, atMost3},
		{[]event{eventLost, eventProxy}, retry, ambiguous},
		{[]event{eventNotStored, eventBrokenReply}, stop, ambiguous},
		{[]event{"CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL", "DATA_LOSS"}, stop, ambiguous},
		{[]event{"OK"}, task.Eligibility{Class: task.ClassSuccess}, task.Eligibility{Class: task.ClassSuccess, Ambiguous: true}},
	}
}

// byDefault returns what follows from an event unless a condition of the policy matches it.
func byDefault(e event, idempotent bool) task.Eligibility {
	found := task.Eligibility{Class: task.ClassFatal}
	for _, r := range table() {
		for _, one := range r.events {
			if one != e {
				continue
			}
			if found = r.other; idempotent {
				found = r.idempotent
			}
		}
	}
	found.Event = string(e)
	return found
}

// eventOf is the event of a reply.
func eventOf(r *reply) event {
	switch {
	case r.http == 0, r.http == 429:
		return event(r.code.String())
	case r.http >= 502 && r.http <= 504:
		return eventProxy
	case r.http >= 500:
		return eventBrokenReply
	}
	return eventNotGRPC
}
