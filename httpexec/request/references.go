package request

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
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

// ExpandAt does so with what escape makes of the value of a reference at an offset of the text.
func (r *References) ExpandAt(text string, escape func(at int, value string) string) (string, error) {
	var b strings.Builder
	for rest := text; ; {
		before, name, after, found := CutReference(rest)
		b.WriteString(before)
		if !found {
			if HasReference(before) {
				return "", fmt.Errorf("%w: it is none\nhint: write it as {env:NAME}", ErrReference)
			}
			return b.String(), nil
		}
		value, err := r.value(name)
		if err != nil {
			return "", err
		}
		written := escape(len(text)-len(rest)+len(before), value)
		r.hide(name, value, written)
		b.WriteString(written)
		rest = after
	}
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
		return "", false // whatever came beside that
	}
	return value, true
}

// shortest is how long a value has to be to be taken for a secret: a message without its digits is of no use.
const shortest = 4

func (r *References) hide(name string, values ...string) {
	r.HideAs("{env:"+name+"}", values...)
}

// HideAs replaces values by a text in everything that is shown, in whatever form a server repeats them. Where one value
// is hidden twice, the first text is shown.
func (r *References) HideAs(shown string, values ...string) {
	for _, value := range values {
		if len(value) < shortest {
			continue
		}
		for _, spelled := range slices.Compact(encodings(value)) {
			r.hidden = append(r.hidden, secret{spelled, shown})
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

// CleanError returns an error whose text is without the values.
func (r *References) CleanError(err error) error {
	if err == nil || r.Clean(err.Error()) == err.Error() {
		return err
	}
	return &cleanedError{err, r.Clean(err.Error())}
}

type cleanedError struct {
	error
	text string
}

func (e *cleanedError) Error() string { return e.text }

func (e *cleanedError) Unwrap() error { return e.error }

// Masked is what is shown for a secret that was typed.
const Masked = "***"

// minSecret is the shortest length of a name or of a cookie's value that is hidden: shorter ones are often ordinary
// words.
const minSecret = 8

// SecretsIn are those of a header's value: a cookie has several, and others perhaps a scheme before them.
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
