package request

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/10f93571/retry/internal/files"
)

// ErrHead says that a method or a header cannot be sent.
var ErrHead = errors.New("the request cannot be sent")

// HeaderOf returns the headers of a request: those of the user, by the rules of curl, and the defaults that the user
// does not replace. Names keep their case.
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

// ReadHeaders returns lines, with those of each file in place of its "@FILE". fromFiles are these alone.
func ReadHeaders(lines []string) (all, fromFiles []string, err error) {
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "@") }) {
		return lines, nil, nil
	}
	for _, line := range lines {
		name, isFile := strings.CutPrefix(line, "@")
		if !isFile {
			all = append(all, line)
			continue
		}
		content, err := ReadAgain(name)
		if err != nil {
			return nil, nil, fmt.Errorf("-H @FILE: %w", err)
		}
		for read := range strings.Lines(string(content)) {
			if read = strings.TrimSpace(read); read != "" && !strings.HasPrefix(read, "#") {
				all, fromFiles = append(all, read), append(fromFiles, read)
			}
		}
	}
	return all, fromFiles, nil
}

// ReadAgain reads a file that each run of a task reads. It refuses a pipe, which is empty the second time and may never
// end, and an open file, as /dev/stdin is: a resume has another one there.
func ReadAgain(name string) ([]byte, error) {
	if files.IsDescriptor(name) {
		return nil, fmt.Errorf("%s is an open file of this process, and a resume would read another one", name)
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && name != os.DevNull {
		return nil, fmt.Errorf("%s is no regular file, and each attempt reads it again", name)
	}
	return os.ReadFile(name)
}

// cutLine splits "Name: value", "Name:" and "Name;". Errors do not repeat the line: it may be secret.
func cutLine(line string) (name, value string, err error) {
	name, value, found := strings.Cut(line, ":")
	if !found {
		if name, found = strings.CutSuffix(line, ";"); !found {
			return "", "", errors.New("has no colon\nhint: write it as 'Name: value'")
		}
	}
	if !isToken(name) {
		return "", "", fmt.Errorf("has a name that is none: %q", name)
	}
	return name, strings.Trim(value, " \t"), nil
}

// KeyHeader is the header of the idempotency key.
const KeyHeader = "Idempotency-Key"

// Styled returns a key as it is, or as a string of RFC 8941, section 3.3.3, in quotes.
func Styled(key string, style KeyStyle) string {
	if style != KeySF {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// IsOmitted reports whether the lines have "Name:", which leaves the header out.
func IsOmitted(lines []string, name string) bool {
	for _, line := range lines {
		got, text, found := strings.Cut(line, ":")
		if found && strings.EqualFold(got, name) && strings.TrimSpace(text) == "" {
			return true
		}
	}
	return false
}

// Value returns the first value of a header. Upper and lower case in the name are the same.
func Value(header http.Header, name string) string {
	if values := header[name]; len(values) > 0 { // as it is usually written
		return values[0]
	}
	for got, values := range header {
		if sameName(got, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// sameName reports whether two names of headers, which are ASCII, are the same but for upper and lower case.
func sameName(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }

// Remove removes a header. Upper and lower case in the name are the same.
func Remove(header http.Header, name string) {
	for got := range header {
		if sameName(got, name) {
			delete(header, got)
		}
	}
}

// CheckHead refuses what net/http would refuse only after connecting, and with an untyped error. The error does not
// repeat values: they may be secret.
func CheckHead(method string, header http.Header) error {
	if !isToken(method) {
		return fmt.Errorf("%w: invalid method %q", ErrHead, method)
	}
	for name, values := range header {
		if !isToken(name) {
			return fmt.Errorf("%w: invalid header name %q", ErrHead, name)
		}
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) }) {
				return fmt.Errorf("%w: the header %s holds a control character", ErrHead, name)
			}
		}
	}
	return nil
}

// isToken follows RFC 9110, section 5.6.2.
func isToken(text string) bool { return consistsOf(text, "!#$%&'*+-.^_`|~") }

// Line returns the value of a header among the lines of a request; empty where there is none.
func Line(lines []string, name string) string {
	for _, line := range lines {
		if key, value, found := strings.Cut(line, ":"); found && strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
