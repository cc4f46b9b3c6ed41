package request

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/10f93571/retry/internal/text"
)

// ErrReference says that a {env:NAME} cannot be resolved.
var ErrReference = errors.New("resolve a reference")

// References resolves each {env:NAME} of a request, and remembers the values that must not be shown.
type References struct {
	Lookup func(name string) (value string, ok bool)
	hidden []secret
}

// secret is a value, and what is shown for it.
type secret struct{ value, shown string }

// Expand puts the values of variables into a text.
func (r *References) Expand(text string) (string, error) {
	return r.ExpandAt(text, func(_ int, value string) string { return value })
}

// ExpandAt is Expand with an escape function, which receives each value and the offset of its reference in the text.
func (r *References) ExpandAt(text string, escape func(at int, value string) string) (string, error) {
	if HasReference(literals(text)) {
		return "", fmt.Errorf("%w: it is none\nhint: write it as {env:NAME}", ErrReference)
	}
	var failed error
	expanded := replaceReferences(text, func(at int, name string) string {
		value, err := r.value(name)
		failed = cmp.Or(failed, err)
		written := escape(at, value)
		r.HideAs("{env:"+name+"}", value, written)
		return written
	})
	if failed != nil {
		return "", failed
	}
	return expanded, nil
}

func (r *References) value(name string) (string, error) {
	if value, ok := r.Find(name); ok {
		return value, nil
	}
	return "", fmt.Errorf("%w: the variable %s is not set"+
		"\nhint: set it, for a resume too: the journal does not have its value", ErrReference, name)
}

// Find returns the value of a variable.
func (r *References) Find(name string) (value string, ok bool) {
	if r.Lookup == nil {
		return "", false
	}
	if value, ok = r.Lookup(name); !ok {
		return "", false // also where a value was returned
	}
	return value, true
}

// shortest is the length from which a value is hidden. Hiding shorter ones would make messages unreadable.
const shortest = 4

// HideAs has Clean replace values by a text, in each form in which a server may repeat them. If a value is hidden
// twice, the first text is shown.
func (r *References) HideAs(shown string, values ...string) {
	for _, value := range values {
		if len(value) < shortest {
			continue
		}
		for _, encoded := range slices.Compact(encodings(value)) {
			r.hidden = append(r.hidden, secret{encoded, shown})
		}
	}
	slices.SortStableFunc(r.hidden, func(a, b secret) int { return len(b.value) - len(a.value) })
}

// Longest is the length of the longest value; 0 for none.
func (r *References) Longest() int64 {
	if len(r.hidden) == 0 {
		return 0
	}
	return int64(len(r.hidden[0].value))
}

// Clean returns a message without the values.
func (r *References) Clean(message string) string {
	for _, s := range r.hidden {
		message = strings.ReplaceAll(message, s.value, s.shown)
	}
	return message
}

// Masked is shown in place of a secret.
const Masked = text.Masked

// minSecret is the shortest length of a name or of a cookie's value that is hidden: shorter ones are often ordinary
// words.
const minSecret = 8

// SecretsIn returns the secrets in a header's value: each cookie is one, and so are credentials after a scheme.
func SecretsIn(name, sent, typed string) []string {
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
		if _, text, _ := strings.Cut(cookie, "="); len(text) >= minSecret {
			secrets = append(secrets, text)
		}
	}
	return secrets
}

// HideUser hides name:password as it is sent, and the password. A name without one is often a key.
func (r *References) HideUser(user string) {
	name, password, _ := strings.Cut(user, ":")
	if user == "" {
		return
	}
	r.HideAs(Masked, base64.StdEncoding.EncodeToString([]byte(user)))
	if password != "" {
		r.HideAs(Masked, password)
	} else if len(name) >= minSecret {
		r.HideAs(Masked, name)
	}
}

// UserIn finds the user and the password in a URL.
func UserIn(text string) (user string, found bool) {
	start, end := authorityOf(text)
	at := strings.LastIndexByte(text[start:end], '@')
	if at < 0 {
		return "", false
	}
	return text[start : start+at], true
}

// encodings are the forms in which a server may repeat a value: unchanged, in a string of JSON, in a URL.
func encodings(value string) []string {
	all := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	return all
}
