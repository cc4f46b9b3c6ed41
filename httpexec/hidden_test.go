package httpexec

import (
	"strings"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

// TestRepeatedSecret has a server repeat what it was sent, as services that show a request do.
func TestRepeatedSecret(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"PW": `p@w"d/secret`, "TOKEN": "token-secret"}[name]
		return value, ok
	}
	tests := map[string]struct {
		change func(r *request.Request)
		repeat string // what the server says
		want   string
	}{
		"-u, as it is sent": {func(r *request.Request) { r.User = "me:{env:PW}" }, "Basic bWU6cEB3ImQvc2VjcmV0!", "Basic ***!"},
		"-u, in JSON":       {func(r *request.Request) { r.User = "me:{env:PW}" }, `"p@w\"d/secret"`, `"{env:PW}"`},
		"-u, in a URL":      {func(r *request.Request) { r.User = "me:{env:PW}" }, "p%40w%22d%2Fsecret", "{env:PW}"},
		"-u, typed":         {func(r *request.Request) { r.User = "me:typed" }, "typed bWU6dHlwZWQ=", "*** ***"},
		"a key alone":       {func(r *request.Request) { r.User = "sk_live_1234:" }, "no key sk_live_1234", "no key ***"},
		"a short name":      {func(r *request.Request) { r.User = "name:" }, "no name", "no name"},
		"the URL":           {func(r *request.Request) { r.URL = strings.Replace(r.URL, "://", "://me:{env:PW}@", 1) }, "bWU6cEB3ImQvc2VjcmV0", "***"},
		"a typed header": {func(r *request.Request) { r.Header = []string{"authorization: Bearer typed"} },
			"typed is no token", "*** is no token"},
		"a mixed one": {func(r *request.Request) { r.Header = []string{"X-Api-Key: a-{env:TOKEN}"} }, "key a-token-secret", "key ***"},
		"cookies": {func(r *request.Request) { r.Header = []string{"Cookie: theme=dark; session=12345678"} },
			"dark 12345678", "dark ***"},
		"what is no secret": {func(r *request.Request) { r.Header = []string{"X-Other: typed"} }, "typed", "typed"},
		"one that is cut": {func(r *request.Request) { r.Header = []string{"X: {env:TOKEN}"} },
			"token-secret" + strings.Repeat("y", task.StoredTail-4), "KEN}" + strings.Repeat("y", task.StoredTail-4)},
		"one before the end that is kept": {func(r *request.Request) { r.Header = []string{"X: {env:TOKEN}"} },
			strings.Repeat("x", 3) + "token-secret" + strings.Repeat("y", task.StoredTail), strings.Repeat("y", task.StoredTail-1)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, replies("HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%s", len(tt.repeat), tt.repeat))
			c := asking(t, s.url("http"), func(c *client) { c.task.Options.Capture, c.Lookup = task.CaptureStderr, lookup })
			tt.change(request.Of(c.task))
			got := c.attempt().Stdout
			if got != tt.want {
				t.Errorf("of %.60q the journal keeps %.60q, want %.60q", tt.repeat, got, tt.want)
			}
		})
	}
}
