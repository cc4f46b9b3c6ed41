package httpexec

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// errRedirects says that a redirect was not followed.
var errRedirects = errors.New("the redirect is not followed")

// meantForOne are the headers that another server is not told. curl takes X-Api-Key along.
var meantForOne = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Host"}

// next returns the hop that a reply leads to; ok is false where it leads nowhere. The methods are curl's: POST becomes GET after a 301, 302
// or 303, everything but HEAD after a 303; one that was given with -X stays, without its body.
func (h hop) next(status int, location string, methodGiven bool) (to hop, ok bool, err error) {
	if status < 300 || status > 399 || location == "" {
		return hop{}, false, nil
	}
	u, err := h.url.Parse(location)
	if err != nil {
		return hop{}, false, fmt.Errorf("%w: its Location is no URL", errRedirects)
	}
	if err := checkURL(u); err != nil {
		return hop{}, false, fmt.Errorf("%w: %w", errRedirects, err)
	}
	to = hop{method: h.method, url: u, header: h.header.Clone(), body: h.body, chunked: h.chunked}
	if becomesGet(h.method, h.body, status, methodGiven) {
		to.body = nil
		remove(to.header, "Content-Type")
		remove(to.header, "Content-Length")
		if !methodGiven && h.method != http.MethodHead {
			to.method = http.MethodGet
		}
	}
	if to.origin() != h.origin() {
		for _, name := range meantForOne {
			remove(to.header, name)
		}
	}
	return to, true, nil
}

// becomesGet reports whether a redirect drops the body. What -X calls the method does not matter to curl there: data is data.
func becomesGet(method string, body Body, status int, methodGiven bool) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound:
		return method == http.MethodPost || (methodGiven && body != nil)
	case http.StatusSeeOther:
		return true
	}
	return false
}

// answered reports whether a redirect of that status says that the request was dealt with, and to look elsewhere for what came of it; any
// other sends the request on. What -X keeps of it does not matter: with -X POST curl, too, sends another POST then.
func answered(h, to hop, status int) bool {
	return status == http.StatusSeeOther || to.method != h.method || (to.body == nil) != (h.body == nil) ||
		(h.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound))
}

// origin is whom the secrets of a request are for.
func (h *hop) origin() string { return h.url.Scheme + "://" + strings.ToLower(h.address()) }
