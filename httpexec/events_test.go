package httpexec

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/testkit"
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
		asked     = Facts{RetryAfter: RetryAfter{Asked: true}}
		nothing   = Facts{RetryAfter: RetryAfter{NoneLeft: true}}
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
		{"cannot be sent", []Event{EventInvalid, EventLocal}, none, "stop", "stop", "stop"},
		{"no room for the reply", []Event{EventNotStored}, none, "stop", "ambiguous", "stop"},
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
		{"other 4xx", all(400, 401, 404, 405, 410, 412, 415, 416, 422, 423, 428, 431, 451, 499), none, "stop", "stop",
			"stop"},
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
					t.Errorf("%s, %s, %s: got %s (%+v), want %s", tt.name, e, column.name, text, got, column.want)
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
	word := RetryAfter{Asked: true}
	tests := []struct {
		name    string
		headers []string
		want    Facts
	}{
		{"none", nil, Facts{RetryAfter: word}},
		{"replayed", []string{"Idempotent-Replayed", "True"}, Facts{RetryAfter: word, Replayed: true}},
		{"not replayed", []string{"Idempotent-Replayed", "false"}, Facts{RetryAfter: word}},
		{"should", []string{"x-should-retry", "true"}, Facts{RetryAfter: word, Advice: AdviceRetry}},
		{"should not", []string{"Stripe-Should-Retry", "false"}, Facts{RetryAfter: word, Advice: AdviceStop}},
		{"garbage", []string{"X-Should-Retry", "maybe", "Stripe-Should-Retry", "TRUE"},
			Facts{RetryAfter: word, Advice: AdviceRetry}},
	}
	for _, tt := range tests {
		if got := factsOf(headers(tt.headers...), word); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// headers returns a header made of alternating names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestReadRetryAfter(t *testing.T) {
	asked := func(d time.Duration) RetryAfter { return RetryAfter{Delay: d, Asked: true} }
	nothing := func(d time.Duration) RetryAfter { return RetryAfter{Delay: d, NoneLeft: true} }
	tests := []struct {
		name    string
		headers []string
		want    RetryAfter
	}{
		{"nothing said", nil, RetryAfter{}},

		{"seconds", []string{"Retry-After", "120"}, asked(2 * time.Minute)},
		{"at once", []string{"Retry-After", "0"}, asked(0)},
		{"a fraction", []string{"Retry-After", "1.5"}, asked(1500 * time.Millisecond)},
		{"spaces around", []string{"Retry-After", " 7 "}, asked(7 * time.Second)},
		{"a year and more", []string{"Retry-After", "99999999999999999999"}, asked(backoff.Max)},
		{"more than a float holds", []string{"Retry-After", "9" + strings.Repeat("0", 400)}, asked(backoff.Max)},
		{"negative", []string{"Retry-After", "-5"}, RetryAfter{}},
		{"an exponent", []string{"Retry-After", "1e3"}, RetryAfter{}},
		{"infinite", []string{"Retry-After", "inf"}, RetryAfter{}},
		{"a lone dot", []string{"Retry-After", "."}, RetryAfter{}},
		{"garbage", []string{"Retry-After", "soon"}, RetryAfter{}},
		{"empty", []string{"Retry-After", ""}, RetryAfter{}},
		{"two, of which one is garbage", []string{"Retry-After", "soon", "Retry-After", "7"}, asked(7 * time.Second)},
		{"two, the longest", []string{"Retry-After", "7", "Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", "Retry-After", "5"},
			asked(time.Minute)},
		{"two in a line", []string{"Retry-After", "120, 240"}, asked(4 * time.Minute)},

		{"a date", []string{"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT"}, asked(time.Minute)},
		{"a date of RFC 850", []string{"Retry-After", "Friday, 02-Jan-26 03:05:05 GMT"}, asked(time.Minute)},
		{"a date of asctime", []string{"Retry-After", "Fri Jan  2 03:05:05 2026"}, asked(time.Minute)},
		{"a date in the past", []string{"Retry-After", "Fri, 02 Jan 2026 03:04:04 GMT"}, asked(0)},
		{"a date far away", []string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, asked(backoff.Max)},
		{"a date of ISO 8601", []string{"Retry-After", "2026-01-02T03:05:05Z"}, RetryAfter{}},

		{"milliseconds", []string{"Retry-After-Ms", "250"}, asked(250 * time.Millisecond)},
		{"milliseconds go before seconds", []string{"Retry-After", "1", "Retry-After-Ms", "1250"},
			asked(1250 * time.Millisecond)},
		{"garbage goes before nothing", []string{"Retry-After", "1", "Retry-After-Ms", "x"}, asked(time.Second)},

		{"draft", []string{"RateLimit", `"default";r=0;t=30`}, nothing(30 * time.Second)},
		{"draft, something left", []string{"RateLimit", `"default";r=1;t=30`}, RetryAfter{}},
		{"draft, no time", []string{"RateLimit", `"default";r=0`}, nothing(0)},
		{"draft, the one that is used up", []string{"RateLimit", `"burst";r=0;t=5, "daily";r=90;t=3600`},
			nothing(5 * time.Second)},
		{"draft, the longest that is used up", []string{"RateLimit", `"a";r=0;t=60, "b";r=0;t=5`}, nothing(time.Minute)},
		{"draft, two lines", []string{"RateLimit", `"a";r=9;t=5`, "RateLimit", `"b";r=0;t=7`}, nothing(7 * time.Second)},
		{"draft, a name with everything", []string{"RateLimit", `"a;r=0;t=9,b";r=4;t=1`}, RetryAfter{}},
		{"draft, a name with a quote", []string{"RateLimit", `"a\";r=0;t=9,b";r=4;t=1`}, RetryAfter{}},
		{"draft, older", []string{"RateLimit", "limit=10, remaining=0, reset=5"}, nothing(5 * time.Second)},
		{"draft, older, something left", []string{"RateLimit", "limit=10, remaining=3, reset=5"}, RetryAfter{}},
		{"draft, garbage", []string{"RateLimit", `r=;t=;"`}, RetryAfter{}},
		{"Retry-After goes before the draft", []string{"RateLimit", `"a";r=0;t=30`, "Retry-After", "3"},
			RetryAfter{Delay: 3 * time.Second, Asked: true, NoneLeft: true}},

		{"vendor, seconds", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"}, nothing(30 * time.Second)},
		{"vendor, since 1970", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323105"},
			nothing(time.Minute)},
		{"vendor, since 1970 with a fraction", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323105.5"},
			nothing(60500 * time.Millisecond)},
		{"vendor, milliseconds since 1970", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323105000"},
			nothing(time.Minute)},
		{"vendor, past", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767323000"}, nothing(0)},
		{"vendor, far away", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9" + strings.Repeat("0", 40)},
			nothing(backoff.Max)},
		{"vendor, something left", []string{"X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "30"}, RetryAfter{}},
		{"vendor, reset alone", []string{"X-RateLimit-Reset", "30"}, RetryAfter{}},
		{"vendor, no reset", []string{"X-RateLimit-Remaining", "0"}, nothing(0)},
		{"vendor, garbage", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "later"}, nothing(0)},
		{"vendor, after a date in the past",
			[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9", "Retry-After", "Fri, 02 Jan 2026 03:04:04 GMT"},
			RetryAfter{Delay: 9 * time.Second, Asked: true, NoneLeft: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readRetryAfter(headers(tt.headers...), now); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func FuzzReadRetryAfter(f *testing.F) {
	f.Add("120", "250", `"default";r=0;t=30`, "0", "1767323105")
	f.Add("Fri, 02 Jan 2026 03:05:05 GMT", "x", "limit=10, remaining=0, reset=5", "0", "30")
	f.Fuzz(func(t *testing.T, after, precise, draft, remaining, reset string) {
		w := readRetryAfter(headers("Retry-After", after, "Retry-After-Ms", precise, "RateLimit", draft,
			"X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset), now)
		if w.Delay < 0 || w.Delay > backoff.Max {
			t.Errorf("got delay %v, want 0 to %v", w.Delay, backoff.Max)
		}
		if w.Delay > 0 && !w.Asked && !w.NoneLeft {
			t.Errorf("got delay %v, want a header that asks for it", w.Delay)
		}
	})
}

// rowEvents maps the rows of the table in docs/http.md without a status to their events.
var rowEvents = map[string]Event{
	"not sent:":         EventUnsent,
	"no such host":      EventNoHost,
	"certificate":       EventInvalid,
	"refused by the se": EventUnprocessed,
	"the target is re":  EventRefused,
	"connection":        EventLost,
	"a 2xx whose":       EventCut,
	"no room for":       EventNotStored,
	"the reply is not":  EventNotHTTP,
}

// TestDocsTable compares the table in docs/http.md with the table in the code.
func TestDocsTable(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
	testkit.Must(t, err)
	_, rest, _ := strings.Cut(string(page), "| what happened | safe | other |\n|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	compared := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		what, safe, other := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		facts := Facts{RetryAfter: RetryAfter{Asked: strings.Contains(what, "with Retry-After"),
			NoneLeft: strings.Contains(what, "nothing remaining")}, Unmet: strings.HasPrefix(what, "through the API")}
		events := eventsOf(what)
		if len(events) == 0 {
			t.Errorf("%q: got no events, want some", what)
		}
		for _, event := range events {
			compared++
			keyed := strings.Contains(safe, "if a key is sent")
			if got := wordOf(Default(event, Safety{Idempotent: true, Keyed: keyed}, facts)); !strings.HasPrefix(safe, got) {
				t.Errorf("%s: got %q, want %q as the page says", event, got, safe)
			}
			if got := wordOf(Default(event, Safety{}, facts)); other != got {
				t.Errorf("%s, not safe: got %q, want %q as the page says", event, got, other)
			}
		}
	}
	if compared < 130 { // all of 400 to 599 but those that stand in two rows
		t.Errorf("got %d events compared, want at least 130", compared)
	}
}

// eventsOf returns the events of a row: statuses, or one event without a status.
func eventsOf(what string) (events []Event) {
	for beginning, event := range rowEvents {
		if strings.HasPrefix(what, beginning) {
			return []Event{event}
		}
	}
	for _, m := range regexp.MustCompile(`(\d{3})(?:–(\d{3}))?`).FindAllStringSubmatch(what, -1) {
		var first, last int
		_, _ = fmt.Sscan(m[1], &first)
		if last = first; m[2] != "" {
			_, _ = fmt.Sscan(m[2], &last)
		}
		for status := first; status <= last; status++ {
			events = append(events, StatusEvent(status))
		}
	}
	named := map[int]bool{403: true, 408: true, 409: true, 413: true, 421: true, 425: true, 429: true, 503: true,
		525: true, 529: true,
		501: true, 505: true, 506: true, 507: true, 508: true, 510: true, 511: true, 526: true}
	for status := 400; status < 600; status++ {
		wanted := (status < 500 && strings.Contains(what, "other 4xx")) ||
			(status >= 500 && strings.Contains(what, "other 5xx"))
		if wanted && !named[status] {
			events = append(events, StatusEvent(status))
		}
	}
	return events
}

// wordOf names a decision as the page does.
func wordOf(e task.Eligibility) string {
	switch {
	case e.Ambiguous:
		return "ambiguous"
	case e.AtMost > 0:
		return fmt.Sprintf("at most %d", e.AtMost)
	case e.Class == task.ClassRetryable:
		return "retry"
	}
	return "stop"
}
