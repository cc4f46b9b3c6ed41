package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A name that a hostile name server points at us is refused, whatever else the request has.
func TestHost(t *testing.T) {
	server := serve(t, Config{Listen: "Retry.internal:7470", Hosts: []string{"retry.example", "[2001:db8::1]"}})
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	tests := []struct {
		host string
		want int
	}{
		{"127.0.0.1" + port, 200},
		{"127.0.0.1", 200},
		{"127.9.9.9:1", 200},
		{"localhost" + port, 200},
		{"LOCALHOST.", 200},
		{"[::1]:7470", 200},
		{"[::1]", 200},
		{"[::ffff:127.0.0.1]", 200},
		{"retry.internal", 200},
		{"RETRY.example.:443", 200},
		{"[2001:db8::1]:7470", 200},
		{"rebind.example" + port, 403},
		{"localhost.evil.example", 403},
		{"evil.localhost", 403},
		{"retry.example.evil.example", 403},
		{"127.0.0.1.evil.example", 403},
		{"127.0.0.1:80:80", 403},
		{"2130706433", 403},
		{"192.0.2.1", 403},
		{"0.0.0.0", 403},
		{"169.254.169.254", 403},
	}
	for _, tt := range tests {
		t.Run(tt.host, func(t *testing.T) {
			got, body := ask(t, server.Client(), http.MethodGet, server.URL, "", "Host: "+tt.host)
			if got != tt.want {
				t.Errorf("got %d %s, want %d", got, body, tt.want)
			}
		})
	}
}

func TestUnknownHostNamesTheFlag(t *testing.T) {
	server := serve(t, Config{})
	_, body := ask(t, server.Client(), http.MethodGet, server.URL, "", "Host: rebind.example:80")
	want := `{"type":"/problems/forbidden","title":"Forbidden","status":403,` +
		`"detail":"the host \"rebind.example:80\" is not known here","hint":"start the server with --allow-host NAME"}` + "\n"
	if body != want {
		t.Errorf("got %s, want %s", body, want)
	}
}

func TestOrigin(t *testing.T) {
	const link = "Sec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\n"
	tests := []struct {
		name, method, host, headers string
		tls                         bool
		want                        bool
	}{
		{name: "curl", host: "127.0.0.1:7470", want: true},
		{name: "our page", host: "127.0.0.1:7470", headers: "Origin: http://127.0.0.1:7470", want: true},
		{name: "our page, usual port", host: "retry.example", headers: "Origin: http://retry.example:80", want: true},
		{name: "usual port in Host", host: "Retry.example:443", headers: "Origin: https://retry.example", want: true},
		{name: "TLS in a proxy", host: "retry.example", headers: "Origin: https://retry.example", want: true},
		{name: "TLS", host: "retry.example", headers: "Origin: https://retry.example", tls: true, want: true},
		{name: "plain page, TLS here", host: "retry.example", headers: "Origin: http://retry.example", tls: true},
		{name: "another site", host: "127.0.0.1:7470", headers: "Origin: https://evil.example"},
		{name: "another port", host: "127.0.0.1:7470", headers: "Origin: http://127.0.0.1:3000"},
		{name: "no port", host: "127.0.0.1:7470", headers: "Origin: http://127.0.0.1"},
		{name: "another name of this machine", host: "127.0.0.1:7470", headers: "Origin: http://localhost:7470"},
		{name: "sandboxed frame or file", host: "127.0.0.1:7470", headers: "Origin: null"},
		{name: "empty", host: "127.0.0.1:7470", headers: "Origin: "},
		{name: "two", host: "a", headers: "Origin: http://a\nOrigin: http://b"},
		{name: "extension", host: "a", headers: "Origin: moz-extension://a"},
		{name: "user before the host", host: "a", headers: "Origin: http://a@evil.example"},
		{name: "path after the host", host: "a", headers: "Origin: http://a/"},
		{name: "our script", host: "a", headers: "Sec-Fetch-Site: same-origin\nSec-Fetch-Mode: cors", want: true},
		{name: "typed address", host: "a", headers: link + "Sec-Fetch-Site: none", want: true},
		{name: "link from another site", host: "a", headers: link + "Sec-Fetch-Site: cross-site", want: true},
		{name: "image of another site", host: "a",
			headers: "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image"},
		{name: "page of another port", host: "a", headers: "Sec-Fetch-Site: same-site\nSec-Fetch-Mode: no-cors"},
		{name: "frame of another site", host: "a",
			headers: "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe"},
		{name: "form of another site", method: "POST", host: "a", headers: link + "Sec-Fetch-Site: cross-site"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			scheme := "http://"
			if tt.tls {
				scheme = "https://"
			}
			r := httptest.NewRequest(tt.method, scheme+tt.host+"/", nil)
			for line := range strings.Lines(tt.headers) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				r.Header.Add(name, value)
			}
			if err := checkOrigin(r); (err == nil) != tt.want {
				t.Errorf("got %v, want it to pass: %v", err, tt.want)
			}
		})
	}
}

// What a form can send without a browser asking first is refused, and so is what we would read wrongly.
func TestContentType(t *testing.T) {
	isBlob := func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/blobs/") }
	server := serve(t, Config{AnyType: isBlob})
	tests := []struct {
		name, path, body, headers string
		want                      int
	}{
		{name: "json", body: "{}", headers: "Content-Type: application/json", want: 200},
		{name: "json, utf-8", body: "{}", headers: "Content-Type: Application/JSON; charset=UTF-8", want: 200},
		{name: "no body, no type", want: 200},
		{name: "no body, form", headers: "Content-Type: application/x-www-form-urlencoded", want: 200},
		{name: "no type", body: "{}", want: 415},
		{name: "form", body: "a=1", headers: "Content-Type: application/x-www-form-urlencoded", want: 415},
		{name: "multipart form", body: "a=1", headers: "Content-Type: multipart/form-data; boundary=x", want: 415},
		{name: "text", body: "{}", headers: "Content-Type: text/plain", want: 415},
		{name: "text that mentions json", body: "{}", headers: "Content-Type: text/plain; application/json", want: 415},
		{name: "two", body: "{}", headers: "Content-Type: application/json\nContent-Type: text/plain", want: 415},
		{name: "another charset", body: "{}", headers: "Content-Type: application/json; charset=utf-16", want: 415},
		{name: "compressed", body: "{}", headers: "Content-Type: application/json\nContent-Encoding: gzip", want: 415},
		{name: "blob", path: "/blobs/x", body: "x", headers: "Content-Type: text/plain", want: 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var headers []string
			if tt.headers != "" {
				headers = strings.Split(tt.headers, "\n")
			}
			got, body := ask(t, server.Client(), http.MethodPost, server.URL+tt.path, tt.body, headers...)
			if got != tt.want {
				t.Errorf("got %d %s, want %d", got, body, tt.want)
			}
		})
	}
}

// No Host that passes belongs to a domain that somebody else could have.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"localhost:80", "[::1]:1", "127.0.0.1.x", "a.localhost", "[::ffff:7f00:1%25x]"} {
		f.Add(seed)
	}
	a := New(Config{Listen: "unix:/run/retry.sock"})
	f.Fuzz(func(t *testing.T, host string) {
		r := httptest.NewRequest(http.MethodGet, "http://x/", nil)
		r.Host = host
		if a.checkHost(r) != nil {
			return
		}
		name := strings.ToLower(host)
		if !strings.HasPrefix(name, "localhost") && !strings.HasPrefix(name, "127.") && !strings.ContainsAny(name, "[:") {
			t.Errorf("%q passes, want it refused", host)
		}
		rest, found := strings.CutPrefix(name, "localhost")
		if found && rest != "" && rest != "." && rest[0] != ':' && !strings.HasPrefix(rest, ".:") {
			t.Errorf("%q passes, want it refused", host)
		}
	})
}
