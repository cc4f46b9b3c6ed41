package access

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/10f93571/retry/server/problem"
)

const (
	sessionCookie = "retry_session"
	sessionLength = 12 * time.Hour
	maxSessions   = 1000 // beyond that the one that ends first makes room
)

// sessions are the logins of the page. They live in this process: after a restart people log in again.
type sessions struct {
	now func() time.Time

	mu   sync.Mutex
	open map[[sha256.Size]byte]session // by the hash of the cookie's value
}

type session struct {
	token string // id
	ends  time.Time
}

// Login answers POST /session: it gives the page a cookie in exchange for the token that the request has sent. Scripts
// cannot read the cookie, and requests that other sites cause do not have it. It ends after 12 hours or with
// its token.
func (a *Access) Login(w http.ResponseWriter, r *http.Request) {
	who := Of(r.Context())
	if who.token == "" || len(r.Header.Values("Authorization")) == 0 {
		problem.Write(w, problem.BadRequest("a session needs a token\nhint: send Authorization: Bearer rtk_…"))
		return
	}
	http.SetCookie(w, cookie(r, a.sessions.add(who.token), sessionLength))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// Logout answers DELETE /session.
func (a *Access) Logout(w http.ResponseWriter, r *http.Request) {
	for _, c := range r.CookiesNamed(sessionCookie) {
		a.sessions.remove(c.Value)
	}
	http.SetCookie(w, cookie(r, "", -time.Second))
	w.WriteHeader(http.StatusNoContent)
}

func cookie(r *http.Request, value string, length time.Duration) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: int(length / time.Second),
		Secure: r.TLS != nil, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

func (s *sessions) add(token string) (value string) {
	value = rand.Text() + rand.Text() // 256 bits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[[sha256.Size]byte]session{}
	}
	if len(s.open) >= maxSessions {
		s.makeRoom()
	}
	s.open[sha256.Sum256([]byte(value))] = session{token: token, ends: s.now().Add(sessionLength)}
	return value
}

func (s *sessions) makeRoom() {
	var first [sha256.Size]byte
	ends := time.Time{}
	for key, session := range s.open {
		if ends.IsZero() || session.ends.Before(ends) {
			first, ends = key, session.ends
		}
	}
	delete(s.open, first)
}

func (s *sessions) remove(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(value)))
}

// find returns who a request's cookie stands for, with the name and scope that the token has now.
func (s *sessions) find(r *http.Request, tokens *Tokens) (Identity, bool) {
	cookies := r.CookiesNamed(sessionCookie)
	if tokens == nil || len(cookies) != 1 { // a second one would be planted by another program on the same host
		return Identity{}, false
	}
	key := sha256.Sum256([]byte(cookies[0].Value))
	s.mu.Lock()
	found, open := s.open[key]
	if open && !s.now().Before(found.ends) {
		delete(s.open, key)
		open = false
	}
	s.mu.Unlock()
	if !open {
		return Identity{}, false
	}
	e, known := tokens.entry(found.token)
	return Identity{Name: e.name, Scope: e.scope, token: e.id}, known
}
