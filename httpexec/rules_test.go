package httpexec

import (
	"testing"

	"github.com/10f93571/retry/task"
)

// The columns of the table in TestDefault.
var (
	I  = Safety{Idempotent: true}
	N  = Safety{}
	IK = Safety{Idempotent: true, Keyed: true}
)

func TestDefault(t *testing.T) {
	var (
		none      = Facts{}
		asked     = Facts{Word: Word{Asked: true}}
		nothing   = Facts{Word: Word{Nothing: true}}
		replayed  = Facts{Replayed: true}
		should    = Facts{Advice: AdviceRetry}
		shouldNot = Facts{Advice: AdviceStop}
	)
	tests := []struct {
		name           string
		events         []Event
		facts          Facts
		i, n, idemKeyd string
	}{
		{"never written", []Event{EventUnsent}, none, "retry", "retry", "retry"},
		{"refused by HTTP/2", []Event{EventUnprocessed}, none, "retry", "retry", "retry"},
		{"no such host", []Event{EventNoHost}, none, "retry 3", "retry 3", "retry 3"},
		{"cannot be sent", []Event{EventHopeless, EventLocal}, none, "stop", "stop", "stop"},
		{"no room for the reply", []Event{EventUnkept}, none, "stop", "ambiguous", "stop"},
		{"no reply", []Event{EventLost}, none, "retry", "ambiguous", "retry"},
		{"2xx body cut", []Event{EventCut}, none, "retry", "ambiguous", "retry"},
		{"not HTTP", []Event{EventNotHTTP}, none, "retry 2", "ambiguous", "retry 2"},

		{"success", all(200, 201, 204, 206, 299), none, "success", "success", "success"},
		{"not followed", all(301, 302, 304, 308, 399), none, "success", "success", "success"},
		{"success, whatever it says", all(200), Facts{Advice: AdviceStop, Replayed: true}, "success", "success", "success"},

		{"come back", all(408, 421, 425, 429, 529), none, "retry", "retry", "retry"},
		{"come back, asked", all(408, 421, 425, 429, 529), asked, "retry", "retry", "retry"},
		{"unavailable", all(503), none, "retry", "ambiguous", "retry"},
		{"unavailable, asked", all(503), asked, "retry", "retry", "retry"},
		{"unavailable, nothing left", all(503), nothing, "retry", "ambiguous", "retry"},
		{"server's fault", all(500, 502, 504, 520, 521, 522, 523, 524, 527, 530), none, "retry", "ambiguous", "retry"},
		{"server's fault, asked", all(500, 502, 504, 520, 524, 527, 530), asked, "retry", "ambiguous", "retry"},
		{"server's fault, kept", all(500, 502, 504, 520, 524, 527, 530), replayed, "stop", "ambiguous", "stop"},
		{"server's fault, unknown", all(509, 512, 528, 599), none, "retry", "ambiguous", "retry"},
		{"TLS behind it", all(525), none, "retry 3", "retry 3", "retry 3"},
		{"refused", all(403, 413), none, "stop", "stop", "stop"},
		{"refused, asked", all(403, 413), asked, "retry", "retry", "retry"},
		{"refused, nothing left", all(403, 413), nothing, "retry", "retry", "retry"},
		{"conflict", all(409), none, "stop", "stop", "retry"},
		{"conflict, asked", all(409), asked, "stop", "stop", "retry"},
		{"other 4xx", all(400, 401, 404, 405, 410, 412, 415, 416, 422, 423, 428, 431, 451, 499), none, "stop", "stop", "stop"},
		{"other 4xx, asked", all(400, 404), asked, "stop", "stop", "stop"},
		{"other 5xx", all(501, 505, 506, 507, 508, 510, 511, 526), none, "stop", "stop", "stop"},
		{"unknown to HTTP", all(600, 999), none, "stop", "stop", "stop"},

		{"advised", all(400, 409, 500, 501), should, "retry", "retry", "retry"},
		{"advised, and kept", all(500), Facts{Advice: AdviceRetry, Replayed: true}, "stop", "ambiguous", "stop"},
		{"advised against", all(408, 429, 500, 503), shouldNot, "stop", "stop", "stop"},
	}
	for _, tt := range tests {
		for _, e := range tt.events {
			for _, column := range []struct {
				name   string
				safety Safety
				want   string
			}{{"I", I, tt.i}, {"N", N, tt.n}, {"with a key", IK, tt.idemKeyd}} {
				got := Default(e, column.safety, tt.facts)
				if text := describe(got); text != column.want || got.Event != string(e) {
					t.Errorf("%s, %s, %s: %s (%+v), want %s", tt.name, e, column.name, text, got, column.want)
				}
			}
		}
	}
}

func all(list ...int) (events []Event) {
	for _, status := range list {
		events = append(events, StatusEvent(status))
	}
	return events
}

func describe(e task.Eligibility) string {
	switch {
	case e.Class == task.ClassSuccess:
		return "success"
	case e.Class == task.ClassRetryable && e.AtMost > 0:
		return "retry " + string(rune('0'+e.AtMost))
	case e.Class == task.ClassRetryable:
		return "retry"
	case e.Ambiguous:
		return "ambiguous"
	}
	return "stop"
}

func TestFactsOf(t *testing.T) {
	word := Word{Asked: true}
	tests := []struct {
		name    string
		headers []string
		want    Facts
	}{
		{"none", nil, Facts{Word: word}},
		{"replayed", []string{"Idempotent-Replayed", "True"}, Facts{Word: word, Replayed: true}},
		{"not replayed", []string{"Idempotent-Replayed", "false"}, Facts{Word: word}},
		{"should", []string{"x-should-retry", "true"}, Facts{Word: word, Advice: AdviceRetry}},
		{"should not", []string{"Stripe-Should-Retry", "false"}, Facts{Word: word, Advice: AdviceStop}},
		{"garbage", []string{"X-Should-Retry", "maybe", "Stripe-Should-Retry", "TRUE"}, Facts{Word: word, Advice: AdviceRetry}},
	}
	for _, tt := range tests {
		if got := factsOf(headers(tt.headers...), word); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
