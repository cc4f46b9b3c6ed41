// Package access decides who may call the API: it checks where a request comes from, who sends it and what that one may
// do, before any handler runs.
//
// A page that a user happens to look at must not be able to call the API with the user's rights. So Host, Origin and
// Sec-Fetch-Site are checked on loopback, too, a body has to be JSON (no form can send that), and no answer ever has a
// CORS header.
package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/server/problem"
)

// Scope is what a caller may do. Each scope includes those below it.
type Scope int

// Read looks, Write makes and changes tasks, Admin also makes tasks that run commands.
const (
	None Scope = iota
	Read
	Write
	Admin
)

// Identity is who calls.
type Identity struct {
	Name  string
	Scope Scope

	token string // id of the token that said so, "" where none did
}

// Config is what New needs.
type Config struct {
	Tokens   *Tokens  // nil without --token-file
	ClientCA bool     // a client certificate that TLS has verified identifies its owner, with scope Write
	Listen   string   // the address that is listened on, as --listen has it
	Hosts    []string // --allow-host: more names under which the API is reached

	// AnyType says which requests may have a body that is not JSON, and Open which need no identity. Both may be nil.
	AnyType, Open func(r *http.Request) bool
}

// Access checks requests.
type Access struct {
	Config
	hosts    []string // lower case
	sessions sessions
}

// New returns an Access. The server has to use ConnContext of this package.
func New(c Config) *Access {
	a := &Access{Config: c, sessions: sessions{now: time.Now}}
	names := slices.Clone(c.Hosts)
	if _, unix := cutUnix(c.Listen); !unix {
		names = append(names, c.Listen)
	}
	for _, name := range names {
		a.hosts = append(a.hosts, canonicalHost(name))
	}
	return a
}

type identityKey struct{}

// identified is what a request carries: who sent it, and who can tell that again.
type identified struct {
	Identity
	by *Access
}

// Of returns who sent a request: the zero Identity, with scope None, where it is not known.
func Of(ctx context.Context) Identity {
	found, _ := ctx.Value(identityKey{}).(identified)
	return found.Identity
}

// Now returns what Of would say had the request come just now: what is being answered for long may be that of a token
// which has been removed meanwhile, or of a session that has ended.
func Now(r *http.Request) Identity {
	found, _ := r.Context().Value(identityKey{}).(identified)
	if found.by == nil {
		return Identity{}
	}
	identity, err := found.by.identify(r)
	if err != nil {
		return Identity{}
	}
	return identity
}

// Require refuses with 403 whoever has not the scope.
func Require(scope Scope, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := Of(r.Context()); who.Scope < scope {
			problem.Write(w, problem.Forbidden("%s has scope %s, this needs scope %s", who.Name, who.Scope, scope))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Handler checks each request before next gets it: where it comes from, its type, and who sends it.
func (a *Access) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && (len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)) {
			// Where a proxy in front of us takes the length from Content-Length, it sees another end of this body than we
			// do. Nothing that follows on the connection is read as a request then.
			w.Header().Set("Connection", "close")
		}
		identity, err := a.check(r)
		if err != nil {
			if found, ok := errors.AsType[*problem.Problem](err); ok && found.Status == http.StatusUnauthorized {
				w.Header().Set("Connection", "close") // whoever is nobody here holds none of our connections
			}
			problem.Write(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, identified{identity, a})))
	})
}

func (a *Access) check(r *http.Request) (Identity, error) {
	if err := a.checkHost(r); err != nil {
		return Identity{}, err
	}
	if err := checkOrigin(r); err != nil {
		return Identity{}, err
	}
	if a.AnyType == nil || !a.AnyType(r) {
		if err := checkType(r); err != nil {
			return Identity{}, err
		}
	}
	identity, err := a.identify(r)
	if err != nil && a.Open != nil && a.Open(r) {
		return Identity{}, nil
	}
	return identity, err
}

// identify finds out who sends a request. A token that is sent decides alone.
func (a *Access) identify(r *http.Request) (Identity, error) {
	if values := r.Header.Values("Authorization"); len(values) > 0 {
		return a.byToken(values)
	}
	peer := peerOf(r.Context())
	switch {
	case peer.unix:
		return peer.identity()
	case a.ClientCA && r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return Identity{Name: certificateName(r.TLS.PeerCertificates[0]), Scope: Write}, nil
	case a.Tokens == nil && !a.ClientCA && peer.uid != nil:
		return peer.identity()
	}
	if identity, found := a.sessions.find(r, a.Tokens); found {
		return identity, nil
	}
	if a.Tokens == nil {
		return Identity{}, problem.Unauthorized("no client certificate was sent\nhint: give one that --client-ca has signed")
	}
	return Identity{}, problem.Unauthorized("no token was sent\nhint: send Authorization: Bearer rtk_…; " +
		"retry token add makes a token")
}

func (a *Access) byToken(values []string) (Identity, error) {
	scheme, token, _ := strings.Cut(values[0], " ")
	switch {
	case len(values) > 1 || !strings.EqualFold(scheme, "Bearer"):
		return Identity{}, problem.Unauthorized("want one header Authorization: Bearer rtk_…")
	case a.Tokens == nil:
		return Identity{}, problem.Unauthorized("tokens are not in use here\nhint: start the server with --token-file FILE")
	}
	identity, found := a.Tokens.Find(strings.TrimSpace(token))
	if !found {
		return Identity{}, problem.Unauthorized("the token is not valid")
	}
	return identity, nil
}
