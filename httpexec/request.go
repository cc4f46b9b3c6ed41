package httpexec

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// hop is one request of an attempt: the first, or what a redirect led to.
type hop struct {
	method  string
	url     *url.URL
	header  http.Header // names as they are written
	body    Body        // nil for none
	chunked bool        // the body's length is not told
}

// address is where a hop connects to without a proxy: host:port.
func (h *hop) address() string {
	port := h.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[h.url.Scheme]
	}
	return join(h.url.Hostname(), port)
}

// request makes the one that net/http sends. It has no GetBody, so that nothing can read the body a second time.
func (h *hop) request(ctx context.Context) (*http.Request, error) {
	if err := checkHead(h.method, h.header); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, h.method, h.url.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: it is malformed", errURL) // not its text, which may hold a password
	}
	r.URL = h.url // as it is written
	r.Header = h.header.Clone()
	r.Host = cmp.Or(value(h.header, "Host"), r.Host)
	if user := h.url.User; user != nil && value(h.header, "Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if _, given := r.Header["User-Agent"]; !given {
		r.Header["User-Agent"] = nil // or net/http would name itself
	}
	return r, h.setBody(r)
}

// setBody gives the request its body, and says how long it is.
func (h *hop) setBody(r *http.Request) error {
	length := value(h.header, "Content-Length")
	remove(r.Header, "Content-Length")
	size := int64(0)
	if h.body != nil {
		size = h.body.Size()
	}
	if length != "" && length != strconv.FormatInt(size, 10) {
		return fmt.Errorf("%w: the header Content-Length says %s, and the body has %d bytes", errHead, length, size)
	}
	if h.body == nil && length == "" {
		return nil
	}
	r.Body, r.ContentLength = http.NoBody, size
	if size == 0 {
		r.TransferEncoding = []string{"identity"} // net/http tells the length of no body where the method wants one; this tells it always
		return nil
	}
	reader := &bodyReader{from: io.NewSectionReader(h.body, 0, size), left: size}
	if files, ok := h.body.(*joined); ok {
		reader.same = files.same
	}
	r.Body = reader
	if h.chunked {
		r.ContentLength = -1
	}
	return nil
}
