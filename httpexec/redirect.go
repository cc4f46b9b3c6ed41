package httpexec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// wireRequest is one request of an attempt: the first, or one that a redirect led to.
type wireRequest struct {
	method  string
	url     *url.URL
	header  http.Header // names as they are written
	body    *bodies     // nil for none
	chunked bool        // the body's length is not told
}

// address is the host:port that a request connects to without a proxy.
func (h *wireRequest) address() string {
	port := h.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[h.url.Scheme]
	}
	return net.JoinHostPort(h.url.Hostname(), port)
}

// build makes the request of net/http. Its context carries the trace.
func (h *wireRequest) build(ctx context.Context) (*http.Request, error) {
	if err := request.CheckHead(h.method, h.header); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, h.method, h.url.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: it is malformed", request.ErrURL) // not its text, which may hold a password
	}
	r.URL = h.url // as it is written
	r.Header = h.header.Clone()
	r.Host = cmp.Or(request.Value(h.header, "Host"), r.Host)
	if user := h.url.User; user != nil && request.Value(h.header, "Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if _, given := r.Header["User-Agent"]; !given {
		r.Header["User-Agent"] = nil // or net/http would name itself
	}
	return r, h.setBody(r)
}

// setBody gives the request its body, and says how long it is.
func (h *wireRequest) setBody(r *http.Request) error {
	length := request.Value(h.header, "Content-Length")
	request.Remove(r.Header, "Content-Length")
	size := int64(0)
	if h.body != nil {
		size = h.body.size
	}
	if length != "" && length != strconv.FormatInt(size, 10) {
		return fmt.Errorf("%w: the header Content-Length says %s, and the body has %d bytes", request.ErrHead, length, size)
	}
	if h.body == nil && length == "" {
		return nil
	}
	r.Body, r.ContentLength = http.NoBody, size
	if size == 0 {
		// net/http sends Content-Length: 0 only for some methods; with this it sends it for each.
		r.TransferEncoding = []string{"identity"}
		return nil
	}
	r.Body = h.body.reader()
	if h.chunked {
		r.ContentLength = -1
	}
	return nil
}

// errRedirects says that a redirect was not followed.
var errRedirects = errors.New("the redirect is not followed")

// meantForOne are the headers that another server is not told. curl takes X-Api-Key along.
var meantForOne = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Host"}

// redirect returns the request that a reply leads to; ok is false where the reply is no redirect. The methods are
// curl's: POST becomes GET after a 301, 302 or 303, everything but HEAD after a 303; one that was given with -X stays,
// without its body.
func (h wireRequest) redirect(status int, location string, methodGiven bool) (to wireRequest, ok bool, err error) {
	if status < 300 || status > 399 || location == "" {
		return wireRequest{}, false, nil
	}
	u, err := h.url.Parse(location)
	if err != nil {
		return wireRequest{}, false, fmt.Errorf("%w: invalid URL in its Location", errRedirects)
	}
	if err := request.CheckURL(u); err != nil {
		return wireRequest{}, false, fmt.Errorf("%w: %w", errRedirects, err)
	}
	to = wireRequest{method: h.method, url: u, header: h.header.Clone(), body: h.body, chunked: h.chunked}
	if becomesGet(h.method, h.body, status, methodGiven) {
		to.body = nil
		request.Remove(to.header, "Content-Type")
		request.Remove(to.header, "Content-Length")
		if !methodGiven && h.method != http.MethodHead {
			to.method = http.MethodGet
		}
	}
	if to.origin() != h.origin() {
		for _, name := range meantForOne {
			request.Remove(to.header, name)
		}
	}
	return to, true, nil
}

// becomesGet reports whether a redirect drops the body. What -X calls the method does not matter to curl there: data is
// data.
func becomesGet(method string, body *bodies, status int, methodGiven bool) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound:
		return method == http.MethodPost || (methodGiven && body != nil)
	case http.StatusSeeOther:
		return true
	}
	return false
}

// answered reports whether a redirect of that status says that the request was dealt with, and to look elsewhere for
// what came of it; any other sends the request on. What -X keeps of it does not matter: with -X POST curl, too, sends
// another POST then.
func answered(h, to wireRequest, status int) bool {
	return status == http.StatusSeeOther || to.method != h.method || (to.body == nil) != (h.body == nil) ||
		(h.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound))
}

// origin is the server that may see the secrets of a request.
func (h *wireRequest) origin() string { return h.url.Scheme + "://" + strings.ToLower(h.address()) }
