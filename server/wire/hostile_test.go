package wire

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/server/problem"
)

// list writes a list of so many values.
func list(n int, value func(i int) string) string {
	values := make([]string, n)
	for i := range values {
		values[i] = value(i)
	}
	return strings.Join(values, ",")
}

// What a hostile client sends a lot of is one mistake, and costs a small multiple of the memory of the body.
func TestHostileBodies(t *testing.T) {
	always := func(text string) func(int) string { return func(int) string { return text } }
	named := func(i int) string { return fmt.Sprintf(`"h%d":"a"`, i) }
	long := strings.Repeat("x", 300_000)
	for _, tt := range []struct{ name, target, field, want string }{
		{"headers", "http://a.b/", `"headers":{` + list(90_000, named) + `}`,
			"/headers: the object has more than 1000 names"},
		{"some headers", "http://a.b/", `"headers":{` + list(101, named) + `}`, "/headers: there are more than 100 headers"},
		{"metadata", "grpc://a.b:1/a.B/C", `"headers":{` + list(90_000, named) + `}`,
			"/headers: the object has more than 1000 names"},
		{"values of two headers", "http://a.b/", `"headers":{"a":[` + list(60, always(`""`)) + `],"b":[` +
			list(60, always(`""`)) + `]}`, "/headers: there are more than 100 headers"},
		{"values of a header", "http://a.b/", `"headers":{"a":[` + list(200_000, always("1")) + `]}`,
			"/headers/a: want at most 100 elements, got 200000"},
		{"values of a long header", "http://a.b/", `"headers":{"` + long + `":[` + list(200_000, always("1")) + `]}`,
			"/headers: the headers have more than 32768 bytes together"},
		{"a long value", "http://a.b/", `"headers":{"a":"` + long + `"}`,
			"/headers: the headers have more than 32768 bytes together"},
		{"tags", "http://a.b/", `"tags":[` + list(200_000, always("1")) + `]`, "/tags: want at most 20 elements, got 200000"},
		{"statuses", "http://a.b/", `"policy":{"retryableStatusCodes":[` + list(200_000, always("1")) + `]}`,
			"/policy/retryableStatusCodes: want at most 1000 elements, got 200000"},
		{"conditions", "http://a.b/", `"policy":{"retryOn":[` + list(100_000, always(`"a"`)) + `]}`,
			"/policy/retryOn: want at most 100 elements, got 100000"},
		{"backoff", "http://a.b/", `"policy":{"backoff":"` + list(100_000, always("1s")) + `"}`,
			"/policy/backoff: it has 299999 bytes, more than 16384"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"targetUrl":"` + tt.target + `",` + tt.field + `}`
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			o, err := problem.Parse([]byte(body))
			testkit.Must(t, err)
			(&Decoder{}).New(o, Header{})
			err = o.Finish()
			runtime.ReadMemStats(&after)
			p, _ := errors.AsType[*problem.Problem](err)
			if p == nil || len(p.Errors) != 1 || p.Errors[0].Pointer+": "+p.Errors[0].Detail != tt.want {
				t.Errorf("got %.300v, want %s alone", err, tt.want)
			}
			// The index of the members of an object is the largest part.
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+60*uint64(len(body)) {
				t.Errorf("got %d bytes allocated for a body of %d", used, len(body))
			}
		})
	}
}

// The conditions of a batch are bounded together: each is compiled.
func TestConditionsOfABatch(t *testing.T) {
	made := 0
	one := `{"targetUrl":"http://a.b/","policy":{"retryOn":[` + list(50, func(int) string { return `"status == 1"` }) +
		`],"rules":[` + list(50, func(int) string { return `{"when":"503","backoff":"1s"}` }) + `]}}`
	o, err := problem.Parse([]byte(`{"tasks":[` + list(102, func(int) string { return one }) + `]}`))
	testkit.Must(t, err)
	for _, task := range o.Objects("tasks", 1000) {
		p := (&Decoder{}).New(task, Header{}).Policy
		made += len(p.RetryOn) + len(p.Rules)
	}
	p, _ := errors.AsType[*problem.Problem](o.Finish())
	if made != maxCompiled || p == nil || len(p.Errors) != 4 ||
		!strings.HasPrefix(p.Errors[0].Detail, "the body has more than 10000 conditions together") {
		t.Errorf("got %d conditions and %v, want %d and a mistake for each list beyond", made, p, maxCompiled)
	}
}
