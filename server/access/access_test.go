package access

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokensOverHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "ci", Write)
	server := serve(t, Config{Tokens: open(t, file), Open: func(r *http.Request) bool { return r.URL.Path == "/healthz" }})
	tests := []struct {
		name, path, headers string
		status              int
		want                string // part of the body
	}{
		{"token", "", "Authorization: Bearer " + token, 200, "ci write 0"},
		{"scheme in lower case", "", "Authorization: bearer " + token, 200, "ci write 0"},
		{"none", "", "", 401, `"detail":"no token was sent","hint":"send Authorization: Bearer rtk_`},
		{"wrong secret", "", "Authorization: Bearer " + token + "x", 401, `"detail":"the token is not valid"`},
		{"unknown", "", "Authorization: Bearer rtk_00_x", 401, `"detail":"the token is not valid"`},
		{"another scheme", "", "Authorization: Basic " + token, 401, "want one header Authorization: Bearer"},
		{"two", "", "Authorization: Bearer " + token + "\nAuthorization: Bearer " + token, 401, "want one header"},
		{"empty", "", "Authorization: ", 401, "want one header"},
		{"in the query", "?token=" + token, "", 401, "no token"},
		{"unknown cookie", "", "Cookie: retry_session=x", 401, "no token"},
		{"open", "/healthz", "", 200, " none 0"},
		{"open, wrong token", "/healthz", "Authorization: Bearer x", 200, " none 0"},
		{"open, another host", "/healthz", "Host: rebind.example", 403, "not known here"},
		{"another host", "", "Authorization: Bearer " + token + "\nHost: rebind.example", 403, "not known here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var headers []string
			if tt.headers != "" {
				headers = strings.Split(tt.headers, "\n")
			}
			got, body := ask(t, server.Client(), http.MethodGet, server.URL+tt.path, "", headers...)
			if got != tt.status || !strings.Contains(body, tt.want) || strings.Contains(body, token) {
				t.Errorf("got %d %s, want %d %s", got, body, tt.status, tt.want)
			}
		})
	}
}

// Without tokens our own user may write, but not run commands.
func TestLoopbackWithoutTokens(t *testing.T) {
	server := serve(t, Config{})
	status, body := ask(t, server.Client(), http.MethodGet, server.URL, "")
	if status != 200 || body != "local write 0 <nil>" {
		t.Errorf("got %d %q, want scope write", status, body)
	}
	status, body = ask(t, server.Client(), http.MethodGet, server.URL, "", "Authorization: Bearer rtk_a_b")
	if status != 401 || !strings.Contains(body, "tokens are not in use here") {
		t.Errorf("with a token: got %d %q, want 401", status, body)
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	w := httptest.NewRecorder()
	New(Config{}).Handler(whoAmI).ServeHTTP(w, r)
	if w.Code != 401 {
		t.Errorf("from elsewhere: got %d, want 401", w.Code)
	}
}

func TestRequire(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	reader, writer, admin := add(t, file, "r", Read), add(t, file, "w", Write), add(t, file, "a", Admin)
	a := New(Config{Tokens: open(t, file)})
	for _, tt := range []struct {
		token string
		need  Scope
		want  int
	}{
		{reader, Read, 200}, {reader, Write, 403}, {reader, Admin, 403},
		{writer, Read, 200}, {writer, Write, 200}, {writer, Admin, 403},
		{admin, Read, 200}, {admin, Admin, 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.Header.Set("Authorization", "Bearer "+tt.token)
		w := httptest.NewRecorder()
		a.Handler(Require(tt.need, whoAmI)).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s needs %s: got %d %s, want %d", tt.token[:6], tt.need, w.Code, w.Body, tt.want)
		}
	}
	w := httptest.NewRecorder()
	Require(Read, whoAmI).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != 403 {
		t.Errorf("without Handler: got %d, want 403", w.Code)
	}
}

// A page of another site gets nothing, whatever it tries; no answer lets it read one.
func TestHostilePages(t *testing.T) {
	server := serve(t, Config{})
	tests := []struct {
		name, method, body, headers string
		want                        int
	}{
		{"form POST", "POST", "a=1", "Content-Type: application/x-www-form-urlencoded\nOrigin: https://evil.example", 403},
		{"form POST without Origin", "POST", "a=1", "Content-Type: application/x-www-form-urlencoded", 415},
		{"JSON in a text form", "POST", `{"a":"="}`, "Content-Type: text/plain\nOrigin: null", 403},
		{"fetch", "POST", "{}",
			"Content-Type: application/json\nOrigin: https://evil.example\nSec-Fetch-Site: cross-site", 403},
		{"preflight", "OPTIONS", "", "Origin: https://evil.example\nAccess-Control-Request-Method: POST", 403},
		{"rebound name", "POST", "{}", "Host: evil.example\nOrigin: http://evil.example\nSec-Fetch-Site: same-origin", 403},
		{"POST without body", "POST", "", "Origin: https://evil.example", 403},
		{"image", "GET", "", "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image", 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, body := ask(t, server.Client(), tt.method, server.URL, tt.body, strings.Split(tt.headers, "\n")...)
			if got != tt.want {
				t.Errorf("got %d %s, want %d", got, body, tt.want)
			}
		})
	}
}

// Whoever has no token keeps no connection: those of the server are for who has one.
func TestNobodyKeepsAConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "reader", Read)
	handler := New(Config{Tokens: open(t, file)}).Handler(whoAmI)
	for credentials, want := range map[string]string{"": "close", "Bearer " + token: ""} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		if credentials != "" {
			r.Header.Set("Authorization", credentials)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("Connection"); got != want || (w.Code == http.StatusUnauthorized) != (want != "") {
			t.Errorf("%q: got %d and Connection %q, want %q", credentials, w.Code, got, want)
		}
	}
}
