package httpexec

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// variables is an environment for tests.
func variables(name string) (string, bool) {
	value, found := map[string]string{
		"TOKEN": "tok/en=1", "PW": "p@ss:w/rd", "BASE": "http://host/base", "HOST": "real.example", "EMPTY": "", "BAD": "a\r\nb", "SPACE": "a b",
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
		u, user, err := readURL(tt.text, &references{lookup: variables})
		if err != nil || u.Scheme+"://"+u.Host+strings.TrimSuffix(u.RequestURI(), "/") != strings.TrimSuffix(tt.want, "/") || user != tt.user {
			t.Errorf("%s: %v, user %q, %v", tt.text, u, user, err)
		}
	}
}

func TestReadURLRefuses(t *testing.T) {
	tests := []struct {
		text string
		is   error
		says string
	}{
		{"http://host/a b", errURL, "%20"}, {"http://host/\n", errURL, "control character"}, {" http://host/", errURL, "space"},
		{"", errURL, "no host"}, {"http:///path", errURL, "no host"}, {"http:/host", errURL, "no host"}, {"http://host:x/", errURL, "malformed"},
		{"http://host:0/", errURL, "0 is no port"}, {"http://host/100%", errURL, "%25"}, {"ftp://host/", errURL, `"ftp"`},
		{"http://me:p/w@host/", errURL, "hint: in a password write / as %2F"}, {"http://me:p#w@host/", errURL, "# as %23"},
		{"http://[::1", errURL, "malformed"}, {"http://b\u00fccher/", errURL, "xn--"},
		{"http://host/{env:UNSET}", errReference, "the variable UNSET is not set"}, {"http://host/{env:}", errReference, "{env:NAME}"},
		{"http://{env:SPACE}/", errURL, "space"}, {"http://{env:BAD}/", errURL, "control"},
	}
	for _, tt := range tests {
		_, _, err := readURL(tt.text, &references{lookup: variables})
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
}

// FuzzReadURL holds that what is read can be sent, and that no error tells a password.
func FuzzReadURL(f *testing.F) {
	for _, text := range []string{"http://host/a?b", "me:pw@host", "http://me:sec/ret@host", "{env:TOKEN}", "http://[::1]:80/%zz", "a:/b", "://"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, _, err := readURL(text, &references{lookup: variables})
		if err != nil {
			if !errors.Is(err, errURL) && !errors.Is(err, errReference) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		h := hop{method: "GET", url: u, header: http.Header{}}
		r, err := h.request(t.Context())
		if err != nil || strings.ContainsFunc(r.URL.RequestURI(), func(r rune) bool { return r <= ' ' || r >= 0x7f }) || u.User != nil {
			t.Errorf("%q becomes %v: %v", text, u, err)
		}
	})
}
