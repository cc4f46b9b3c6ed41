package httpexec

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

func TestCookies(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ name, from, set, to, want string }{
		{name: "the same host", from: "http://h.example/", set: "a=1", to: "http://h.example/x", want: "a=1"},
		{name: "another host", from: "http://h.example/", set: "a=1", to: "http://g.example/", want: ""},
		{name: "a host below", from: "http://h.example/", set: "a=1", to: "http://x.h.example/", want: ""},
		{name: "a domain", from: "http://h.example/", set: "a=1; Domain=.h.example", to: "http://x.h.example/", want: "a=1"},
		{name: "a domain above", from: "http://x.h.example/", set: "a=1; Domain=h.example", to: "http://h.example/", want: "a=1"},
		{name: "no domain of its", from: "http://h.example/", set: "a=1; Domain=other.example", to: "http://other.example/"},
		{name: "a top domain", from: "http://h.example/", set: "a=1; Domain=example", to: "http://g.example/", want: ""},
		{name: "part of an address", from: "http://10.0.0.1/", set: "a=1; Domain=0.0.1", to: "http://10.0.0.1/", want: ""},
		{name: "the default path", from: "http://h.example/d/f", set: "a=1", to: "http://h.example/", want: ""},
		{name: "below the default path", from: "http://h.example/d/f", set: "a=1", to: "http://h.example/d/g", want: "a=1"},
		{name: "a path", from: "http://h.example/", set: "a=1; Path=/d", to: "http://h.example/dx", want: ""},
		{name: "secure", from: "https://h.example/", set: "a=1; Secure", to: "http://h.example/", want: ""},
		{name: "secure to https", from: "https://h.example/", set: "a=1; Secure", to: "https://h.example/", want: "a=1"},
		{name: "secure from http", from: "http://h.example/", set: "a=1; Secure", to: "https://h.example/", want: ""},
		{name: "expired", from: "http://h.example/", set: "a=1; Max-Age=0", to: "http://h.example/", want: ""},
		{name: "the age before the date", from: "http://h.example/",
			set: "a=1; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT", to: "http://h.example/", want: "a=1"},
		{name: "in quotes", from: "http://h.example/", set: `a="1"`, to: "http://h.example/", want: `a="1"`},
	} {
		from, _ := url.Parse(tt.from)
		to, _ := url.Parse(tt.to)
		var kept cookies
		kept.receive(&http.Response{Header: http.Header{"Set-Cookie": {tt.set}}}, from, now)
		read := cookies{} // as a file has them
		for _, c := range kept {
			again, ok := parseCookie(strings.TrimSuffix(c.line(), "\n"))
			if !ok {
				t.Errorf("%s: %q cannot be read again", tt.name, c.line())
			}
			read.add(again, now)
		}
		for _, list := range []cookies{kept, read} {
			got := ""
			for _, c := range list.forURL(to, now) {
				got += c.name + "=" + c.value
			}
			if got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
		}
	}
}

// A resume goes on with the cookies that earlier attempts have kept, not with those that another run has left.
func TestCookieJarOfAnotherRun(t *testing.T) {
	jar := filepath.Join(t.TempDir(), "jar")
	testkit.Must(t, os.WriteFile(jar, []byte("shop.test\tFALSE\t/\tFALSE\t0\tsession\tone\n"), 0o600))
	written := time.Now()
	testkit.Must(t, os.Chtimes(jar, written, written))
	for created, want := range map[time.Duration]int{-time.Second: 1, time.Second: 0} {
		e := &Executor{}
		tk := &task.Task{CreatedAt: written.Add(created), AttemptCount: 2}
		if err := e.loadCookies(&request.Request{CookieJar: jar}, tk); err != nil || len(*e.cookies) != want {
			t.Errorf("task made %v after the jar: got %v, %v, want %d cookies", created, e.cookies, err, want)
		}
	}
}
