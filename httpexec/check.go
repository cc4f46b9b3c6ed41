package httpexec

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// errHead says that a method or a header cannot be sent.
var errHead = errors.New("the request cannot be sent")

// checkHead refuses what net/http refuses only when the connection stands, and without a type. Values are not repeated: they may be secret.
func checkHead(method string, header http.Header) error {
	if !isToken(method) {
		return fmt.Errorf("%w: %q is no method", errHead, method)
	}
	for name, values := range header {
		if !isToken(name) {
			return fmt.Errorf("%w: %q is no name of a header", errHead, name)
		}
		for _, value := range values {
			if strings.ContainsFunc(value, isControl) {
				return fmt.Errorf("%w: the header %s holds a control character", errHead, name)
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
