package httpexec

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/10f93571/retry/task"
)

// rowEvents are the rows of the table of docs/http.md that name no status.
var rowEvents = map[string]Event{
	"not sent:":        EventUnsent,
	"no such host":     EventNoHost,
	"certificate":      EventHopeless,
	"the server refus": EventUnprocessed,
	"connection":       EventLost,
	"a 2xx whose":      EventCut,
	"no room for":      EventUnkept,
	"what came is not": EventNotHTTP,
}

// TestDocsTable compares the table that people read with the one that decides.
func TestDocsTable(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
	ok(t, err)
	_, rest, _ := strings.Cut(string(page), "| what happened | safe | other |\n|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	compared := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		what, safe, other := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		facts := Facts{Word: Word{Asked: strings.Contains(what, "with Retry-After"), Nothing: strings.Contains(what, "nothing remaining")}}
		events := eventsOf(what)
		if len(events) == 0 {
			t.Errorf("nobody knows what %q is", what)
		}
		for _, event := range events {
			compared++
			keyed := strings.Contains(safe, "where a key goes out")
			if got := wordOf(Default(event, Safety{Idempotent: true, Keyed: keyed}, facts)); !strings.HasPrefix(safe, got) {
				t.Errorf("%s: the page says %q, and %q is done", event, safe, got)
			}
			if got := wordOf(Default(event, Safety{}, facts)); other != got {
				t.Errorf("%s, not safe: the page says %q, and %q is done", event, other, got)
			}
		}
	}
	if compared < 130 { // all of 400 to 599 but those that stand in two rows
		t.Errorf("only %d events were compared", compared)
	}
}

// eventsOf returns what a row is about: statuses, or an event without one.
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
	named := map[int]bool{403: true, 408: true, 409: true, 413: true, 421: true, 425: true, 429: true, 503: true, 525: true, 529: true,
		501: true, 505: true, 506: true, 507: true, 508: true, 510: true, 511: true, 526: true}
	for status := 400; status < 600; status++ {
		wanted := (status < 500 && strings.Contains(what, "other 4xx")) || (status >= 500 && strings.Contains(what, "other 5xx"))
		if wanted && !named[status] {
			events = append(events, StatusEvent(status))
		}
	}
	return events
}

// wordOf is an answer in the words of the page.
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
