package access

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// page is the part of a server that the page's cookie is about.
func page(a *Access) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session", a.Login)
	mux.HandleFunc("DELETE /session", a.Logout)
	mux.Handle("/", whoAmI)
	return a.Handler(mux)
}

func do(handler http.Handler, method, url string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

func TestSession(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "ops", Write)
	add(t, file, "other", Read)
	a := New(Config{Tokens: open(t, file)})
	now := time.Unix(1_000_000, 0)
	a.sessions.now = func() time.Time { return now }
	login := func(headers ...string) *http.Response {
		return do(page(a), http.MethodPost, "http://localhost/session", headers...)
	}
	status := func(cookie string) int {
		return do(page(a), http.MethodGet, "http://localhost/", "Cookie: "+cookie).StatusCode
	}

	reply := login("Authorization: Bearer "+token, "Origin: http://localhost")
	set := reply.Header.Get("Set-Cookie")
	cookie, attributes, _ := strings.Cut(set, "; ")
	if reply.StatusCode != http.StatusNoContent || attributes != "Path=/; Max-Age=43200; HttpOnly; SameSite=Strict" ||
		!strings.HasPrefix(cookie, "retry_session=") || len(cookie) < 50 || strings.Contains(cookie, tokenID(token)) {
		t.Fatalf("got %d %q, want a cookie", reply.StatusCode, set)
	}
	if got := status(cookie); got != 200 {
		t.Errorf("with the cookie: got %d, want 200", got)
	}
	if again := login("Authorization: Bearer " + token).Header.Get("Set-Cookie"); again == set {
		t.Error("got the same cookie twice, want a new one for each login")
	}
	for name, headers := range map[string][]string{
		"by the cookie alone": {"Cookie: " + cookie},
		"without a token":     nil,
		"from another site":   {"Authorization: Bearer " + token, "Origin: https://evil.example"},
	} {
		if got := login(headers...); got.StatusCode < 400 || got.Header.Get("Set-Cookie") != "" {
			t.Errorf("login %s: got %d %q, want no cookie", name, got.StatusCode, got.Header.Get("Set-Cookie"))
		}
	}
	if got := status(cookie + "x"); got != 401 {
		t.Errorf("another value: got %d, want 401", got)
	}
	if got := status(cookie + "; retry_session=planted"); got != 401 {
		t.Errorf("two cookies: got %d, want 401", got)
	}

	now = now.Add(sessionLength - time.Second)
	if got := status(cookie); got != 200 {
		t.Errorf("before its end: got %d, want 200", got)
	}
	now = now.Add(time.Second)
	if got := status(cookie); got != 401 {
		t.Errorf("at its end: got %d, want 401", got)
	}

	cookie, _, _ = strings.Cut(login("Authorization: Bearer "+token).Header.Get("Set-Cookie"), ";")
	out := do(page(a), http.MethodDelete, "http://localhost/session", "Cookie: "+cookie)
	if got := out.Header.Get("Set-Cookie"); out.StatusCode != http.StatusNoContent ||
		!strings.Contains(got, "Max-Age=0") || status(cookie) != 401 {
		t.Errorf("logout: got %d %q, then %d, want the session ended", out.StatusCode, got, status(cookie))
	}

	cookie, _, _ = strings.Cut(login("Authorization: Bearer "+token).Header.Get("Set-Cookie"), ";")
	_, rest, _ := strings.Cut(testkit.Contents(t, file), "\n")
	testkit.Write(t, file, rest)
	if got := status(cookie); got != 401 {
		t.Errorf("after its token was removed: got %d, want 401", got)
	}
}

// Over TLS the cookie never goes over a plain connection.
func TestSessionOverTLS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "ops", Write)
	a := New(Config{Tokens: open(t, file)})
	reply := do(page(a), http.MethodPost, "https://localhost/session", "Authorization: Bearer "+token)
	if got := reply.Header.Get("Set-Cookie"); !strings.Contains(got, "; Secure") {
		t.Errorf("got %q, want Secure", got)
	}
}

// Logins do not pile up: the one that ends first makes room.
func TestSessionsAreBounded(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := sessions{now: func() time.Time { return now }}
	first := s.add("t")
	now = now.Add(time.Second)
	second := s.add("t")
	for range maxSessions - 1 {
		s.add("t")
	}
	file := filepath.Join(t.TempDir(), "tokens")
	line := "ops write t " + strings.Repeat("00", 32) + "\n"
	testkit.Write(t, file, line)
	tokens := open(t, file)
	found := func(value string) bool {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: value})
		_, found := s.find(r, tokens)
		return found
	}
	if len(s.open) != maxSessions || found(first) || !found(second) {
		t.Errorf("got %d sessions, the first %v, the second %v, want %d without the first",
			len(s.open), found(first), found(second), maxSessions)
	}
}

// Who was let in is asked for again where an answer takes long: a token may have been removed, a session have ended.
func TestNow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	token := add(t, file, "ops", Write)
	other := add(t, file, "other", Read)
	a := New(Config{Tokens: open(t, file)})
	entered := func(headers ...string) (asked *http.Request) {
		do(a.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r })),
			http.MethodGet, "http://localhost/", headers...)
		return asked
	}
	login := do(page(a), http.MethodPost, "http://localhost/session", "Authorization: Bearer "+token)
	cookie, _, _ := strings.Cut(login.Header.Get("Set-Cookie"), "; ")
	requests := []*http.Request{
		entered("Authorization: Bearer " + token), entered("Cookie: " + cookie), entered("Authorization: Bearer " + other),
	}
	check := func(when string, want ...Scope) {
		t.Helper()
		for i, r := range requests {
			if got := Now(r).Scope; got != want[i] || Of(r.Context()).Scope == None {
				t.Errorf("%s, request %d: got scope %v, want %v", when, i, got, want[i])
			}
		}
	}
	check("at first", Write, Write, Read)
	do(page(a), http.MethodDelete, "http://localhost/session", "Authorization: Bearer "+token, "Cookie: "+cookie)
	check("logged out", Write, None, Read)
	testkit.Must(t, Remove(file, "ops"))
	check("removed", None, None, Read)
	if got := Now(httptest.NewRequest(http.MethodGet, "/", nil)); got != (Identity{}) {
		t.Errorf("got %v of a request that was not checked, want nobody", got)
	}
}
