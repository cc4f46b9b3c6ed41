package access

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// whoAmI answers with who calls.
var whoAmI = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	who := Of(r.Context())
	body, err := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "%s %s %d %v", who.Name, who.Scope, len(body), err)
})

// serve starts a server on loopback with the checks of a Config, as NewServer makes it.
func serve(t *testing.T, c Config) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(New(c).Handler(whoAmI))
	server.Config.ConnContext = ConnContext
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// ask sends a request, and returns the status and the body. Headers are "Name: value".
func ask(t *testing.T, client *http.Client, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	testkit.Must(t, err)
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	reply, err := client.Do(r)
	testkit.Must(t, err)
	defer func() { _ = reply.Body.Close() }()
	content, err := io.ReadAll(reply.Body)
	testkit.Must(t, err)
	for name := range reply.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("got the header %s, want no CORS", name)
		}
	}
	return reply.StatusCode, string(content)
}

// add makes a token in a file.
func add(t testing.TB, file, name string, scope Scope) string {
	t.Helper()
	token, err := Add(file, name, scope)
	testkit.Must(t, err)
	return token
}

// open opens a token file, whose warnings fail the test.
func open(t testing.TB, file string) *Tokens {
	t.Helper()
	tokens, err := OpenTokens(file, func(err error) { t.Errorf("warned: %v", err) })
	testkit.Must(t, err)
	return tokens
}
