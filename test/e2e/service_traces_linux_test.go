package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// exported is what a collector gets.
type exported struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct{ TraceID, SpanID string }
		}
	}
}

// The span that a request names as its caller is one that the collector gets, whether the task had a caller or not.
func TestRequestsNameTheirSpan(t *testing.T) {
	s := newServiceTest(t)
	sent := make(chan string, 3)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Traceparent")
	}))
	defer target.Close()
	spans := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got exported
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("got %v, want spans in JSON", err)
		}
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans <- "00-" + span.TraceID + "-" + span.SpanID + "-01"
				}
			}
		}
	}))
	defer collector.Close()
	s.env = append(s.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	server := s.start("", "serve")
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var parents []string
	for _, given := range []string{caller, "", "junk"} {
		task := map[string]any{"targetUrl": target.URL}
		if given != "" {
			task["headers"] = map[string]string{"traceparent": given}
		}
		if r, answer := s.ask("POST", "/retry-tasks", task); r.StatusCode != http.StatusCreated {
			t.Fatalf("got %s: %s", r.Status, answer)
		}
		parent := <-sent
		if given == caller && (!strings.HasPrefix(parent, caller[:36]) || parent == caller) {
			t.Errorf("got %s, want another span of the caller's trace", parent)
		}
		parents = append(parents, parent)
	}
	testkit.Must(t, server.Process.Signal(syscall.SIGTERM))
	testkit.Must(t, server.Wait())
	collector.Close() // it waits for the requests that it serves
	close(spans)
	var all []string
	for span := range spans {
		all = append(all, span)
	}
	for _, parent := range parents {
		if !slices.Contains(all, parent) {
			t.Errorf("got the caller %q, which is none of the spans %q", parent, all)
		}
	}
}
