package httpexec

import (
	"context"
	"net/http"
	"strings"

	"github.com/icholy/digest"

	"github.com/10f93571/retry/httpexec/request"
)

// challenge is what the server wants to see answered with --digest. Further attempts answer it too, and so need one
// request alone.
type challenge struct {
	*digest.Challenge     // nil before the first
	answers           int // how often it was answered
}

// sendAuthorized sends a request, and once more if the server challenges it. The server has not processed it then.
func (a *attempt) sendAuthorized(ctx context.Context, h wireRequest) (*http.Response, func(), error) {
	digests := a.request.Digest && a.user != "" && h.origin() == a.first.origin() &&
		request.Value(h.header, "Authorization") == ""
	if !digests {
		return a.send(ctx, h)
	}
	response, done, err := a.send(ctx, a.answered(h))
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, done, err
	}
	asked, err := digest.FindChallenge(response.Header)
	if err != nil { // it asks for another kind of authentication
		return response, done, nil
	}
	done()
	for i, q := range asked.QOP {
		asked.QOP[i] = strings.TrimSpace(q)
	}
	a.challenge = challenge{Challenge: asked}
	return a.send(ctx, a.answered(h))
}

// answered returns the request with the answer to the latest challenge, if there is one.
func (a *attempt) answered(h wireRequest) wireRequest {
	if a.challenge.Challenge == nil {
		return h
	}
	a.challenge.answers++
	name, password, _ := strings.Cut(a.user, ":")
	answer, err := digest.Digest(a.challenge.Challenge, digest.Options{
		Method: h.method, URI: h.url.RequestURI(), Count: a.challenge.answers, Username: name, Password: password,
	})
	if err == nil { // else the challenge stays without an answer
		h.header = h.header.Clone()
		h.header["Authorization"] = []string{answer.String()}
	}
	return h
}

// authorizeFor gives a request to another server the user that .netrc has for that.
func (a *attempt) authorizeFor(to *wireRequest) {
	if user := a.netrc.User(to.url.Hostname(), ""); user != "" && !a.request.Digest {
		a.refs.HideUser(user)
		to.header["Authorization"] = []string{basic(user)}
	}
}
