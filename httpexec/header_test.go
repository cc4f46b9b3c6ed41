package httpexec

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/10f93571/retry/httpexec/request"
)

// headOf is the header that a request goes out with, but for what each has.
func sentHead(t *testing.T, r request.Request, key string) (map[string][]string, error) {
	t.Helper()
	r.URL = "http://host/"
	p := &plan{refs: &references{lookup: variables}}
	err := p.read(&r, "agent", key)
	header := p.first.header
	for name, usual := range map[string]string{"Accept": "*/*", "User-Agent": "agent"} {
		if fmt.Sprint(header[name]) == "["+usual+"]" {
			delete(header, name)
		}
	}
	return header, err
}

func TestHeaders(t *testing.T) {
	form := []request.Part{{Name: "a"}}
	tests := []struct {
		name    string
		request request.Request
		key     string
		want    string
	}{
		{"nothing", request.Request{Method: "GET"}, "k", "map[]"},
		{"as written", request.Request{Method: "GET", Header: lines("x-a:  b c ", "X-A: d", "x-a: e")}, "", "map[X-A:[d] x-a:[b c e]]"},
		{"empty", request.Request{Method: "GET", Header: lines("X-A;", "X-B:", "X-C: ")}, "", "map[X-A:[]]"},
		{"a reference", request.Request{Method: "GET", Header: lines("Authorization: Bearer {env:TOKEN}")}, "",
			"map[Authorization:[Bearer tok/en=1]]"},
		{"a user", request.Request{Method: "GET", User: "me:{env:PW}"}, "", "map[Authorization:[Basic bWU6cEBzczp3L3Jk]]"},
		{"a user alone", request.Request{Method: "GET", User: "me"}, "", "map[Authorization:[Basic bWU6]]"},
		{"a user taken away", request.Request{Method: "GET", User: "me:pw", Header: lines("authorization:")}, "", "map[]"},

		{"a key", request.Request{Method: "POST"}, "k", "map[Idempotency-Key:[k]]"},
		{"no key", request.Request{Method: "POST"}, "", "map[]"},
		{"none wanted", request.Request{Method: "POST", KeyStyle: request.KeyNone}, "k", "map[]"},
		{"a key of one's own", request.Request{Method: "PUT", Keyed: true}, "k", "map[Idempotency-Key:[k]]"},
		{"quoted", request.Request{Method: "POST", KeyStyle: request.KeySF}, `a"b\c`, `map[Idempotency-Key:["a\"b\\c"]]`},
		{"the user's header", request.Request{Method: "POST", Header: lines("idempotency-key: mine")}, "k", "map[idempotency-key:[mine]]"},
		{"taken away", request.Request{Method: "POST", Header: lines("Idempotency-Key:")}, "k", "map[]"},

		{"a form", request.Request{Method: "PUT", Body: form, Boundary: "b"}, "", "map[Content-Type:[multipart/form-data; boundary=b]]"},
		{"a form of another type", request.Request{Method: "PUT", Body: form, Boundary: "b", Header: lines("content-type: multipart/x")}, "",
			"map[Content-Type:[multipart/x; boundary=b]]"},
		{"a form without a type", request.Request{Method: "PUT", Body: form, Boundary: "b", Header: lines("content-type:")}, "", "map[]"},
	}
	for _, tt := range tests {
		got, err := sentHead(t, tt.request, tt.key)
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

func TestHeadersRefused(t *testing.T) {
	tests := []struct {
		line string
		is   error
		says string
	}{
		{"Authorization Bearer secret", errHead, "header 1 has no colon"}, {"a secret: b", errHead, "has a name that is none"},
		{": b", errHead, "name"}, {"Host:", errHead, "cannot be left out"}, {"Content-Length:", errHead, "cannot be left out"},
		{"Transfer-Encoding: gzip", errHead, "only chunked"}, {"A: {env:BAD}", errHead, "the header A holds a control character"},
		{"A: {env:UNSET}", errReference, "header A: resolve a reference: the variable UNSET is not set"}, {"A: {env:", errReference, "NAME"},
	}
	for _, tt := range tests {
		_, err := sentHead(t, request.Request{Method: "GET", Header: lines(tt.line)}, "")
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "Bearer secret") {
			t.Errorf("%s: %v", tt.line, err)
		}
	}
}

func TestSafety(t *testing.T) {
	tests := []struct {
		request request.Request
		key     string
		want    Safety
	}{
		{request.Request{Method: "GET"}, "k", I},
		{request.Request{Method: "POST"}, "k", N},
		{request.Request{Method: "POST", Idempotent: true}, "k", IK},
		{request.Request{Method: "POST", Idempotent: true, KeyStyle: request.KeyNone}, "k", I},
		{request.Request{Method: "POST", Keyed: true}, "k", IK},
		{request.Request{Method: "PUT", Keyed: true}, "k", IK},
		{request.Request{Method: "PUT"}, "k", I},
	}
	for _, tt := range tests {
		tt.request.URL = "http://host/"
		p := &plan{refs: &references{}}
		if err := p.read(&tt.request, "", tt.key); err != nil || p.Safety != tt.want {
			t.Errorf("%+v: %+v, %v; want %+v", tt.request, p.Safety, err, tt.want)
		}
	}
}

// FuzzHeader holds that a line which is taken can be sent, and that no error repeats what follows a name.
func FuzzHeader(f *testing.F) {
	for _, line := range []string{"A: b", "A:", "A;", "no colon", "host: x", "a b: c", "A: {env:TOKEN}", "A: \x00", "Content-Length: 5", ": x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := &plan{refs: &references{lookup: variables}}
		if err := p.read(&request.Request{Method: "GET", URL: "http://host/", Header: lines(line, "X-Own: 1")}, "agent", ""); err != nil {
			if _, secret, _ := strings.Cut(line, ":"); len(secret) > 20 && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", line, err)
			}
			return
		}
		r, err := p.first.request(t.Context())
		if errors.Is(err, errHead) { // a length that is wrong
			return
		}
		ok(t, err)
		var wire strings.Builder
		ok(t, r.Write(&wire))
		if _, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire.String()))); err != nil || strings.Count(wire.String(), "X-Own: 1\r\n") != 1 {
			t.Errorf("%q is sent as %q: %v", line, wire.String(), err)
		}
	})
}
