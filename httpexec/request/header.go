package request

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ErrHead says that a method or a header cannot be sent.
var ErrHead = errors.New("the request cannot be sent")

// HeaderOf returns the headers of a request: those of the user, by the rules of curl, and the defaults that they leave.
// Names keep their case.
func HeaderOf(r *Request, defaults http.Header, refs *References) (http.Header, error) {
	header := http.Header{}
	for i, line := range r.Header {
		name, value, err := cutLine(line)
		if err != nil {
			return nil, fmt.Errorf("%w: header %d %w", ErrHead, i+1, err)
		}
		if value, err = refs.Expand(value); err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		Remove(defaults, name)
		if strings.EqualFold(name, "Host") {
			name = "Host"
		}
		if value != "" || strings.HasSuffix(line, ";") {
			header[name] = append(header[name], value)
		}
	}
	for name, values := range defaults {
		header[name] = values
	}
	return header, nil
}

// cutLine splits "Name: value", "Name:" and "Name;". The line is not repeated: it may be secret.
func cutLine(line string) (name, value string, err error) {
	name, value, found := strings.Cut(line, ":")
	if !found {
		if name, found = strings.CutSuffix(line, ";"); !found {
			if strings.HasPrefix(line, "@") {
				return "", "", errors.New("is the name of a file, and none is read" +
					"\nhint: write each header as -H 'Name: value'; {env:NAME} stands for a secret")
			}
			return "", "", errors.New("has no colon\nhint: write it as 'Name: value'")
		}
	}
	if !isToken(name) {
		return "", "", fmt.Errorf("has a name that is none: %q", name)
	}
	return name, strings.Trim(value, " \t"), nil
}

// KeyHeader carries the idempotency key.
const KeyHeader = "Idempotency-Key"

// Styled writes a key; as a string of RFC 8941, section 3.3.3, in quotes.
func Styled(key string, style KeyStyle) string {
	if style != KeySF {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// TakenAway reports whether "Name:" stands among the lines.
func TakenAway(lines []string, name string) bool {
	for _, line := range lines {
		if got, text, found := strings.Cut(line, ":"); found && strings.EqualFold(got, name) && strings.TrimSpace(text) == "" {
			return true
		}
	}
	return false
}

// Value returns the first of a header, whatever the case of its name.
func Value(header http.Header, name string) string {
	for got, values := range header {
		if strings.EqualFold(got, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// Remove takes a header away, whatever the case of its name.
func Remove(header http.Header, name string) {
	for got := range header {
		if strings.EqualFold(got, name) {
			delete(header, got)
		}
	}
}

// CheckHead refuses what net/http refuses only after it has connected, with an error without a type. Values are not
// repeated in the error, as they may be secret.
func CheckHead(method string, header http.Header) error {
	if !isToken(method) {
		return fmt.Errorf("%w: invalid method %q", ErrHead, method)
	}
	for name, values := range header {
		if !isToken(name) {
			return fmt.Errorf("%w: invalid header name %q", ErrHead, name)
		}
		for _, value := range values {
			if strings.ContainsFunc(value, isControl) {
				return fmt.Errorf("%w: the header %s holds a control character", ErrHead, name)
			}
		}
	}
	return nil
}

func isControl(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) }

// isToken follows RFC 9110, section 5.6.2.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
