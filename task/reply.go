package task

import (
	"time"

	"github.com/10f93571/retry/backoff"
)

// Reply is what the other side answered to an attempt, and what is known about the exchange.
type Reply struct {
	Status      int               // of the last reply; 0 where none came. Of gRPC, where 0 is OK: see StatusName
	StatusName  string            // of gRPC: "UNAVAILABLE"; empty for HTTP, and where no reply came
	Header      map[string]string // of the last reply, by canonical name; lines of one name are joined with ", "
	Body        string            // the end of its body, at most ConditionTail bytes
	Written     int               // requests that went out: one, and one for each redirect that was followed
	ServerDelay time.Duration     // the delay that the server asks for; 0 = none
	Cut         bool              // it is not whole, and the status counts all the same; not stored
	NoRetry     bool              // the server asks for no other attempt, whatever conditions say; not stored
	MaxDelay    time.Duration     // the longest ServerDelay that is waited for; 0 = any; not stored
	Phases      Phases
	Default     Eligibility // what follows where no condition of the policy says it; of it, the event is stored
}

// HasStatus reports whether there is a status: a reply came, or a client of gRPC made one up for a failure of its own.
func (r *Reply) HasStatus() bool { return r.Status > 0 || r.StatusName != "" }

// Answered reports whether the other side of a request has said anything in this attempt.
func (o Outcome) Answered() bool {
	return o.Reply != nil && o.Reply.HasStatus() && (o.Reply.StatusName == "" || o.Error == ErrorNone)
}

// StatusNames are the names of gRPC's statuses, by their number.
func StatusNames() []string {
	return []string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}
}

// Phases are how long the parts of an exchange took: of its last request, but for Total. 0 for what did not happen.
type Phases struct {
	DNS       time.Duration
	Connect   time.Duration
	TLS       time.Duration
	FirstByte time.Duration // from the written request to the first byte of the reply
	Total     time.Duration // of the whole attempt
}

// Eligibility is what the kind of a task makes of an outcome by itself.
type Eligibility struct {
	Class     Class
	Event     string // what happened, as the table of events names it
	AtMost    int    // attempts in a row that may end in this event; 0 = the policy's limit alone
	Ambiguous bool   // the request may have taken effect, and is not safe to repeat
}

// spreadDelay is ServerDelay and up to a tenth more, so that clients with the same advice do not all come at once.
func (r Reply) spreadDelay(random func() float64) time.Duration {
	if r.ServerDelay == 0 {
		return 0
	}
	return min(r.ServerDelay+time.Duration(float64(r.ServerDelay/10)*random()), backoff.Max)
}

// The classes of error of an HTTP request, beside ErrorTimeout. An attempt that ends with a status has none.
const (
	ErrorURL       ErrorClass = "url"            // it cannot be requested: malformed, or of an unknown scheme
	ErrorDNS       ErrorClass = "dns"            // the host's address, or the proxy's, could not be found
	ErrorConnect   ErrorClass = "connect"        // refused, unreachable, or rejected by a proxy
	ErrorTLS       ErrorClass = "tls"            // of the handshake, the certificate, or an alert
	ErrorReset     ErrorClass = "reset"          // the connection broke before the reply was there
	ErrorTruncated ErrorClass = "truncated"      // the reply's body was cut
	ErrorProtocol  ErrorClass = "protocol"       // the reply is not HTTP
	ErrorRedirects ErrorClass = "redirects"      // too many, or to where requests are not sent
	ErrorRefused   ErrorClass = "target refused" // its address is one that requests of the API must not reach
	ErrorLocal     ErrorClass = "local"          // of this machine: a file that cannot be read, no room for the reply
)

// Transfer is the progress of a body that is sent or received.
type Transfer struct {
	Sending bool      // it is the request's body; else the reply's
	Bytes   int64     // transferred so far, those of earlier attempts included
	Total   int64     // of the whole body; -1 = unknown
	From    int64     // transferred by earlier attempts
	Began   time.Time // when this attempt's part began
	Over    bool      // nothing more comes
}
