package httpexec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Request is what every attempt sends.
type Request struct {
	Method      string // GET where empty
	MethodGiven bool   // it stays through redirects, as with curl's -X
	URL         string
	Header      http.Header // Host, where it is given, goes before the URL's
	Body        Body        // nil for none
}

// hop is one request of an attempt: the first, or what a redirect led to.
type hop struct {
	method string
	url    *url.URL
	header http.Header
	body   Body
}

// errURL says that a URL cannot be requested.
var errURL = errors.New("the URL cannot be requested")

// first returns the hop that an attempt begins with.
func (r *Request) first() (hop, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return hop{}, err
	}
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return hop{method: cmp.Or(r.Method, http.MethodGet), url: u, header: header, body: r.Body}, nil
}

// parseURL reads a URL and refuses what net/http would refuse without a type.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, urlError(text, err)
	}
	return u, checkURL(u)
}

// urlError says what is wrong with a URL, and repeats none of it that may be a password.
func urlError(text string, err error) error {
	var detail *url.Error
	if !errors.As(err, &detail) || strings.Contains(text, "@") {
		return fmt.Errorf("%w: it is malformed", errURL)
	}
	return fmt.Errorf("%w: %w", errURL, detail.Err)
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &schemeError{u.Scheme}
	case u.Hostname() == "":
		return fmt.Errorf("%w: it names no host", errURL)
	case strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > '~' }):
		return fmt.Errorf("%w: its host has letters beyond ASCII\nhint: write the host in its xn-- form", errURL)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%w: %s is no port", errURL, port)
		}
	}
	return nil
}

// schemeError says that a URL is of a protocol that is not spoken here.
type schemeError struct{ scheme string }

func (e *schemeError) Error() string {
	if e.scheme == "" {
		return errURL.Error() + ": it does not begin with http:// or https://"
	}
	return fmt.Sprintf("%s: %q is neither http nor https", errURL.Error(), e.scheme)
}

func (e *schemeError) Unwrap() error { return errURL }

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
		return nil, fmt.Errorf("%w: %w", errURL, err)
	}
	r.Header = h.header.Clone()
	r.Host = cmp.Or(h.header.Get("Host"), r.Host)
	if user := h.url.User; user != nil && r.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if h.body == nil {
		return r, nil
	}
	r.ContentLength = h.body.Size()
	r.Body = http.NoBody
	if r.ContentLength > 0 {
		r.Body = &bodyReader{io.NewSectionReader(h.body, 0, r.ContentLength), r.ContentLength}
	}
	return r, nil
}
