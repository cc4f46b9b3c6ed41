package httpexec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
)

func TestCheck(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	ok(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	tests := []struct {
		name    string
		request request.Request
		says    string // empty: nothing is wrong
	}{
		{"a plain one", request.Request{Method: "GET", URL: "host"}, ""},
		{"all of it", request.Request{Method: "POST", URL: "https://{env:HOST}/", Header: lines("A: {env:TOKEN}", "B:", "C;"), User: "me:{env:PW}",
			Network: request.Network{Proxy: "me:{env:PW}@p:1", Resolve: lines("host:1:::1")}}, ""},
		{"URL", request.Request{Method: "GET", URL: "http://ho st/"}, "hint: write a space as %20"},
		{"scheme", request.Request{Method: "GET", URL: "ftp://host/"}, "neither http nor https"},
		{"method", request.Request{Method: "GE T", URL: "host"}, "is no method"},
		{"header", request.Request{Method: "GET", URL: "host", Header: lines("A: b", "nothing")}, "header 2 has no colon"},
		{"variable in the URL", request.Request{Method: "GET", URL: "http://{env:UNSET}/"}, "UNSET is not set"},
		{"variable in a header", request.Request{Method: "GET", URL: "host", Header: lines("A: {env:UNSET}")}, "header A: "},
		{"variable of the user", request.Request{Method: "GET", URL: "host", User: "{env:UNSET}"}, "the user: "},
		{"variable of the proxy", request.Request{Method: "GET", URL: "host", Network: request.Network{Proxy: "{env:UNSET}"}}, "the proxy: "},
		{"proxy", request.Request{Method: "GET", URL: "host", Network: request.Network{Proxy: "ftp://p"}}, "the proxy cannot be used"},
		{"address", request.Request{Method: "GET", URL: "host", Network: request.Network{Resolve: lines("host:1:name")}}, "an address that is none"},
		{"authorities", request.Request{Method: "GET", URL: "host", Network: request.Network{CACert: garbage}}, "PEM"},
		{"certificate", request.Request{Method: "GET", URL: "host", Network: request.Network{Cert: garbage}}, "PEM"},
		{"query", request.Request{Method: "GET", URL: "host", Get: true, Body: aPart("a b")}, "hint: give it with --data-urlencode"},
		{"an encoded query", request.Request{Method: "GET", URL: "host", Get: true, Body: []request.Part{{Text: []byte("a b"), Encode: true}}}, ""},
		{"data", request.Request{Method: "POST", URL: "host", Body: aPart("a b")}, ""},
		{"key alone", request.Request{Method: "GET", URL: "host", Network: request.Network{Key: garbage}}, "no certificate"},
	}
	for _, tt := range tests {
		err := Check(&tt.request, variables)
		if err == nil && tt.says != "" || err != nil && (tt.says == "" || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for key, good := range map[string]bool{"a-1 \"b\\": true, "a\n": false, "\u00fc": false, "\x7f": false} {
		if err := CheckKey(key); (err == nil) != good {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestLiteralSecrets(t *testing.T) {
	r := request.Request{
		URL: "http://me:pw@host/", User: "me:pw", Network: request.Network{Proxy: "me:pw@p:1"},
		Header: lines("authorization: Bearer abc", "Cookie: a=b", "X-Api-Key:", "X-Other: c"),
	}
	want := "[the header authorization the header Cookie the password in the URL the user's password the proxy's password]"
	if got := LiteralSecrets(&r); fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	r = request.Request{
		URL: "http://me:{env:PW}@host/", User: "{env:ME}:{env:PW}", Network: request.Network{Proxy: "me@p:1"},
		Header: lines("Authorization: Bearer {env:TOKEN}", "Cookie: a={env:B}", "X-Api-Key: {env:KEY}"),
	}
	if got := LiteralSecrets(&r); got != nil {
		t.Errorf("%v", got)
	}
}
