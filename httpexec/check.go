package httpexec

import (
	"errors"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// Check returns what is wrong with a request and can be known before anything is sent; Stamp does so for the files of its body.
func Check(r *request.Request, lookup func(name string) (value string, ok bool)) error {
	p := &plan{refs: &references{lookup: lookup}}
	err := p.read(r, "", "")
	if err == nil {
		err = p.checkNetwork()
	}
	for _, part := range r.Body {
		if err == nil && r.Get && part.File == "" && !part.Encode {
			err = checkQuery(part.Text)
		}
	}
	return p.refs.cleanError(err)
}

// CheckKey returns what is wrong with an idempotency key.
func CheckKey(key string) error {
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return errors.New("the idempotency key holds a character that a header cannot\nhint: use letters and digits")
		}
	}
	return nil
}

func (p *plan) checkNetwork() error {
	if _, err := p.Options.TLS.config(); err != nil {
		return err
	}
	if p.Options.UnixSocket != "" {
		return nil
	}
	_, err := p.Options.Proxies.For(p.first.url)
	return err
}

// LiteralSecrets names what of a request would be stored as it is, and is a secret.
func LiteralSecrets(r *request.Request) (names []string) {
	for _, line := range r.Header {
		if request.HasLiteralSecret(line) {
			name, _, _ := strings.Cut(line, ":")
			names = append(names, "the header "+strings.TrimSpace(name))
		}
	}
	for _, place := range []struct{ name, text, masked string }{
		{"the password in the URL", r.URL, request.MaskURL(r.URL)},
		{userSecret(r.User), r.User, request.MaskUser(r.User)},
		{"the proxy's password", r.Network.Proxy, request.MaskURL(r.Network.Proxy)},
	} {
		if place.masked != place.text {
			names = append(names, place.name)
		}
	}
	return names
}

// userSecret says what of -u is one.
func userSecret(user string) string {
	if strings.HasSuffix(user, ":") {
		return "the user"
	}
	return "the user's password"
}
