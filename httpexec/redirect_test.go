package httpexec

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The methods and bodies are what curl 7.88 sends after the same redirect.
func TestNextMethod(t *testing.T) {
	body := strings.NewReader("data")
	tests := []struct {
		method string
		given  bool
		body   Body
		status int
		want   string
		keeps  bool // the body
	}{
		{"POST", false, body, 301, "GET", false}, {"POST", false, body, 302, "GET", false}, {"POST", false, body, 303, "GET", false},
		{"POST", false, body, 307, "POST", true}, {"POST", false, body, 308, "POST", true}, {"POST", false, body, 300, "POST", true},
		{"POST", true, body, 302, "POST", false}, {"POST", true, body, 303, "POST", false}, {"POST", true, body, 307, "POST", true},
		{"PUT", false, body, 302, "PUT", true}, {"PUT", false, body, 303, "GET", false}, {"PUT", true, body, 302, "PUT", false},
		{"GET", false, nil, 302, "GET", false}, {"HEAD", false, nil, 302, "HEAD", false}, {"HEAD", false, nil, 303, "HEAD", false},
		{"DELETE", true, nil, 302, "DELETE", false}, {"DELETE", true, nil, 303, "DELETE", false},
	}
	for _, tt := range tests {
		h := hop{method: tt.method, url: must("http://host/a/b"), body: tt.body, header: headers("Content-Type", "text/plain")}
		to, follows, err := h.next(tt.status, "../c", tt.given)
		if err != nil || !follows || to.url.String() != "http://host/c" {
			t.Fatalf("to %v, %v, %v", to.url, follows, err)
		}
		if keeps := to.body != nil; to.method != tt.want || keeps != tt.keeps {
			t.Errorf("%s (given %v) after %d: %s, body %v; want %s, %v", tt.method, tt.given, tt.status, to.method, keeps, tt.want, tt.keeps)
		}
		if tt.body != nil && (to.header.Get("Content-Type") != "") != tt.keeps {
			t.Errorf("%s after %d: Content-Type %q", tt.method, tt.status, to.header.Get("Content-Type"))
		}
	}
}

// What was meant for one server is not told to another.
func TestNextKeepsSecrets(t *testing.T) {
	tests := map[string]bool{
		"/there": true, "http://host/": true, "http://HOST:80/": true,
		"http://other/": false, "https://host/": false, "http://host:8080/": false, "//other/": false,
	}
	names := []string{"Authorization", "authorization", "Proxy-Authorization", "COOKIE", "x-api-key", "Host"}
	for location, keeps := range tests {
		h := hop{url: must("http://host/"), header: http.Header{"X-Own": {"kept"}}}
		for _, name := range names {
			h.header[name] = []string{"secret"}
		}
		to, _, err := h.next(302, location, false)
		ok(t, err)
		for _, name := range names {
			if kept := to.header[name] != nil; kept != keeps {
				t.Errorf("%s: %s is sent: %v", location, name, kept)
			}
		}
		if to.header.Get("X-Own") == "" {
			t.Errorf("%s: a header is lost", location)
		}
	}
}

func TestNextLeadsNowhere(t *testing.T) {
	h := hop{method: "GET", url: must("http://host/"), header: http.Header{}}
	for _, status := range []int{200, 204, 400, 503} {
		if _, follows, err := h.next(status, "/there", false); follows || err != nil {
			t.Errorf("%d is followed: %v", status, err)
		}
	}
	if _, follows, err := h.next(302, "", false); follows || err != nil {
		t.Errorf("no Location: %v, %v", follows, err)
	}
	for _, location := range []string{"ftp://host/", "http://", "http://[", "file:///etc/passwd", "http://host:99999/"} {
		if _, follows, err := h.next(302, location, false); follows || !errors.Is(err, errRedirects) {
			t.Errorf("%s: %v, %v", location, follows, err)
		}
	}
}

func must(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}
