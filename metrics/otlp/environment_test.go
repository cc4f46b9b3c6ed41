package otlp

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFromEnvironment(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	whole := Config{
		Endpoint: "http://c:4318/v1/traces", Headers: http.Header{}, Service: "retry",
		Sampler: Sampler{Parent: true, Ratio: 1},
	}
	changed := func(change func(*Config)) *Config {
		c := whole
		change(&c)
		return &c
	}
	for _, row := range []struct {
		name        string
		environment map[string]string
		want        *Config
	}{
		{"nothing", nil, nil},
		{"an endpoint", map[string]string{endpoint: "http://c:4318"}, &whole},
		{"with a slash", map[string]string{endpoint: "http://c:4318/"}, &whole},
		{"of traces, as it is", map[string]string{
			endpoint: "http://other", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/x?y=1",
		}, changed(func(c *Config) { c.Endpoint = "https://c/x?y=1" })},
		{"disabled", map[string]string{endpoint: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, nil},
		{"no traces", map[string]string{endpoint: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, nil},
		{"always_off", map[string]string{endpoint: "http://c:4318", "OTEL_TRACES_SAMPLER": "always_off"}, nil},
		{"a ratio", map[string]string{
			endpoint: "http://c:4318", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1",
		}, changed(func(c *Config) { c.Sampler = Sampler{Ratio: 0.1} })},
		{"no ratio", map[string]string{endpoint: "http://c:4318", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}, &whole},
		{"headers", map[string]string{endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": " a = b%3Dc=d ,, x=1"},
			changed(func(c *Config) { c.Headers = http.Header{"A": {"b=c=d"}, "X": {"1"}} })},
		{"headers of traces", map[string]string{
			endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a=b", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "c=d",
		}, changed(func(c *Config) { c.Headers = http.Header{"C": {"d"}} })},
		{"a timeout", map[string]string{endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_TIMEOUT": "1500"},
			changed(func(c *Config) { c.Timeout = 1500 * time.Millisecond })},
		{"a name among the attributes", map[string]string{
			endpoint: "http://c:4318", "OTEL_RESOURCE_ATTRIBUTES": "service.name=a,k=v",
		}, changed(func(c *Config) { c.Service, c.Resource = "a", []Attribute{{"k", "v"}} })},
		{"two names", map[string]string{
			endpoint: "http://c:4318", "OTEL_RESOURCE_ATTRIBUTES": "service.name=a", "OTEL_SERVICE_NAME": "b",
		}, changed(func(c *Config) { c.Service = "b" })},
		{"protobuf: the same port takes JSON", map[string]string{
			endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
		}, &whole},
	} {
		got, err := FromEnvironment(func(name string) string { return row.environment[name] })
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: got %+v, %v, want %+v", row.name, got, err, row.want)
		}
	}
}

// A mistake names its variable, and shows no secret.
func TestMistakesInTheEnvironment(t *testing.T) {
	for name, values := range map[string][]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":        {"localhost:4318", "s3cret", "ftp://s3cret", "http://", "http://a:s3cret@h:x"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": {"unix:/s3cret"},
		"OTEL_EXPORTER_OTLP_HEADERS":         {"s3cret", "a=s3cret%zz", "a b=s3cret", "a=s3cret%0A", "=s3cret"},
		"OTEL_RESOURCE_ATTRIBUTES":           {"s3cret", "k=%"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":         {"10s", "0", "-1", "99999999999"},
		"OTEL_TRACES_SAMPLER":                {"sometimes", "parentbased_"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":        {"grpc"},
		"OTEL_TRACES_SAMPLER_ARG":            {"2", "-1", "NaN", "half"},
	} {
		for _, value := range values {
			config, err := FromEnvironment(func(asked string) string {
				switch asked {
				case name:
					return value
				case "OTEL_EXPORTER_OTLP_ENDPOINT":
					return "http://c:4318"
				case "OTEL_TRACES_SAMPLER":
					return "traceidratio"
				}
				return ""
			})
			if err == nil || !strings.HasPrefix(err.Error(), name) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s=%s: got %+v, %v", name, value, config, err)
			}
		}
	}
}

func FuzzFromEnvironment(f *testing.F) {
	f.Add("http://c", "a=b", "k=v", "1000")
	f.Fuzz(func(t *testing.T, endpoint, headers, attributes, timeout string) {
		environment := map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_HEADERS": headers,
			"OTEL_RESOURCE_ATTRIBUTES": attributes, "OTEL_EXPORTER_OTLP_TIMEOUT": timeout,
		}
		c, err := FromEnvironment(func(name string) string { return environment[name] })
		if err != nil || c == nil {
			return
		}
		request, err := http.NewRequest(http.MethodPost, c.Endpoint, nil)
		if err != nil {
			t.Fatalf("endpoint %q: %v", c.Endpoint, err)
		}
		request.Header = c.Headers
		if err := request.Write(discard{}); err != nil {
			t.Fatalf("a request with headers %v: %v", c.Headers, err)
		}
	})
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
