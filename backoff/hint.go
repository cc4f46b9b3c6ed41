package backoff

import (
	"errors"
	"fmt"
	"strings"
)

// badSpec is the one shape of this package's parse errors: what was read, what is wrong, how it is written.
func badSpec(kind, text string, err error, hint string) error {
	if strings.Contains(err.Error(), "\nhint: ") { // of a formula's compiler, which knows better
		return fmt.Errorf("parse %s %q: %w", kind, text, err)
	}
	return fmt.Errorf("parse %s %q: %w\nhint: %s", kind, text, err, hint)
}

// word is a name that a person may have meant, with a spec that is right.
type word struct{ name, example string }

const curveExample = "exp:1s*2..30s"

func unknownCurve(text, name string) error {
	hint, found := suggest(name, curveWords())
	_, err := readDuration(text)
	switch {
	case text == "":
		return badSpec("backoff", text, errors.New("it is empty"), "for example "+curveExample)
	case err == nil:
		hint = "for a fixed delay write constant:" + text
	case !found:
		hint = "for example " + curveExample + "; there are " + names(curveWords())
	}
	if name == text {
		return badSpec("backoff", text, errors.New("there is no preset of that name"), hint)
	}
	return badSpec("backoff", text, fmt.Errorf("there is no curve %q", name), hint)
}

func curveWords() []word {
	var words []word
	for _, f := range families() {
		words = append(words, word{f.name, f.example})
	}
	for _, p := range Presets() {
		words = append(words, word{p.Name, p.Name})
	}
	return words
}

func names(words []word) string {
	var all []string
	for _, w := range words {
		all = append(all, w.name)
	}
	return strings.Join(all, ", ")
}

func unknownJitter(text string) error {
	words := []word{{"add", addExample}}
	for _, j := range plainJitters() {
		words = append(words, word{j.String(), j.String()})
	}
	hint, found := suggest(text, words)
	if _, err := readNumber(text); err == nil {
		hint, found = "did you mean "+text+"%?", true
	}
	if !found {
		hint = "write none, full, equal, decorrelated, phase, 30% or " + addExample
	}
	return badSpec("jitter", text, errors.New("there is no such jitter"), hint)
}

// suggest finds the word that a person most likely meant, if one is near enough.
func suggest(name string, words []word) (hint string, found bool) {
	name = strings.ToLower(name)
	if len(name) > 32 { // nobody mistypes that much, and the distance costs its length
		return "", false
	}
	nearest := max(len(name)/3, 1) + 1
	for _, w := range words {
		if away := apart(name, w.name); away < nearest {
			nearest, hint = away, "did you mean "+w.example+"?"
		}
	}
	return hint, hint != ""
}

// apart is the distance of two words; one that begins the other (exponential, const) is near.
func apart(a, b string) int {
	if a == b {
		return 0
	}
	if min(len(a), len(b)) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
		return 1
	}
	return distance(a, b)
}

// distance is Levenshtein's: how many letters to add, drop or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}

// Apart counts the letters to add, drop or change between two words; one that begins the other counts as one away.
func Apart(a, b string) int { return apart(a, b) }
