// Package problem tells a client of the API what is wrong with its request: as problem details (RFC 9457), with every
// mistake of a JSON body at once and where it stands.
//
// The type of a problem is a relative reference, /problems/NAME. It never changes, so that a program can tell problems
// apart by it. The names are those of the constructors below, and those that a caller gives to New.
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is an error that a client is told of, with the names of RFC 9457. Hint says what to do about it.
type Problem struct {
	Type   string    `json:"type"`
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail,omitempty"`
	Hint   string    `json:"hint,omitempty"`
	Errors []Mistake `json:"errors,omitempty"`

	// RetryAfter is told in the header of that name, in whole seconds, unless it is 0.
	RetryAfter time.Duration `json:"-"`
}

// Mistake is one thing wrong with a JSON body. Pointer (RFC 6901) says where: "" is the whole body.
type Mistake struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"`
}

// New returns a problem of the type /problems/NAME. The title is the name in words. A line "hint: …" in the text, as
// our errors have it, becomes the hint.
func New(status int, name, format string, args ...any) *Problem {
	detail, hint := cutHint(fmt.Sprintf(format, args...))
	title := strings.NewReplacer("-", " ", "json", "JSON").Replace(name)
	return &Problem{
		Type: "/problems/" + name, Title: strings.ToUpper(title[:1]) + title[1:], Status: status,
		Detail: detail, Hint: hint,
	}
}

func cutHint(message string) (detail, hint string) {
	detail, hint, _ = strings.Cut(message, "\nhint: ")
	return detail, hint
}

// BadRequest is 400: the request cannot be understood.
func BadRequest(format string, args ...any) *Problem {
	return New(http.StatusBadRequest, "bad-request", format, args...)
}

// TooSlow is 400: the body stopped arriving. The error of the connection names addresses, which are nobody's concern.
func TooSlow() *Problem { return BadRequest("the body did not arrive in time") }

// Unauthorized is 401: it is not known who asks.
func Unauthorized(format string, args ...any) *Problem {
	return New(http.StatusUnauthorized, "unauthorized", format, args...)
}

// Forbidden is 403: who asks may not do that.
func Forbidden(format string, args ...any) *Problem {
	return New(http.StatusForbidden, "forbidden", format, args...)
}

// NotFound is 404.
func NotFound(format string, args ...any) *Problem {
	return New(http.StatusNotFound, "not-found", format, args...)
}

// MethodNotAllowed is 405. The caller sets the header Allow.
func MethodNotAllowed(format string, args ...any) *Problem {
	return New(http.StatusMethodNotAllowed, "method-not-allowed", format, args...)
}

// Conflict is 409: what is there does not allow it now.
func Conflict(format string, args ...any) *Problem {
	return New(http.StatusConflict, "conflict", format, args...)
}

// Gone is 410: it was there, and is not kept any more.
func Gone(format string, args ...any) *Problem {
	return New(http.StatusGone, "gone", format, args...)
}

// PreconditionFailed is 412: an If-Match that names an old version.
func PreconditionFailed(format string, args ...any) *Problem {
	return New(http.StatusPreconditionFailed, "precondition-failed", format, args...)
}

// TooLarge is 413.
func TooLarge(format string, args ...any) *Problem {
	return New(http.StatusRequestEntityTooLarge, "too-large", format, args...)
}

// UnsupportedMediaType is 415.
func UnsupportedMediaType(format string, args ...any) *Problem {
	return New(http.StatusUnsupportedMediaType, "unsupported-media-type", format, args...)
}

// Unprocessable is 422: understood, but wrong. Object.Finish makes one with pointers.
func Unprocessable(format string, args ...any) *Problem {
	return New(http.StatusUnprocessableEntity, "unprocessable", format, args...)
}

// TooManyRequests is 429: try again after the given time.
func TooManyRequests(after time.Duration, format string, args ...any) *Problem {
	p := New(http.StatusTooManyRequests, "too-many-requests", format, args...)
	p.RetryAfter = after
	return p
}

// Unavailable is 503: nothing was made, try again after the given time.
func Unavailable(after time.Duration, format string, args ...any) *Problem {
	p := New(http.StatusServiceUnavailable, "unavailable", format, args...)
	p.RetryAfter = after
	return p
}

// Error returns the detail, the mistakes and the hint as text.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Title)
	if p.Detail != "" {
		b.WriteString(": " + p.Detail)
	}
	for _, m := range p.Errors {
		fmt.Fprintf(&b, "\n%s: %s", m.Pointer, m.Detail)
	}
	if p.Hint != "" {
		b.WriteString("\nhint: " + p.Hint)
	}
	return b.String()
}

// Write answers a request with the problem that an error is or wraps. A body that was longer than its bound is 413. Any
// other error is 500, and its text is not told: it may name files, and belongs in the log.
func Write(w http.ResponseWriter, err error) {
	p := of(err)
	header := w.Header()
	header.Del("Content-Length")
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatFloat(math.Ceil(p.RetryAfter.Seconds()), 'f', 0, 64))
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="retry"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}

func of(err error) *Problem {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return TooLarge("the body is larger than %d bytes", tooLong.Limit)
	}
	return New(http.StatusInternalServerError, "internal-error", "the request failed, see the log of the server")
}
