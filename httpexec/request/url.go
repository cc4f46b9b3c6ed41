package request

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// ErrURL says that a URL cannot be requested.
var ErrURL = errors.New("the URL cannot be requested")

// ReadURL reads a URL as curl does, with the values of its references. The user and the password in it are returned
// beside it.
func ReadURL(text string, refs *References) (u *url.URL, user string, err error) {
	text, err = refs.ExpandAt(text, EscapeIn(text))
	if err != nil {
		return nil, "", err
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, "", fmt.Errorf("%w: it holds a space or a control character\nhint: write a space as %%20", ErrURL)
	}
	whole := text
	text, _, _ = strings.Cut(text, "#")
	start, end := authorityOf(text)
	scheme, host := text[:start], text[start:end]
	if scheme == "" {
		scheme = "http://"
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, host = Userinfo(host[:at]), host[at+1:]
	}
	u, err = url.Parse(scheme + host + legal(text[end:]))
	if err != nil {
		return nil, "", urlError(err, strings.Contains(whole[end:], "@"))
	}
	u = (&url.URL{}).ResolveReference(u) // without the dot segments
	return u, user, CheckURL(u)
}

// authorityOf returns the offsets of user and host in a URL. If start is 0, the URL has no scheme.
func authorityOf(text string) (start, end int) {
	if scheme, _, found := strings.Cut(text, ":/"); found && isToken(scheme) {
		start = len(scheme) + len(":")
		start += len(text[start:]) - len(strings.TrimPrefix(text[start:], "//"))
	}
	if length := strings.IndexAny(text[start:], "/?"); length >= 0 {
		return start, start + length
	}
	return start, len(text)
}

// EscapeIn returns a function that escapes the value of a reference in a URL, so that it stays within its part of the
// URL. A value at the beginning of the URL or in the host is not escaped.
func EscapeIn(text string) func(at int, value string) string {
	plain := blankReferences(text)
	start, end := authorityOf(plain)
	user := start + strings.LastIndexByte(plain[start:end], '@')
	return func(at int, value string) string {
		switch {
		case at < user:
			return PercentEncode(value, "")
		case at < end:
			return value
		case strings.Contains(plain[:at], "?"):
			return PercentEncode(value, "")
		}
		return PercentEncode(value, "/")
	}
}

// Userinfo decodes a user and a password. An invalid escape stays as it is.
func Userinfo(text string) string {
	name, password, _ := strings.Cut(text, ":")
	return unescape(name) + ":" + unescape(password)
}

func unescape(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// legal escapes the characters that a path must not hold. In a query only those beyond ASCII are escaped.
func legal(text string) string {
	path, query, found := strings.Cut(text, "?")
	path = EncodeIf(path, func(c byte) bool { return c > '~' || strings.IndexByte("\"<>\\^`{|}", c) >= 0 })
	if !found {
		return path
	}
	return path + "?" + EncodeIf(query, func(c byte) bool { return c > '~' })
}

const hexDigits = "0123456789ABCDEF"

// EncodeIf percent-encodes the bytes that are wanted.
func EncodeIf(text string, wanted func(byte) bool) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; wanted(c) {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// PercentEncode encodes all but what RFC 3986 calls unreserved, and the characters of keep.
func PercentEncode(text, keep string) string {
	return EncodeIf(text, func(c byte) bool { return c > '~' || !isWordOr(rune(c), "-._~"+keep) })
}

// urlError says what is wrong with a URL. It repeats no part of it: what looks like a port may be a password.
func urlError(err error, user bool) error {
	switch {
	case errors.As(err, new(url.EscapeError)):
		return fmt.Errorf("%w: a %% in it is not followed by two digits\nhint: write a %% as %%25", ErrURL)
	case user:
		return fmt.Errorf("%w: it is malformed\nhint: in a password write / as %%2F, ? as %%3F and # as %%23", ErrURL)
	}
	return fmt.Errorf("%w: it is malformed", ErrURL)
}

// CheckURL refuses a URL that cannot be requested.
func CheckURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &SchemeError{u.Scheme}
	case u.Hostname() == "":
		return fmt.Errorf("%w: it names no host", ErrURL)
	case strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > '~' }):
		return fmt.Errorf("%w: its host has letters beyond ASCII\nhint: write the host in its xn-- form", ErrURL)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%w: invalid port %s", ErrURL, port)
		}
	}
	return nil
}

// SchemeError says that the scheme of a URL is neither http nor https.
type SchemeError struct{ scheme string }

func (e *SchemeError) Error() string {
	return fmt.Sprintf("%s: %q is neither http nor https", ErrURL.Error(), e.scheme)
}

func (e *SchemeError) Unwrap() error { return ErrURL }

// Host implements task.Target.
func (r *Request) Host() string { return HostOf(r.URL) }

// HostOf returns the authority of a URL in lower case, without the user and without the usual port of its scheme; empty
// where it has none.
func HostOf(text string) string {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	usual := ":" // url.Parse has the scheme in lower case
	switch u.Scheme {
	case "http":
		usual = ":80"
	case "https":
		usual = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(u.Host), usual)
}
