package httpexec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/httpexec/webhook"
)

// wireRequest is one request of an attempt: the first, or one that a redirect led to.
type wireRequest struct {
	method  string
	url     *url.URL
	header  http.Header // names keep their case
	body    *bodies     // nil for none
	chunked bool        // the request does not say how long the body is
	upload  bool        // the body is an uploaded file
	secret  []string    // the headers whose values are references to secrets
}

// address returns the host:port that a request is for.
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
	r := (&http.Request{
		Method: h.method, URL: h.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h.header.Clone(),
		Host: cmp.Or(request.Value(h.header, "Host"), strings.TrimSuffix(h.url.Host, ":")),
	}).WithContext(ctx)
	if user := h.url.User; user != nil && request.Value(h.header, "Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if _, given := r.Header["User-Agent"]; !given {
		r.Header["User-Agent"] = nil // net/http does not add its own
	}
	return r, h.setBody(r)
}

// setBody gives the request its body and length.
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
	if h.body.text != nil { // net/http sends what it knows to be in memory together with the header, in one packet
		r.Body = io.NopCloser(bytes.NewReader(h.body.text))
	} else {
		r.Body = h.body.reader()
	}
	if h.chunked {
		r.ContentLength = -1
	}
	return nil
}

// errRedirects says that a redirect cannot be followed.
var errRedirects = errors.New("the redirect is not followed")

// sameOrigin are the headers that are not sent to another server. curl does send X-Api-Key. A key that one server
// remembers says nothing to another one, and lets it link the two.
var sameOrigin = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Host", request.KeyHeader,
	webhook.SignatureHeader}

// redirect returns the request that a reply redirects to; ok is false for another reply. POST becomes GET after a 301 or
// 302, all but HEAD after a 303 (RFC 9110, section 15.4). A method given with -X stays, as in curl, where it has no body
// or is POST, which then goes without it. An empty PUT would overwrite what is there.
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
	to = h
	to.url, to.header = u, h.header.Clone()
	if h.becomesGet(status) {
		to.body = nil
		request.Remove(to.header, "Content-Type")
		request.Remove(to.header, "Content-Length")
		request.Remove(to.header, webhook.SignatureHeader) // it is that of the body
		keeps := methodGiven && (h.body == nil || h.method == http.MethodPost)
		if !keeps && h.method != http.MethodHead {
			to.method = http.MethodGet
		}
	}
	if to.origin() != h.origin() {
		for _, name := range slices.Concat(sameOrigin, h.secret) {
			request.Remove(to.header, name)
		}
	}
	return to, true, nil
}

// becomesGet reports whether a redirect drops the body.
func (h *wireRequest) becomesGet(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound:
		return !h.upload && h.method == http.MethodPost
	case http.StatusSeeOther:
		return true
	}
	return false
}

// answered reports whether a redirect says that the request was processed, and where its result is. Any other redirect
// asks for the same request elsewhere. A method that -X keeps does not matter here.
func answered(h, to wireRequest, status int) bool {
	return status == http.StatusSeeOther || to.method != h.method || (to.body == nil) != (h.body == nil) ||
		(h.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound))
}

// origin names the server that may receive the secrets of a request.
func (h *wireRequest) origin() string { return h.url.Scheme + "://" + strings.ToLower(h.address()) }
