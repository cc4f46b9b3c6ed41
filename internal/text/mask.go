package text

import (
	"regexp"
	"strings"
	"sync"
)

// Masked is shown in place of a secret.
const Masked = "***"

// secretName is how a flag, a variable or a parameter ends whose value is a secret.
const secretName = `(?:[\w.-]*(?:password|passwd|passphrase|token|secret|api[-_]?key|access[-_]?key|secret[-_]?key|` +
	`credentials?)|(?:[\w.-]*[-_.])?pass)`

// maskRules are what hides secrets in an argument, in a shell's command line, or in a line of text.
type maskRules struct{ flag, assigned, separate, header, url *regexp.Regexp }

// rules are compiled when the first command is shown: most runs show none.
var rules = sync.OnceValue(func() maskRules {
	const value = `("[^"]*"|'[^']*'|[^\s'"&;|-][^\s'"&;|]*)`
	return maskRules{
		flag:     regexp.MustCompile(`(?is)^(--?` + secretName + `)(=.+)?$`),
		assigned: regexp.MustCompile(`(?i)\b(` + secretName + `=)("[^"]*"|'[^']*'|[^\s'"&;|]+)`),
		separate: regexp.MustCompile(`(?i)((?:^|[\s'"(])--?` + secretName + `\s+)` + value),
		header: regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|x-api-key|(?:set-)?cookie)(:\s*)` +
			`((?:basic|bearer|digest|token|negotiate)\s+)?[^'"\n]+`),
		url: regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'"]*:)[^\s/'"]+@`),
	}
})

// MaskCommand returns an argument vector as it may be shown: without the secrets that flags, variables, headers and
// URLs hold, nor what a regular expression matches.
func MaskCommand(argv []string, pattern string) []string {
	if len(argv) == 0 {
		return argv
	}
	shown := make([]string, len(argv))
	secret := false // the argument before says that this one is
	for i, arg := range argv {
		flag := rules().flag.FindStringSubmatch(arg)
		switch {
		case secret && arg != "" && !strings.HasPrefix(arg, "-"):
			shown[i] = Masked
		case flag != nil && flag[2] != "":
			shown[i] = flag[1] + "=" + Masked
		default:
			shown[i] = Mask(arg, pattern)
		}
		secret = flag != nil && flag[2] == "" && !isNegated(arg)
	}
	return shown
}

// isNegated reports whether a flag says that there is no secret, as --no-password does.
func isNegated(flag string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimLeft(flag, "- \t\n'\"(")), "no-")
}

// Mask does the same for a text, such as a shell's command line.
func Mask(text, pattern string) string {
	r := rules()
	text = r.url.ReplaceAllString(text, "${1}"+Masked+"@")
	text = r.header.ReplaceAllString(text, "${1}${2}${3}"+Masked)
	text = r.assigned.ReplaceAllString(text, "${1}"+Masked)
	text = r.separate.ReplaceAllStringFunc(text, func(found string) string {
		if isNegated(found) {
			return found
		}
		return r.separate.ReplaceAllString(found, "${1}"+Masked)
	})
	return MaskPattern(text, pattern)
}

// MaskPattern hides what a regular expression matches. One that is empty or invalid matches nothing.
func MaskPattern(text, pattern string) string {
	if pattern == "" {
		return text
	}
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return text
	}
	return wanted.ReplaceAllStringFunc(text, func(found string) string {
		if found == "" {
			return ""
		}
		return Masked
	})
}
