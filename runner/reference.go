package runner

import "strings"

// referenceStart begins a reference to a variable of the environment: {env:NAME}. It is what is stored and shown instead of a secret.
const referenceStart = "{env:"

// CutReference splits a text around its first reference. Where there is none, or one whose name is none, before is all of it.
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
func literals(text string) string {
	var left strings.Builder
	for {
		before, _, after, found := CutReference(text)
		left.WriteString(before)
		if !found {
			return left.String()
		}
		text = after
	}
}

// BlankReferences returns a text of the same length whose references have no character that means something in a URL.
func BlankReferences(text string) string {
	var b strings.Builder
	for {
		before, name, after, found := CutReference(text)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(strings.Repeat("x", len(referenceStart)+len(name)+1))
		text = after
	}
}
