package httpexec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/task"
)

func TestCheck(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	ok(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	tests := []struct {
		name    string
		request task.Request
		says    string // empty: nothing is wrong
	}{
		{"a plain one", task.Request{Method: "GET", URL: "host"}, ""},
		{"all of it", task.Request{Method: "POST", URL: "https://{env:HOST}/", Header: lines("A: {env:TOKEN}", "B:", "C;"), User: "me:{env:PW}",
			Network: task.Network{Proxy: "me:{env:PW}@p:1", Resolve: lines("host:1:::1")}}, ""},
		{"URL", task.Request{Method: "GET", URL: "http://ho st/"}, "hint: write a space as %20"},
		{"scheme", task.Request{Method: "GET", URL: "ftp://host/"}, "neither http nor https"},
		{"method", task.Request{Method: "GE T", URL: "host"}, "is no method"},
		{"header", task.Request{Method: "GET", URL: "host", Header: lines("A: b", "nothing")}, "header 2 has no colon"},
		{"variable in the URL", task.Request{Method: "GET", URL: "http://{env:UNSET}/"}, "UNSET is not set"},
		{"variable in a header", task.Request{Method: "GET", URL: "host", Header: lines("A: {env:UNSET}")}, "header A: "},
		{"variable of the user", task.Request{Method: "GET", URL: "host", User: "{env:UNSET}"}, "the user: "},
		{"variable of the proxy", task.Request{Method: "GET", URL: "host", Network: task.Network{Proxy: "{env:UNSET}"}}, "the proxy: "},
		{"proxy", task.Request{Method: "GET", URL: "host", Network: task.Network{Proxy: "ftp://p"}}, "the proxy cannot be used"},
		{"address", task.Request{Method: "GET", URL: "host", Network: task.Network{Resolve: lines("host:1:name")}}, "an address that is none"},
		{"authorities", task.Request{Method: "GET", URL: "host", Network: task.Network{CACert: garbage}}, "PEM"},
		{"certificate", task.Request{Method: "GET", URL: "host", Network: task.Network{Cert: garbage}}, "PEM"},
		{"query", task.Request{Method: "GET", URL: "host", Get: true, Body: aPart("a b")}, "hint: give it with --data-urlencode"},
		{"an encoded query", task.Request{Method: "GET", URL: "host", Get: true, Body: []task.Part{{Text: []byte("a b"), Encode: true}}}, ""},
		{"data", task.Request{Method: "POST", URL: "host", Body: aPart("a b")}, ""},
		{"key alone", task.Request{Method: "GET", URL: "host", Network: task.Network{Key: garbage}}, "no certificate"},
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
	r := task.Request{
		URL: "http://me:pw@host/", User: "me:pw", Network: task.Network{Proxy: "me:pw@p:1"},
		Header: lines("authorization: Bearer abc", "Cookie: a=b", "X-Api-Key:", "X-Other: c"),
	}
	want := "[the header authorization the header Cookie the password in the URL the user's password the proxy's password]"
	if got := LiteralSecrets(&r); fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	r = task.Request{
		URL: "http://me:{env:PW}@host/", User: "{env:ME}:{env:PW}", Network: task.Network{Proxy: "me@p:1"},
		Header: lines("Authorization: Bearer {env:TOKEN}", "Cookie: a={env:B}", "X-Api-Key: {env:KEY}"),
	}
	if got := LiteralSecrets(&r); got != nil {
		t.Errorf("%v", got)
	}
}
