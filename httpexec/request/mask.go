package request

import (
	"net/netip"
	"slices"
	"strings"
)

// mask stands for a secret.
const mask = "***"

// MaskURL masks the password in a URL, which may be malformed. A password that is a reference stays.
func MaskURL(url string) string {
	first, last := passwordIn(url)
	if first == last || literals(url[first:last]) == "" {
		return url
	}
	return url[:first] + mask + url[last:]
}

// passwordIn returns where the password of a URL is. One with a slash in it makes a URL that cannot be read, except
// where what precedes the slash is a port.
func passwordIn(url string) (first, last int) {
	plain := BlankReferences(url)
	start := authorityIn(plain)
	rest := plain[start:]
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	if !isHostPort(authority[at+1:]) {
		at = strings.LastIndexByte(rest, '@')
	}
	colon := strings.IndexByte(rest, ':')
	if at < 0 || colon < 0 || colon > at {
		return 0, 0
	}
	return start + colon + 1, start + at
}

// authorityIn is where the host and what precedes it begin. A URL without a scheme begins with them.
func authorityIn(url string) int {
	start := 0
	if i := strings.Index(url, "://"); i >= 0 && isName(url[:i]) {
		start = i + len("://")
	}
	return start + len(url[start:]) - len(strings.TrimLeft(url[start:], "/"))
}

// isName reports whether a text can be the name of a scheme or of a host.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && r < 0x80 && !strings.ContainsRune("+-._~", r)
	})
}

// isHostPort reports whether there is what can be a host, and what follows its colon can be a port.
func isHostPort(authority string) bool {
	if address, rest, bracketed := strings.Cut(authority, "]"); bracketed && strings.HasPrefix(address, "[") {
		if _, err := netip.ParseAddr(address[1:]); err != nil {
			return false
		}
		authority = "address" + rest
	}
	host, port, has := strings.Cut(authority, ":")
	return isName(host) && (!has || port != "" && strings.Trim(port, "0123456789") == "")
}

// MaskUser masks the password of name:password, unless it consists of references. Where the password is empty, the name
// is masked: services that identify clients by a key ask for -u KEY: as a rule.
func MaskUser(user string) string {
	colon := strings.IndexByte(BlankReferences(user), ':')
	switch {
	case colon < 0:
		return user
	case colon == len(user)-1 && literals(user[:colon]) != "":
		return mask + ":"
	case literals(user[colon+1:]) == "":
		return user
	}
	return user[:colon+1] + mask
}

// secretHeaders are those whose values are secrets, in lower case.
var secretHeaders = []string{"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}

// schemes are the words before the credentials of Authorization that say nothing of them, in lower case.
var schemes = []string{"basic", "bearer", "digest", "negotiate", "token", "apikey", "dpop", "aws4-hmac-sha256"}

// IsSecretHeader reports whether a header's value is a secret.
func IsSecretHeader(name string) bool {
	return slices.Contains(secretHeaders, strings.ToLower(strings.TrimSpace(name)))
}

// MaskHeader masks the secret in a header line. References stay, and so does the scheme of Authorization. In Referer
// only a password in its URL is a secret.
func MaskHeader(line string) string {
	name, value, _ := strings.Cut(line, ":")
	if strings.EqualFold(strings.TrimSpace(name), "referer") {
		url := strings.TrimLeft(value, " \t")
		return line[:len(line)-len(url)] + MaskURL(url)
	}
	if !HasLiteralSecret(line) {
		return line
	}
	if scheme, _, more := strings.Cut(strings.TrimSpace(value), " "); more && slices.Contains(schemes, strings.ToLower(scheme)) {
		return name + ": " + scheme + " " + mask
	}
	return name + ": " + mask
}

// HasLiteralSecret reports whether a header's line holds a secret itself, and not by references alone.
func HasLiteralSecret(line string) bool {
	name, value, found := strings.Cut(line, ":")
	if !found || !IsSecretHeader(name) {
		return false
	}
	left := strings.TrimSpace(literals(value))
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "cookie", "set-cookie":
		return hasLiteralCookie(value)
	case "authorization", "proxy-authorization":
		return left != "" && !slices.Contains(schemes, strings.ToLower(left))
	}
	return left != ""
}

// hasLiteralCookie looks at the value of each name.
func hasLiteralCookie(value string) bool {
	for cookie := range strings.SplitSeq(value, ";") {
		_, secret, named := strings.Cut(cookie, "=")
		if !named {
			secret = cookie
		}
		if strings.TrimSpace(literals(secret)) != "" {
			return true
		}
	}
	return false
}

// referenceStart begins a reference to a variable of the environment: {env:NAME}. It is what is stored and shown
// instead of a secret.
const referenceStart = "{env:"

// CutReference splits a text around its first reference. Where there is none, or one whose name is none, before is all
// of it.
func CutReference(text string) (before, name, after string, found bool) {
	before, rest, found := strings.Cut(text, referenceStart)
	if !found {
		return text, "", "", false
	}
	name, after, closed := strings.Cut(rest, "}")
	if !closed || !isVariable(name) {
		return text, "", "", false
	}
	return before, name, after, true
}

// HasReference reports whether a text has something that looks like a reference, well-formed or not.
func HasReference(text string) bool { return strings.Contains(text, referenceStart) }

// isVariable allows the names that are met: "ProgramFiles(x86)" is one.
func isVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("_.-()", r)
	})
}

// literals is a text without its references.
func literals(text string) string { return replaceReferences(text, func(string) string { return "" }) }

// BlankReferences returns a text of the same length whose references have no character that means something in a URL.
func BlankReferences(text string) string {
	return replaceReferences(text, func(name string) string { return strings.Repeat("x", len(referenceStart)+len(name)+1) })
}

func replaceReferences(text string, with func(name string) string) string {
	var b strings.Builder
	for {
		before, name, after, found := CutReference(text)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(with(name))
		text = after
	}
}
