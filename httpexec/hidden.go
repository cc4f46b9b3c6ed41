package httpexec

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// masked is what is shown for a secret that was typed.
const masked = "***"

// leastWord is how long a name or the value of a cookie has to be to be taken for a secret: many are words that pages are full of.
const leastWord = 8

// hideTyped has what was typed as a secret, and what is made of one for a header, left out where a server repeats it.
func (p *plan) hideTyped(r *request.Request) {
	p.refs.hideUser(p.user)
	for _, proxy := range []string{p.Options.Proxies.HTTP, p.Options.Proxies.HTTPS, p.Options.Proxies.All} {
		if user, found := userIn(proxy); found {
			p.refs.hideUser(userinfo(user))
		}
	}
	for _, line := range r.Header {
		name, text, _ := strings.Cut(line, ":")
		if !request.HasLiteralSecret(line) {
			continue
		}
		for _, secret := range secretsIn(name, value(p.first.header, strings.TrimSpace(name)), text) {
			p.refs.hideAs(masked, secret)
		}
	}
}

// secretsIn are those of a header's value: a cookie has several, and others perhaps a scheme before them.
func secretsIn(name, sent, typed string) []string {
	if sent == "" {
		sent = strings.TrimSpace(typed)
	}
	if !strings.HasSuffix(strings.ToLower(strings.TrimSpace(name)), "cookie") {
		if _, credentials, found := strings.Cut(sent, " "); found {
			return []string{sent, strings.TrimSpace(credentials)}
		}
		return []string{sent}
	}
	secrets := []string{sent}
	for cookie := range strings.SplitSeq(sent, ";") {
		if _, text, _ := strings.Cut(cookie, "="); len(text) >= leastWord {
			secrets = append(secrets, text)
		}
	}
	return secrets
}

// hideUser hides name:password as it is sent, and the password. A name without one is often a key.
func (r *references) hideUser(user string) {
	name, password, _ := strings.Cut(user, ":")
	if user == "" {
		return
	}
	r.hideAs(masked, base64.StdEncoding.EncodeToString([]byte(user)))
	if password != "" {
		r.hideAs(masked, password)
	} else if len(name) >= leastWord {
		r.hideAs(masked, name)
	}
}

// userIn finds the user and the password in a URL.
func userIn(text string) (user string, found bool) {
	start, end := authorityOf(text)
	at := strings.LastIndexByte(text[start:end], '@')
	if at < 0 {
		return "", false
	}
	return text[start : start+at], true
}

// spellings are the ways in which a server may repeat a value: as it is, in a string of JSON, in a URL.
func spellings(value string) []string {
	all := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	return all
}
