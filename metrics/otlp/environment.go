package otlp

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// FromEnvironment reads OpenTelemetry's variables. It returns nil where they ask for no traces. An error names its
// variable and never holds the value of a header.
func FromEnvironment(get func(name string) string) (*Config, error) {
	endpoint, err := endpointFrom(get)
	if endpoint == "" || err != nil || strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") ||
		get("OTEL_TRACES_EXPORTER") == "none" {
		return nil, err
	}
	c := &Config{Endpoint: endpoint}
	if c.Sampler, err = samplerFrom(get); err != nil || c.Sampler == (Sampler{}) {
		return nil, err
	}
	if c.Headers, err = headersFrom(get); err != nil {
		return nil, err
	}
	if c.Timeout, err = timeoutFrom(get); err != nil {
		return nil, err
	}
	name := either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL", get)
	if protocol := get(name); protocol == "grpc" {
		return nil, fmt.Errorf("%s: %q is not supported\nhint: http/json, whose port is 4318 as a rule", name, protocol)
	}
	return c, c.describe(get)
}

// either returns the variable that holds: the first, which is about traces alone, unless it is empty.
func either(traces, all string, get func(string) string) string {
	if get(traces) != "" {
		return traces
	}
	return all
}

func endpointFrom(get func(string) string) (string, error) {
	name := either("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", get)
	value := get(name)
	if value == "" {
		return "", nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("%s: invalid URL\nhint: http://localhost:4318", name) // it may hold a password
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" { // the base of all signals
		u = u.JoinPath("v1/traces")
	}
	return u.String(), nil
}

func samplerFrom(get func(string) string) (Sampler, error) {
	name := cmp.Or(get("OTEL_TRACES_SAMPLER"), "parentbased_always_on")
	root, parentBased := strings.CutPrefix(name, "parentbased_")
	s := Sampler{Parent: parentBased}
	switch root {
	case "always_on":
		s.Ratio = 1
	case "always_off":
	case "traceidratio":
		const variable = "OTEL_TRACES_SAMPLER_ARG"
		ratio, err := strconv.ParseFloat(cmp.Or(get(variable), "1"), 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return s, fmt.Errorf("%s: invalid ratio %q\nhint: a number from 0 to 1", variable, get(variable))
		}
		s.Ratio = ratio
	default:
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER: unknown sampler %q"+
			"\nhint: always_on, always_off or traceidratio, each also with parentbased_ before it", name)
	}
	return s, nil
}

func headersFrom(get func(string) string) (http.Header, error) {
	name := either("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", get)
	pairs, err := parsePairs(get(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	h := http.Header{}
	for _, pair := range pairs {
		if !isToken(pair[0]) || strings.ContainsFunc(pair[1], isControl) {
			return nil, fmt.Errorf("%s: invalid header %q", name, pair[0])
		}
		h.Set(pair[0], pair[1])
	}
	return h, nil
}

func timeoutFrom(get func(string) string) (time.Duration, error) {
	name := either("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", get)
	value := get(name)
	if value == "" {
		return 0, nil
	}
	milliseconds, err := strconv.ParseInt(value, 10, 32)
	if err != nil || milliseconds < 1 {
		return 0, fmt.Errorf("%s: invalid timeout %q\nhint: milliseconds, such as 10000", name, value)
	}
	return time.Duration(milliseconds) * time.Millisecond, nil
}

// describe sets the attributes of the service.
func (c *Config) describe(get func(string) string) error {
	const variable = "OTEL_RESOURCE_ATTRIBUTES"
	pairs, err := parsePairs(get(variable))
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	c.Service = get("OTEL_SERVICE_NAME")
	for _, pair := range pairs {
		if pair[0] != "service.name" {
			c.Resource = append(c.Resource, Attribute{pair[0], pair[1]})
		} else if c.Service == "" {
			c.Service = pair[1]
		}
	}
	c.Service = cmp.Or(c.Service, "retry")
	return nil
}

// parsePairs reads name=value,…, with values percent-encoded as in W3C's Baggage.
func parsePairs(list string) (pairs [][2]string, err error) {
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !found || name == "" {
			return nil, fmt.Errorf("invalid pair %d\nhint: name=value,name=value", len(pairs)+1) // it may be a secret
		}
		if value, err = url.PathUnescape(strings.TrimSpace(value)); err != nil {
			return nil, fmt.Errorf("invalid value of %q\nhint: %%25 is a percent sign", name)
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, nil
}

// isToken reports whether a text can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
