package problem

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"unicode/utf8"
)

// maxDepth bounds how deep arrays and objects may nest. Whoever reads a body after us may recurse.
const maxDepth = 128

// Read reads the JSON object that a request has as its body. The error is a *Problem: 413 for more than limit bytes,
// else as Parse says.
func Read(w http.ResponseWriter, r *http.Request, limit int64) (*Object, error) {
	if r.ContentLength > limit { // a client that asks first (Expect: 100-continue) need not send it
		return nil, of(&http.MaxBytesError{Limit: limit})
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, of(err)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, TooSlow()
	}
	if err != nil {
		return nil, BadRequest("read the body: %v", err)
	}
	return Parse(body)
}

// Parse reads a JSON object. The error is a *Problem: 400 for what is not JSON, with the offset in bytes; 422 for
// another value than an object, and for one with more than maxNames names. The object refers to body.
func Parse(body []byte) (*Object, error) {
	if err := check(body); err != nil {
		return nil, err
	}
	body = trim(body)
	report := &report{}
	if body[0] != '{' {
		report.add("", "want an object, got "+kind(body))
	} else if o := newObject(report, "", body); o != nil {
		return o, nil
	}
	return nil, report.problem()
}

func check(body []byte) error {
	invalid := func(format string, args ...any) error {
		return New(http.StatusBadRequest, "invalid-json", format, args...)
	}
	if len(trim(body)) == 0 {
		return invalid("the body is empty\nhint: send a JSON object")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return invalid("invalid JSON at offset %d: %v", syntax.Offset, syntax)
		}
		return invalid("invalid JSON: %v", err)
	}
	if at := invalidUTF8(body); at >= 0 {
		return invalid("invalid UTF-8 at offset %d", at)
	}
	if at := tooDeep(body); at >= 0 {
		return invalid("nested deeper than %d levels at offset %d", maxDepth, at)
	}
	return nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1. encoding/json would replace it in silence.
func invalidUTF8(body []byte) int {
	if utf8.Valid(body) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}
