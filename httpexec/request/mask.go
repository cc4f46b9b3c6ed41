package request

import (
	"net/netip"
	"slices"
	"strings"
)

// MaskURL masks the password in a URL, which may be malformed. A password that is a reference stays.
func MaskURL(url string) string {
	first, last := passwordIn(url)
	if first == last || literals(url[first:last]) == "" {
		return url
	}
	return url[:first] + Masked + url[last:]
}

// passwordIn returns the offsets of the password in a URL. A password with a slash makes the URL invalid, unless the
// text before the slash looks like a port.
func passwordIn(url string) (first, last int) {
	plain := blankReferences(url)
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

// authorityIn returns the offset of user and host. A URL without a scheme begins with them.
func authorityIn(url string) int {
	start := 0
	if i := strings.Index(url, "://"); i >= 0 && isName(url[:i]) {
		start = i + len("://")
	}
	return start + len(url[start:]) - len(strings.TrimLeft(url[start:], "/"))
}

// isName reports whether a text can be the name of a scheme or of a host.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < 0x80 && !isWordOr(r, "+-._~") })
}

// isHostPort reports whether a text can be a host, or a host and a port.
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

// MaskUser masks the password of name:password, unless it consists of references. If the password is empty, the name is
// masked: many services identify a client by a key, given as -u KEY:.
func MaskUser(user string) string {
	colon := strings.IndexByte(blankReferences(user), ':')
	switch {
	case colon < 0:
		return user
	case colon == len(user)-1 && literals(user[:colon]) != "":
		return Masked + ":"
	case literals(user[colon+1:]) == "":
		return user
	}
	return user[:colon+1] + Masked
}

// secretHeaders are the headers whose values are secrets, in lower case.
var secretHeaders = []string{"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}

// schemes are the schemes of Authorization, in lower case. They are shown.
var schemes = []string{"basic", "bearer", "digest", "negotiate", "token", "apikey", "dpop", "aws4-hmac-sha256"}

// isSecretHeader reports whether a header's value is a secret.
func isSecretHeader(name string) bool {
	return slices.Contains(secretHeaders, strings.ToLower(strings.TrimSpace(name)))
}

// maskHeader masks the secret in a header line. References stay, and so does the scheme of Authorization. In Referer
// only a password in its URL is a secret.
func maskHeader(line string) string {
	name, value, _ := strings.Cut(line, ":")
	if strings.EqualFold(strings.TrimSpace(name), "referer") {
		url := strings.TrimLeft(value, " \t")
		return line[:len(line)-len(url)] + MaskURL(url)
	}
	if !HasLiteralSecret(line) {
		return line
	}
	scheme, _, more := strings.Cut(strings.TrimSpace(value), " ")
	if more && slices.Contains(schemes, strings.ToLower(scheme)) {
		return name + ": " + scheme + " " + Masked
	}
	return name + ": " + Masked
}

// HasLiteralSecret reports whether a header's line holds a secret that is not a reference.
func HasLiteralSecret(line string) bool {
	name, value, found := strings.Cut(line, ":")
	if !found || !isSecretHeader(name) {
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

// referenceStart begins a reference to a variable of the environment: {env:NAME}. A task stores and shows the reference
// instead of the secret.
const referenceStart = "{env:"

// cutReference splits a text around its first reference. If there is none, or its name is invalid, before is the whole
// text.
func cutReference(text string) (before, name, after string, found bool) {
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

// isVariable reports whether a variable of the environment may have a name: Windows has "ProgramFiles(x86)".
func isVariable(name string) bool { return consistsOf(name, "_.-()") }

// consistsOf reports whether a text is not empty and has no characters but letters, digits and the others.
func consistsOf(text, others string) bool {
	for i := range len(text) {
		if !isWordOr(rune(text[i]), others) { // no byte of a rune beyond ASCII is one of them
			return false
		}
	}
	return text != ""
}

func isWordOr(r rune, others string) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		r < 0x80 && strings.IndexByte(others, byte(r)) >= 0
}

// literals returns a text without its references.
func literals(text string) string {
	return replaceReferences(text, func(int, string) string { return "" })
}

// blankReferences replaces each reference by as many letters, so that none of its characters has a meaning in a URL.
func blankReferences(text string) string {
	return replaceReferences(text, func(_ int, name string) string {
		return strings.Repeat("x", len(referenceStart)+len(name)+1)
	})
}

// replaceReferences calls with for each reference, with its offset in the text.
func replaceReferences(text string, with func(at int, name string) string) string {
	if !HasReference(text) {
		return text
	}
	var b strings.Builder
	for rest := text; ; {
		before, name, after, found := cutReference(rest)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(with(len(text)-len(rest)+len(before), name))
		rest = after
	}
}
