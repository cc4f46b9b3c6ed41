package metrics_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/10f93571/retry/metrics"
)

// parse reads a text with Prometheus' own parser of its format.
func parse(t testing.TB, text []byte, contentType string) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := tryParse(text, contentType)
	if err != nil {
		t.Fatalf("the text is not valid as %s: %v\n%s", contentType, err, text)
	}
	return families
}

func tryParse(text []byte, contentType string) (map[string]*dto.MetricFamily, error) {
	format := expfmt.ResponseFormat(http.Header{"Content-Type": {contentType}})
	families := map[string]*dto.MetricFamily{}
	decoder := expfmt.NewDecoder(bytes.NewReader(text), format.WithEscapingScheme(model.UnderscoreEscaping))
	for {
		var family dto.MetricFamily
		switch err := decoder.Decode(&family); {
		case errors.Is(err, io.EOF):
			return families, nil
		case err != nil:
			return nil, err
		}
		families[family.GetName()] = &family
	}
}

func TestBothFormatsExactly(t *testing.T) {
	var r metrics.Registry
	r.Collect(func(_ ctx, t *metrics.Text) {
		t.Family("x_build_info", "The \"build\".", metrics.TypeGauge)
		t.Sample(1, metrics.Label{Name: "version", Value: "v1"})
	})
	requests := r.NewCounterVec("x_requests_total", "Requests.\nTwo \\ lines.", "code", "path")
	requests.With("500", `a"b\c`+"\n").Add(3)
	requests.With("200", "\xff").Inc()
	r.NewCounterVec("x_never_total", "A family without a member.", "code")
	r.NewGauge("x_open", "Open.").Set(-2)
	r.NewGaugeFunc("x_limit", "Limit.", func() float64 { return math.Inf(1) })
	took := r.NewHistogram("x_seconds", "Took.", []time.Duration{time.Millisecond, time.Second})
	for _, d := range []time.Duration{-time.Hour, time.Millisecond, time.Millisecond + 1, time.Second, time.Minute} {
		took.Observe(d)
	}
	const samples = `x_requests_total{code="200",path="` + "\uFFFD" + `"} 1
x_requests_total{code="500",path="a\"b\\c\n"} 3
# HELP x_open Open.
# TYPE x_open gauge
x_open -2
# HELP x_limit Limit.
# TYPE x_limit gauge
x_limit +Inf
# HELP x_seconds Took.
# TYPE x_seconds histogram
x_seconds_bucket{le="0.001"} 2
x_seconds_bucket{le="1.0"} 4
x_seconds_bucket{le="+Inf"} 5
x_seconds_sum 61.002000001
x_seconds_count 5
# EOF
`
	for format, head := range map[metrics.Format]string{
		metrics.Prometheus: `# HELP x_build_info The "build".
# TYPE x_build_info gauge
x_build_info{version="v1"} 1
# HELP x_requests_total Requests.\nTwo \\ lines.
# TYPE x_requests_total counter
`,
		metrics.OpenMetrics: `# HELP x_build_info The \"build\".
# TYPE x_build_info gauge
x_build_info{version="v1"} 1
# HELP x_requests Requests.\nTwo \\ lines.
# TYPE x_requests counter
`,
	} {
		got := string(r.Text(t.Context(), format))
		if got != head+samples {
			t.Errorf("%s: got\n%s\nwant\n%s", format.ContentType(), got, head+samples)
		}
		parse(t, []byte(got), format.ContentType())
	}
}

// Whatever a label holds, the parser finds it again, in both formats.
func TestAnyValueOfALabelIsFoundAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := string(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\"\\\n\r{},= \xff"))), 0,
			8).Draw(t, "value"))
		number := rapid.Float64().Draw(t, "number")
		for _, format := range []metrics.Format{metrics.Prometheus, metrics.OpenMetrics} {
			text := metrics.NewText(format)
			text.Family("x", "Help "+value, metrics.TypeGauge)
			text.Sample(number, metrics.Label{Name: "name", Value: value})
			families, err := tryParse(text.End(), format.ContentType())
			if err != nil {
				t.Fatalf("%s: %v", format.ContentType(), err)
			}
			sample := families["x"].GetMetric()[0]
			want := strings.ToValidUTF8(value, "\uFFFD")
			if got := sample.GetLabel()[0].GetValue(); got != want {
				t.Fatalf("%s: got %q, want %q", format.ContentType(), got, want)
			}
			if got := sample.GetGauge().GetValue(); got != number {
				t.Fatalf("%s: got %v, want %v", format.ContentType(), got, number)
			}
		}
	})
}

func TestNegotiate(t *testing.T) {
	for _, row := range []struct {
		accept string
		want   metrics.Format
	}{
		{"", metrics.Prometheus},
		{"*/*", metrics.Prometheus},
		{"text/html,*/*;q=0.8", metrics.Prometheus},
		{"text/plain", metrics.Prometheus},
		{"application/openmetrics-text", metrics.OpenMetrics},
		{"application/openmetrics-text; version=1.0.0", metrics.OpenMetrics},
		{"application/openmetrics-text; version=2.0.0", metrics.Prometheus},
		{"application/openmetrics-text;version=1.0.0;q=0.5, text/plain;version=0.0.4;q=0.4,*/*;q=0.1", metrics.OpenMetrics},
		{"application/openmetrics-text;q=0.3, text/plain;q=0.4", metrics.Prometheus},
		{"text/plain, application/openmetrics-text", metrics.OpenMetrics},
		{"application/openmetrics-text;q=0", metrics.Prometheus},
		{"application/openmetrics-text;q=2", metrics.Prometheus},
		{"application/openmetrics-text;q=NaN", metrics.Prometheus},
		// Prometheus 2.42, and 3 with its escaping
		{"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75," +
			"text/plain;version=0.0.4;q=0.5,*/*;q=0.1", metrics.OpenMetrics},
		{"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7," +
			"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.3", metrics.OpenMetrics},
	} {
		if got := metrics.Negotiate(http.Header{"Accept": {row.accept}}); got != row.want {
			t.Errorf("%q: got %s, want %s", row.accept, got.ContentType(), row.want.ContentType())
		}
	}
	twice := http.Header{"Accept": {"text/html", "application/openmetrics-text"}}
	if got := metrics.Negotiate(twice); got != metrics.OpenMetrics {
		t.Errorf("two headers: got %s", got.ContentType())
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("application/openmetrics-text;version=1.0.0;q=0.5,*/*")
	f.Add(`text/plain;q="0.5,`)
	f.Fuzz(func(t *testing.T, accept string) {
		got := metrics.Negotiate(http.Header{"Accept": {accept}})
		if got == metrics.OpenMetrics && !strings.Contains(strings.ToLower(accept), "openmetrics") {
			t.Errorf("%q: got OpenMetrics, which was not asked for", accept)
		}
	})
}

func TestAScrape(t *testing.T) {
	s := filled()
	server := httptest.NewServer(s)
	defer server.Close()
	for _, accept := range []string{"", "application/openmetrics-text;version=1.0.0"} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		request.Header.Set("Accept", accept)
		reply, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		kind := reply.Header.Get("Content-Type")
		if got := strings.HasPrefix(kind, "application/openmetrics-text"); got != (accept != "") {
			t.Errorf("Accept %q: got %s", accept, kind)
		}
		if families := parse(t, text, kind); len(families) < 15 {
			t.Errorf("Accept %q: got %d families\n%s", accept, len(families), text)
		}
	}
}
