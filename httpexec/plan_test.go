package httpexec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// posting returns a sender that posts a file.
func posting(t *testing.T, s *server, content string) (e *sender, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(file, []byte(content), 0o600))
	e = newSender(t, "POST", s.url("http"), func(e *sender) { e.Request.Body = []request.Part{{File: file}} })
	testkit.Must(t, request.Stamp(e.Request))
	return e, file
}

// A file that has changed since the task was made is refused.
func TestFileChangedBetweenAttempts(t *testing.T) {
	changes := map[string]func(file string) error{
		"another text":   func(file string) error { return os.WriteFile(file, []byte("others"), 0o600) },
		"touched":        func(file string) error { return os.Chtimes(file, time.Now(), time.Unix(1, 0)) },
		"no longer here": os.Remove,
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := serve(t, replies("HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: 7\r\n\r\n"))
			e, file := posting(t, s, "text")
			execute(t, e)
			testkit.Must(t, change(file))
			o := execute(t, e)
			s.saw(1)
			faulty{class: "local", exit: 26, message: "read the request's body: "}.compare(t, o, "stop")
		})
	}
}

// If a file changes while it is sent, the server does not receive all of it.
func TestFileChangedWhileItIsSent(t *testing.T) {
	const size = 32 << 20 // more than the connection holds
	var file string
	s := serve(t, func(c *wire) {
		c.header(&bytes.Buffer{})
		testkit.Must(c.server, os.Chtimes(file, time.Now(), time.Unix(1, 0)))
		if n, _ := io.Copy(io.Discard, c.reader); n >= size {
			c.server.Errorf("%d bytes came", n)
		}
	})
	e, path := posting(t, s, strings.Repeat("x", size))
	file = path
	o := execute(t, e)
	if o.Error != task.ErrorLocal || !strings.Contains(o.Message, "has changed since the task was made") ||
		o.Reply.Default.Class != task.ClassFatal {
		t.Errorf("got %+v, %+v, want a local error about a file that has changed", o, o.Reply)
	}
}

// The server receives the value of a reference. The task keeps the reference.
func TestReferencesAreResolvedAtEachSend(t *testing.T) {
	s := serve(t, closes(""), closes(""))
	e := newSender(t, "GET", strings.Replace(s.url("http"), "path", "{env:TOKEN}", 1), func(e *sender) {
		e.Request.Header, e.Request.User = lines("X-A: {env:TOKEN}"), "me:{env:TOKEN}"
	})
	for _, token := range []string{"first", "second"} {
		e.Lookup = func(name string) (string, bool) { return token, name == "TOKEN" }
		execute(t, e)
	}
	s.saw(2)
	for i, token := range []string{"first", "second"} {
		if r := s.requests[i]; !strings.HasPrefix(r, "GET /"+token+"?") || !strings.Contains(r, "X-A: "+token+"\r\n") {
			t.Errorf("attempt %d: got request %q, want the token %q", i+1, r, token)
		}
	}
	if !strings.Contains(e.Request.URL, "{env:TOKEN}") || e.Request.Header[0] != "X-A: {env:TOKEN}" {
		t.Errorf("got request %+v, want its references unchanged", e.Request)
	}
}

// References in a body are not resolved.
func TestReferencesAreNotResolvedInBodies(t *testing.T) {
	s := serve(t, replies(okReply))
	e := newSender(t, "POST", s.url("http"), func(e *sender) {
		e.Request.Body, e.Lookup = aPart("{env:TOKEN}"), variables
	})
	execute(t, e)
	s.saw(1)
	if !strings.HasSuffix(s.requests[0], "\r\n\r\n{env:TOKEN}") {
		t.Errorf("got requests %q, want a body with {env:TOKEN}", s.requests)
	}
}

func TestMessagesWithoutSecrets(t *testing.T) {
	const value = "s3cret.example"
	e := newSender(t, "GET", "", func(e *sender) {
		e.Lookup = func(name string) (string, bool) { return value, name == "X" }
		e.resolver = names(3)
	})
	for _, url := range []string{"http://{env:X}/", "http://host:{env:X}/", "{env:X}://host/", "http://[{env:X}/",
		"http://{env:X}:99999/"} {
		e.Request.URL = url
		o := execute(t, e)
		if o.Exit == 0 || o.Message == "" || strings.Contains(o.Message, value) {
			t.Errorf("%s: got message %q, want an error without the value", url, o.Message)
		}
		if err := Check(e.Request, e.Lookup); err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%s: got %v, want an error without the value", url, err)
		}
	}
}

// A variable that is not set is an error of this machine: nothing is sent, and nothing is retried.
func TestVariableThatIsNotSet(t *testing.T) {
	s := serve(t)
	o := execute(t, newSender(t, "GET", s.url("http"),
		func(e *sender) { e.Request.Header = lines("Authorization: Bearer {env:NONE}") }))
	s.saw(0)
	faulty{class: "local", exit: 125, message: "the variable NONE is not set; set it"}.compare(t, o, "stop")
}

// Keep is called once, before the first request.
func TestKeep(t *testing.T) {
	s := serve(t, closes(""), closes(""))
	kept := 0
	e := newSender(t, "POST", s.url("http"), func(e *sender) {
		e.setBody(data("a=b"))
		e.Keep = func(tk *task.Task) error {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			if kept++; s.accepted > 0 || tk.Target != e.Request {
				t.Errorf("got a call after %d connections for %+v, want it before the first", s.accepted, tk)
			}
			return nil
		}
	})
	execute(t, e)
	execute(t, e)
	s.saw(2)
	if kept != 1 {
		t.Errorf("got %d calls, want 1", kept)
	}
	e.kept, e.Keep = false, func(*task.Task) error { return errors.New("no room") }
	faulty{class: "local", exit: 125, message: "keep the request's body: no room"}.compare(t, execute(t, e), "stop")
}

// A Content-Length of the user's must be correct.
func TestContentLength(t *testing.T) {
	tests := []struct {
		header string
		body   []request.Part
		want   string // empty: refused
	}{
		{"Content-Length: 0", nil, "Content-Length: 0\r\n"}, {"content-length: 3", aPart("a=b"), "Content-Length: 3\r\n"},
		{"Content-Length: 9", aPart("a=b"), ""}, {"Content-Length: 3", nil, ""},
	}
	for _, tt := range tests {
		s := serve(t, replies(okReply))
		e := newSender(t, "POST", s.url("http"), func(e *sender) {
			e.Request.Header, e.Request.Body = lines(tt.header), tt.body
		})
		o := execute(t, e)
		s.stop()
		if tt.want == "" {
			faulty{class: "url", exit: 3, message: "Content-Length says"}.compare(t, o, "stop")
		} else if len(s.requests) != 1 || !strings.Contains(s.requests[0], "\r\n"+tt.want) ||
			strings.Count(s.requests[0], "ength") != 1 {
			t.Errorf("%s: got %+v, requests %q, want one with %q", tt.header, o, s.requests, tt.want)
		}
	}
}

func TestQuery(t *testing.T) {
	for text, says := range map[string]string{"a b": "--data-urlencode", "a\n": "--data-urlencode",
		strings.Repeat("x", 2<<20): "1 MiB"} {
		e := newSender(t, "GET", "http://host/", func(e *sender) { e.Request.Get, e.Request.Body = true, aPart(text) })
		faulty{class: "url", exit: 3, message: says}.compare(t, execute(t, e), "stop")
	}
}

func TestMaxRetryAfter(t *testing.T) {
	s := serve(t, closes(""))
	o := execute(t, newSender(t, "GET", s.url("http"), func(e *sender) { e.Request.MaxRetryAfter = time.Minute }))
	if o.Reply.MaxDelay != time.Minute {
		t.Errorf("got %+v, want a maximum delay of %v", o.Reply, time.Minute)
	}
}

// Transfer-Encoding is sent once, however the user writes it.
func TestChunks(t *testing.T) {
	s := serve(t, replies(okReply))
	e := newSender(t, "POST", s.url("http"), func(e *sender) {
		e.Request.Header, e.Request.Body = lines("transfer-encoding: Chunked"), aPart("a=b")
	})
	execute(t, e)
	s.saw(1)
	if r := s.requests[0]; strings.Count(strings.ToLower(r), "transfer-encoding") != 1 ||
		!strings.HasSuffix(r, "\r\n\r\n3\r\na=b\r\n0\r\n\r\n") {
		t.Errorf("got %q, want one Transfer-Encoding and a body in chunks", r)
	}
}

// With an Accept-Encoding of the user's own, the reply is not decompressed.
func TestOwnAcceptEncoding(t *testing.T) {
	s := serve(t, replies("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\npacked"))
	e := newSender(t, "GET", s.url("http"), func(e *sender) {
		e.Network.Compressed, e.Request.Header = true, lines("accept-encoding: gzip")
	})
	o := execute(t, e)
	s.saw(1)
	if o.Reply.Body != "packed" || strings.Count(strings.ToLower(s.requests[0]), "accept-encoding") != 1 {
		t.Errorf("got %+v, requests %q, want the body as it was sent", o.Reply, s.requests)
	}
}

// HTTP/2 has no upgrades: a request for one does not offer HTTP/2.
func TestUpgradeOverTLS(t *testing.T) {
	a := newAuthority(t)
	s := serveTLS(t, a.server(nil, "h2", "http/1.1"),
		replies("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
	o := execute(t, newSender(t, "GET", s.url("https"), func(e *sender) {
		e.Network.CACert, e.Request.Header = a.file, lines("Connection: Upgrade", "Upgrade: other")
	}))
	s.saw(1)
	if o.Reply.Status != 101 {
		t.Errorf("got %+v, want status 101", o)
	}
}

func TestCheck(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	testkit.Must(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	tests := []struct {
		name    string
		request request.Request
		says    string // empty: nothing is wrong
	}{
		{"a plain one", request.Request{Method: "GET", URL: "host"}, ""},
		{"all of it", request.Request{Method: "POST", URL: "https://{env:HOST}/", Header: lines("A: {env:TOKEN}", "B:", "C;"),
			User:    "me:{env:PW}",
			Network: request.Network{Proxy: "me:{env:PW}@p:1", Resolve: lines("host:1:::1")}}, ""},
		{"URL", request.Request{Method: "GET", URL: "http://ho st/"}, "hint: write a space as %20"},
		{"scheme", request.Request{Method: "GET", URL: "ftp://host/"}, "neither http nor https"},
		{"method", request.Request{Method: "GE T", URL: "host"}, "invalid method"},
		{"header", request.Request{Method: "GET", URL: "host", Header: lines("A: b", "nothing")}, "header 2 has no colon"},
		{"variable in the URL", request.Request{Method: "GET", URL: "http://{env:UNSET}/"}, "UNSET is not set"},
		{"variable in a header", request.Request{Method: "GET", URL: "host", Header: lines("A: {env:UNSET}")}, "header A: "},
		{"variable of the user", request.Request{Method: "GET", URL: "host", User: "{env:UNSET}"}, "the user: "},
		{"variable of the proxy", request.Request{Method: "GET", URL: "host", Network: request.Network{Proxy: "{env:UNSET}"}},
			"the proxy: "},
		{"proxy", request.Request{Method: "GET", URL: "host", Network: request.Network{Proxy: "ftp://p"}},
			"the proxy cannot be used"},
		{"address", request.Request{Method: "GET", URL: "host", Network: request.Network{Resolve: lines("host:1:name")}},
			"an address that is none"},
		{"authorities", request.Request{Method: "GET", URL: "host", Network: request.Network{CACert: garbage}}, "PEM"},
		{"certificate", request.Request{Method: "GET", URL: "host", Network: request.Network{Cert: garbage}}, "PEM"},
		{"query", request.Request{Method: "GET", URL: "host", Get: true, Body: aPart("a b")},
			"hint: give it with --data-urlencode"},
		{"an encoded query", request.Request{Method: "GET", URL: "host", Get: true,
			Body: []request.Part{{Text: []byte("a b"), Encode: true}}}, ""},
		{"data", request.Request{Method: "POST", URL: "host", Body: aPart("a b")}, ""},
		{"key alone", request.Request{Method: "GET", URL: "host", Network: request.Network{Key: garbage}}, "no certificate"},
	}
	for _, tt := range tests {
		err := Check(&tt.request, variables)
		if err == nil && tt.says != "" || err != nil && (tt.says == "" || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.says)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for key, good := range map[string]bool{"a-1 \"b\\": true, "a\n": false, "\u00fc": false, "\x7f": false} {
		if err := CheckKey(key); (err == nil) != good {
			t.Errorf("%q: got %v, want valid: %v", key, err, good)
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
		t.Errorf("got %v, want %v", got, want)
	}
	r = request.Request{
		URL: "http://me:{env:PW}@host/", User: "{env:ME}:{env:PW}", Network: request.Network{Proxy: "me@p:1"},
		Header: lines("Authorization: Bearer {env:TOKEN}", "Cookie: a={env:B}", "X-Api-Key: {env:KEY}"),
	}
	if got := LiteralSecrets(&r); got != nil {
		t.Errorf("got %v, want none", got)
	}
}

// variables is an environment for tests.
func variables(name string) (string, bool) {
	value, found := map[string]string{
		"TOKEN": "tok/en=1", "PW": "p@ss:w/rd", "BASE": "http://host/base", "HOST": "real.example", "EMPTY": "",
		"BAD": "a\r\nb", "SPACE": "a b",
	}[name]
	return value, found
}

func TestReadURL(t *testing.T) {
	tests := []struct{ text, want, user string }{
		{"http://host", "http://host", ""},
		{"HTTP://Host/", "http://Host/", ""},
		{"host:8080/a?b", "http://host:8080/a?b", ""},
		{"localhost", "http://localhost", ""},
		{"https://host/a/../b/./c/#d?e", "https://host/b/c/", ""},
		{"http://host/?q=#f", "http://host/?q=", ""},
		{"http://host//a//b/", "http://host//a//b/", ""},
		{"http://host/a%2fb/\u00fc", "http://host/a%2fb/%C3%BC", ""},
		{"http://host/a\"b{c}|^%7B", "http://host/a%22b%7Bc%7D%7C%5E%7B", ""},
		{"http://host/?q={\"a\":[1]}&%zz\u00fc", "http://host/?q={\"a\":[1]}&%zz%C3%BC", ""},
		{"http://[::1]:80/", "http://[::1]:80/", ""},
		{"http://me:p%40w@host/", "http://host/", "me:p@w"},
		{"me@host", "http://host", "me:"},
		{"http://me:p@w:x@host/@y", "http://host/@y", "me:p@w:x"},
		{"http://me:100%@host/", "http://host/", "me:100%"},
		{"http://me:{env:PW}@host/", "http://host/", "me:p@ss:w/rd"},
		{"http://host/{env:TOKEN}?t={env:TOKEN}", "http://host/tok/en%3D1?t=tok%2Fen%3D1", ""},
		{"http://{env:HOST}:80/", "http://real.example:80/", ""},
		{"{env:BASE}/more", "http://host/base/more", ""},
		{"http://host/{env:EMPTY}", "http://host/", ""},
	}
	for _, tt := range tests {
		u, user, err := request.ReadURL(tt.text, &request.References{Lookup: variables})
		if err != nil || u.Scheme+"://"+u.Host+strings.TrimSuffix(u.RequestURI(), "/") != strings.TrimSuffix(tt.want, "/") ||
			user != tt.user {
			t.Errorf("%s: got %v, user %q, %v, want %s, user %q", tt.text, u, user, err, tt.want, tt.user)
		}
	}
}

func TestReadURLRefuses(t *testing.T) {
	tests := []struct {
		text string
		is   error
		says string
	}{
		{"http://host/a b", request.ErrURL, "%20"}, {"http://host/\n", request.ErrURL, "control character"},
		{" http://host/", request.ErrURL, "space"},
		{"", request.ErrURL, "no host"}, {"http:///path", request.ErrURL, "no host"},
		{"http:/host", request.ErrURL, "no host"}, {"http://host:x/", request.ErrURL, "malformed"},
		{"http://host:0/", request.ErrURL, "invalid port 0"}, {"http://host/100%", request.ErrURL, "%25"},
		{"ftp://host/", request.ErrURL, `"ftp"`},
		{"http://me:p/w@host/", request.ErrURL, "hint: in a password write / as %2F"},
		{"http://me:p#w@host/", request.ErrURL, "# as %23"},
		{"http://[::1", request.ErrURL, "malformed"}, {"http://b\u00fccher/", request.ErrURL, "xn--"},
		{"http://host/{env:UNSET}", request.ErrReference, "the variable UNSET is not set"},
		{"http://host/{env:}", request.ErrReference, "{env:NAME}"},
		{"http://{env:SPACE}/", request.ErrURL, "space"}, {"http://{env:BAD}/", request.ErrURL, "control"},
	}
	for _, tt := range tests {
		_, _, err := request.ReadURL(tt.text, &request.References{Lookup: variables})
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: got %v, want %v with %q", tt.text, err, tt.is, tt.says)
		}
	}
}

// FuzzReadURL checks that a URL without an error can be sent, and that no error repeats a password.
func FuzzReadURL(f *testing.F) {
	for _, text := range []string{"http://host/a?b", "me:pw@host", "http://me:sec/ret@host", "{env:TOKEN}",
		"http://[::1]:80/%zz", "a:/b", "://"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, _, err := request.ReadURL(text, &request.References{Lookup: variables})
		if err != nil {
			if !errors.Is(err, request.ErrURL) && !errors.Is(err, request.ErrReference) {
				t.Errorf("%q: got %v, want ErrURL or ErrReference", text, err)
			}
			return
		}
		h := wireRequest{method: "GET", url: u, header: http.Header{}}
		r, err := h.build(t.Context())
		if err != nil || strings.ContainsFunc(r.URL.RequestURI(), func(r rune) bool { return r <= ' ' || r >= 0x7f }) ||
			u.User != nil {
			t.Errorf("%q: got %v, %v, want a URL that can be sent", text, u, err)
		}
	})
}

// sentHead returns the header of a request without the fields that each request has.
func sentHead(t *testing.T, r request.Request, key string) (map[string][]string, error) {
	t.Helper()
	r.URL = "http://host/"
	p := &plan{refs: &request.References{Lookup: variables}}
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
		{"as written", request.Request{Method: "GET", Header: lines("x-a:  b c ", "X-A: d", "x-a: e")}, "",
			"map[X-A:[d] x-a:[b c e]]"},
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
		{"the user's header", request.Request{Method: "POST", Header: lines("idempotency-key: mine")}, "k",
			"map[idempotency-key:[mine]]"},
		{"taken away", request.Request{Method: "POST", Header: lines("Idempotency-Key:")}, "k", "map[]"},

		{"a form", request.Request{Method: "PUT", Body: form, Boundary: "b"}, "",
			"map[Content-Type:[multipart/form-data; boundary=b]]"},
		{"a form of another type", request.Request{Method: "PUT", Body: form, Boundary: "b",
			Header: lines("content-type: multipart/x")}, "",
			"map[Content-Type:[multipart/x; boundary=b]]"},
		{"a form without a type", request.Request{Method: "PUT", Body: form, Boundary: "b", Header: lines("content-type:")},
			"", "map[]"},
	}
	for _, tt := range tests {
		got, err := sentHead(t, tt.request, tt.key)
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

func TestHeadersRefused(t *testing.T) {
	tests := []struct {
		line string
		is   error
		says string
	}{
		{"Authorization Bearer secret", request.ErrHead, "header 1 has no colon"},
		{"a secret: b", request.ErrHead, "has a name that is none"},
		{": b", request.ErrHead, "name"}, {"Host:", request.ErrHead, "cannot be left out"},
		{"Content-Length:", request.ErrHead, "cannot be left out"},
		{"Transfer-Encoding: gzip", request.ErrHead, "only chunked"},
		{"A: {env:BAD}", request.ErrHead, "the header A holds a control character"},
		{"A: {env:UNSET}", request.ErrReference, "header A: resolve a reference: the variable UNSET is not set"},
		{"A: {env:", request.ErrReference, "NAME"},
	}
	for _, tt := range tests {
		_, err := sentHead(t, request.Request{Method: "GET", Header: lines(tt.line)}, "")
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) ||
			strings.Contains(err.Error(), "Bearer secret") {
			t.Errorf("%s: got %v, want %v with %q and without the value", tt.line, err, tt.is, tt.says)
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
		p := &plan{refs: &request.References{}}
		if err := p.read(&tt.request, "", tt.key); err != nil || p.Safety != tt.want {
			t.Errorf("%+v: got %+v, %v, want %+v", tt.request, p.Safety, err, tt.want)
		}
	}
}

// FuzzHeader checks that a line without an error can be sent, and that no error repeats a value.
func FuzzHeader(f *testing.F) {
	for _, line := range []string{"A: b", "A:", "A;", "no colon", "host: x", "a b: c", "A: {env:TOKEN}", "A: \x00",
		"Content-Length: 5", ": x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := &plan{refs: &request.References{Lookup: variables}}
		if err := p.read(&request.Request{Method: "GET", URL: "http://host/", Header: lines(line, "X-Own: 1")}, "agent",
			""); err != nil {
			if _, secret, _ := strings.Cut(line, ":"); len(secret) > 20 && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: got %v, want an error without the value", line, err)
			}
			return
		}
		r, err := p.first.build(t.Context())
		if errors.Is(err, request.ErrHead) { // a length that is wrong
			return
		}
		testkit.Must(t, err)
		var wire strings.Builder
		testkit.Must(t, r.Write(&wire))
		if _, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire.String()))); err != nil ||
			strings.Count(wire.String(), "X-Own: 1\r\n") != 1 {
			t.Errorf("%q: got request %q, %v, want a valid one", line, wire.String(), err)
		}
	})
}
