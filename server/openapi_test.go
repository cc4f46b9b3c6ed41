package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/10f93571/retry/internal/testkit"
)

// description reads openapi.json once.
var description = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(openAPI))
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	return gorillamux.NewRouter(doc)
})

// conforms holds an exchange against openapi.json. A request is checked where the server took it: many tests send wrong
// ones.
func conforms(t testing.TB, r *http.Request, body string, a answer) {
	t.Helper()
	router, err := description()
	testkit.Must(t, err)
	r = r.Clone(context.Background())
	r.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	r.Body = io.NopCloser(strings.NewReader(body))
	if r.Method == http.MethodHead {
		r.Method = http.MethodGet
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && r.Method != http.MethodOptions {
			t.Errorf("%s: got %d, and openapi.json has no such call", a.asked, a.status)
		}
		return
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		ExcludeResponseBody: a.body == "", ExcludeReadOnlyValidations: true,
	}
	asked := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	if a.status < 400 {
		if err := openapi3filter.ValidateRequest(t.Context(), asked); err != nil {
			t.Errorf("%s: the server takes what openapi.json does not allow: %v", a.asked, err)
		}
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: a.status, Header: a.header,
		Body: io.NopCloser(bytes.NewBufferString(a.body)), Options: options,
	})
	if err != nil {
		t.Errorf("%s: got %d %s, which openapi.json does not describe: %v", a.asked, a.status, a.body, err)
	}
}

func TestEveryCallIsDescribed(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(openAPI))
	testkit.Must(t, err)
	var described, calls []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	for _, call := range (&Server{}).calls() {
		calls = append(calls, strings.TrimSuffix(call.pattern, "{$}"))
	}
	slices.Sort(described)
	slices.Sort(calls)
	if !slices.Equal(described, calls) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(described, "\n"), strings.Join(calls, "\n"))
	}
}

// Nobody needs a token for the description, so it costs no more than to send it.
func TestDescriptionIsEncodedOnce(t *testing.T) {
	s := newRig(t).server
	one, err := s.described()
	testkit.Must(t, err)
	if two, _ := s.described(); &one.line[0] != &two.line[0] {
		t.Error("got it encoded twice, want once")
	}
}

func TestDocsNameEveryCall(t *testing.T) {
	docs := testkit.Contents(t, "../docs/api.md")
	for _, call := range (&Server{}).calls() {
		if _, path, _ := strings.Cut(call.pattern, " "); path != "/{$}" && !strings.Contains(docs, path) {
			t.Errorf("docs/api.md does not name %s", call.pattern)
		}
	}
}
