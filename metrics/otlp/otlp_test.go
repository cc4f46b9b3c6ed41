package otlp

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/10f93571/retry/metrics"
)

const (
	taskID = "0199e3a4-7c00-7abc-8def-0123456789ab"
	caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

// decode reads a request by OTLP's own schema, strictly. OTLP's JSON has its ids in hexadecimal, protojson in base64.
func decode(text []byte) (*tracepb.TracesData, error) {
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	if err := rewriteIDs(tree); err != nil {
		return nil, err
	}
	rewritten, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	var data tracepb.TracesData
	return &data, protojson.Unmarshal(rewritten, &data)
}

func rewriteIDs(node any) error {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			if err := rewriteIDs(child); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, child := range n {
			length := map[string]int{"traceId": 16, "spanId": 8, "parentSpanId": 8}[key]
			if length == 0 {
				if err := rewriteIDs(child); err != nil {
					return err
				}
				continue
			}
			id, err := hex.DecodeString(child.(string))
			if err != nil || len(id) != length {
				return fmt.Errorf("invalid %s %v", key, child)
			}
			n[key] = base64.StdEncoding.EncodeToString(id)
		}
	}
	return nil
}

// collector answers requests and keeps those that it took.
type collector struct {
	reply func(n int) (status int, body string, h http.Header) // to the n-th request, from 1; nil for success

	lock     sync.Mutex
	requests []*http.Request
	taken    []*tracepb.TracesData
	at       []time.Time
	faults   []error
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	c.lock.Lock()
	defer c.lock.Unlock()
	data, fault := decode(text)
	if err := errors.Join(err, fault); err != nil {
		c.faults = append(c.faults, err)
	}
	c.requests, c.at = append(c.requests, r), append(c.at, time.Now())
	status, body, header := http.StatusOK, "{}", http.Header{}
	if c.reply != nil {
		if status, body, header = c.reply(len(c.requests)); status == 0 {
			return nil, errors.New("connection refused")
		}
	}
	if status == http.StatusOK {
		c.taken = append(c.taken, data)
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: header,
		Body: io.NopCloser(strings.NewReader(body))}, nil
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply, err := c.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(reply.StatusCode)
	_, _ = io.Copy(w, reply.Body)
}

// sizes are the numbers of spans in the requests that were taken.
func (c *collector) sizes() (sizes []int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, data := range c.taken {
		sizes = append(sizes, len(data.ResourceSpans[0].ScopeSpans[0].Spans))
	}
	return sizes
}

// exporter sends to a collector without a network, so that a test may hold the clock.
func exporter(t *testing.T, transport http.RoundTripper) (*Exporter, *[]string) {
	t.Helper()
	var failures []string
	e := New(Config{
		Endpoint: "http://collector.test/v1/traces", Service: "retry", Sampler: Sampler{Ratio: 1},
		OnError: func(err error) { failures = append(failures, err.Error()) },
	})
	e.client.Transport = transport
	if c, ok := transport.(*collector); ok {
		t.Cleanup(func() {
			if len(c.faults) > 0 {
				t.Errorf("requests that are no OTLP: %v", c.faults)
			}
		})
	}
	return e, &failures
}

func attempt(e *Exporter, n int) {
	e.Attempt(&Task{ID: taskID}, &Attempt{Number: n, Start: time.Unix(1, 0), End: time.Unix(2, 0), Outcome: metrics.Retry})
}

// From the variables to a real socket: the caller's span, the task's below it, the attempts below that, with the ids
// that the attempts sent.
func TestSpansOfATask(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	environment := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL + "/otel/", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret",
		"OTEL_SERVICE_NAME": "payments", "OTEL_RESOURCE_ATTRIBUTES": "host.name=h1,service.version=9,team=a%2Cb",
	}
	config, err := FromEnvironment(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	config.Version = "v1"
	e := New(*config)
	began := time.Now()
	task := &Task{ID: taskID, Caller: caller, Name: "POST api.test", Policy: "default", Client: true}
	e.Attempt(task, &Attempt{Number: 1, Start: began, End: began.Add(time.Second), Outcome: metrics.Retry,
		Error: "got 503 \xff", Attributes: []Attribute{
			{"http.response.status_code", 503}, {"kept", true}, {"size", int64(1) << 60}, {"took", 1.5},
		}})
	e.Attempt(task, &Attempt{Number: 2, Start: began, End: began.Add(-time.Second), Outcome: metrics.Success})
	e.Task(task, &TaskEnd{Start: began, End: began.Add(time.Minute), Status: "SUCCEEDED", Attempts: 2})
	e.Shutdown(t.Context())

	if len(c.faults) > 0 || len(c.taken) != 1 {
		t.Fatalf("got %d requests, faults %v", len(c.taken), c.faults)
	}
	request := c.requests[0]
	if request.URL.Path != "/otel/v1/traces" || request.Header.Get("Authorization") != "Bearer s3cret" ||
		request.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s %v", request.URL, request.Header)
	}
	data := c.taken[0].ResourceSpans[0]
	var described []string
	for _, a := range data.Resource.Attributes {
		described = append(described, a.Key+"="+a.Value.GetStringValue())
	}
	want := "service.name=payments host.name=h1 service.version=9 team=a,b"
	if got := strings.Join(described, " "); got != want {
		t.Errorf("resource: got %q, want %q", got, want)
	}
	spans := data.ScopeSpans[0].Spans
	for i, want := range []string{e.TraceParent(caller, taskID, 1), e.TraceParent(caller, taskID, 2),
		e.TraceParent(caller, taskID, 0)} {
		if got := fmt.Sprintf("00-%x-%x-01", spans[i].TraceId, spans[i].SpanId); got != want {
			t.Errorf("span %d: got %s, want %s as was sent", i, got, want)
		}
	}
	root := spans[2]
	if got := hex.EncodeToString(root.ParentSpanId); got != "00f067aa0ba902b7" {
		t.Errorf("parent of the task: got %s, want the caller's", got)
	}
	for _, s := range spans[:2] {
		if string(s.ParentSpanId) != string(root.SpanId) || s.Kind != tracepb.Span_SPAN_KIND_CLIENT {
			t.Errorf("attempt: got parent %x, kind %v", s.ParentSpanId, s.Kind)
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("attempt: it ends at %d, before %d", s.EndTimeUnixNano, s.StartTimeUnixNano)
		}
	}
	if s := spans[0].Status; s.GetCode() != tracepb.Status_STATUS_CODE_ERROR || s.GetMessage() != "got 503 \uFFFD" {
		t.Errorf("status: got %v", s)
	}
	if spans[1].Status != nil || root.Status != nil {
		t.Errorf("status of a success: got %v, %v", spans[1].Status, root.Status)
	}
	var had []string
	for _, a := range spans[0].Attributes {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			had = append(had, fmt.Sprintf("%s=%q", a.Key, v.StringValue))
		case *commonpb.AnyValue_IntValue:
			had = append(had, fmt.Sprintf("%s=%d", a.Key, v.IntValue))
		case *commonpb.AnyValue_BoolValue:
			had = append(had, fmt.Sprintf("%s=%v", a.Key, v.BoolValue))
		}
	}
	want = `retry.task.id="` + taskID + `" retry.policy="default" retry.attempt=1 retry.outcome="retry" ` +
		`http.response.status_code=503 kept=true size=1152921504606846976 took="1.5"`
	if got := strings.Join(had, " "); got != want {
		t.Errorf("attributes: got %s, want %s", got, want)
	}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, _ := exporter(t, c)
		began := time.Now()
		for n := range 2*batchSize + 3 {
			attempt(e, n)
		}
		synctest.Wait()
		if got := c.sizes(); !slices.Equal(got, []int{batchSize, batchSize}) || time.Since(began) != 0 {
			t.Errorf("at once: got %v after %s", got, time.Since(began))
		}
		time.Sleep(batchDelay)
		synctest.Wait()
		if got := c.sizes(); !slices.Equal(got, []int{batchSize, batchSize, 3}) {
			t.Errorf("after %s: got %v", batchDelay, got)
		}
		e.Shutdown(t.Context())
		e.Shutdown(t.Context())
	})
}

func TestACollectorThatRefuses(t *testing.T) {
	const ok = http.StatusOK
	for name, row := range map[string]struct {
		statuses []int // of the replies; 0 for none
		header   http.Header
		body     string
		requests int
		dropped  uint64
		waited   time.Duration
		failure  string
	}{
		"success":            {statuses: []int{ok}, requests: 1},
		"no reply, then one": {statuses: []int{0, ok}, requests: 2, waited: time.Second},
		"503, then success":  {statuses: []int{503, ok}, requests: 2, waited: time.Second},
		"429 with Retry-After": {
			statuses: []int{429, ok}, header: http.Header{"Retry-After": {"3"}}, requests: 2, waited: 3 * time.Second,
		},
		"429 for an hour": {
			statuses: []int{429, ok}, header: http.Header{"Retry-After": {"3600"}}, requests: 2, waited: maxRetryDelay,
		},
		"503 twice": {
			statuses: []int{503, 503}, requests: 2, waited: time.Second, dropped: 3,
			failure: "send spans: the collector replied 503",
		},
		"400": {statuses: []int{400}, requests: 1, dropped: 3, failure: "send spans: the collector replied 400"},
		"a redirect": {
			statuses: []int{307}, header: http.Header{"Location": {"http://elsewhere.test"}}, requests: 1, dropped: 3,
			failure: "send spans: the collector replied 307",
		},
		"a part": {
			statuses: []int{ok}, body: `{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "x"}}`, requests: 1,
			dropped: 2, failure: "send spans: the collector rejected 2 spans",
		},
		"a part, as a number": {
			statuses: []int{ok}, body: `{"partialSuccess": {"rejectedSpans": 1}}`, requests: 1,
			dropped: 1, failure: "send spans: the collector rejected 1 spans",
		},
		"more than were sent": {
			statuses: []int{ok}, body: `{"partialSuccess": {"rejectedSpans": "99999"}}`, requests: 1,
			dropped: 3, failure: "send spans: the collector rejected 99999 spans",
		},
		"nonsense": {statuses: []int{ok}, body: `[`, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &collector{reply: func(n int) (int, string, http.Header) { return row.statuses[n-1], row.body, row.header }}
				e, failures := exporter(t, c)
				for n := range 3 {
					attempt(e, n)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(c.requests) != row.requests {
					t.Fatalf("got %d requests, want %d", len(c.requests), row.requests)
				}
				if got := c.at[len(c.at)-1].Sub(c.at[0]); got != row.waited {
					t.Errorf("waited: got %s, want %s", got, row.waited)
				}
				if got := e.config.Dropped.Value(); got != row.dropped {
					t.Errorf("dropped: got %d, want %d", got, row.dropped)
				}
				if got := strings.Join(*failures, ", "); got != row.failure {
					t.Errorf("failures: got %q, want %q", got, row.failure)
				}
				e.Shutdown(t.Context())
			})
		})
	}
}

// A failure is told once, and again after a success.
func TestFailuresAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		statuses := []int{400, 400, 200, 400}
		c := &collector{reply: func(n int) (int, string, http.Header) { return statuses[n-1], "", nil }}
		e, failures := exporter(t, c)
		for range statuses {
			attempt(e, 1)
			time.Sleep(time.Minute)
		}
		e.Shutdown(t.Context())
		if len(*failures) != 2 {
			t.Errorf("got %q, want two failures", *failures)
		}
	})
}

// hung is a collector that takes requests and never replies.
type hung struct{}

func (hung) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A collector that hangs costs spans: no attempt waits for it, nor does the end of the process for long.
func TestACollectorThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := exporter(t, hung{})
		const spans = 3 * queueSize
		began := time.Now()
		for n := range spans {
			attempt(e, n)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("attempts waited for %s", took)
		}
		if got := e.config.Dropped.Value(); got < spans-queueSize-batchSize || got >= spans {
			t.Errorf("got %d dropped of %d", got, spans)
		}
		began = time.Now()
		e.Shutdown(t.Context())
		if took := time.Since(began); took != flushPatience {
			t.Errorf("the end took %s, want %s", took, flushPatience)
		}
		attempt(e, 1)
		if got := e.config.Dropped.Value(); got != spans+1 {
			t.Errorf("got %d dropped, want all %d", got, spans+1)
		}
	})
}

// The end sends what is queued without waiting for a retry's time.
func TestShutdownSendsWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{reply: func(n int) (int, string, http.Header) {
			return map[bool]int{true: 503, false: 200}[n == 1], "", http.Header{"Retry-After": {"5"}}
		}}
		e, _ := exporter(t, c)
		for n := range 1000 {
			attempt(e, n)
		}
		began := time.Now()
		e.Shutdown(t.Context())
		if got := c.sizes(); !slices.Equal(got, []int{512, 488}) || time.Since(began) != 0 {
			t.Errorf("got %v after %s", got, time.Since(began))
		}
	})
}

func TestShutdownObeysItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := exporter(t, hung{})
		attempt(e, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		e.Shutdown(ctx)
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("got %s, want 1ms", took)
		}
	})
}

func TestManyAttemptsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, _ := exporter(t, c)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for n := range 1000 {
					attempt(e, n)
				}
			})
		}
		wait.Wait()
		e.Shutdown(t.Context())
		sent := 0
		for _, size := range c.sizes() {
			sent += size
		}
		if dropped := e.config.Dropped.Value(); sent != 8000 || dropped != 0 {
			t.Errorf("got %d sent and %d dropped, want 8000 and 0", sent, dropped)
		}
	})
}

func TestNoExporter(t *testing.T) {
	var e *Exporter
	attempt(e, 1)
	e.Task(&Task{ID: taskID}, &TaskEnd{})
	e.Shutdown(t.Context())
}

func BenchmarkAttempt(b *testing.B) {
	e := New(Config{Endpoint: "http://127.0.0.1:1", Sampler: Sampler{Ratio: 1}})
	defer e.Shutdown(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		attempt(e, 1)
	}
}

func BenchmarkEncode(b *testing.B) {
	e := &Exporter{config: Config{Sampler: Sampler{Ratio: 1}}, queue: make(chan span, batchSize)}
	spans := make([]span, batchSize)
	for i := range spans {
		attempt(e, i)
		spans[i] = <-e.queue
	}
	b.ReportAllocs()
	for b.Loop() {
		text, _ := e.encode(spans)
		b.SetBytes(int64(len(text)))
	}
}
