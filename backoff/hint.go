package backoff

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/10f93571/retry/internal/text"
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

func unknownCurve(txt, name string) error {
	hint, found := suggest(name, curveWords())
	_, err := text.ReadDuration(txt)
	switch {
	case txt == "":
		return badSpec("backoff", txt, errors.New("it is empty"), "for example "+curveExample)
	case err == nil:
		hint = "for a fixed delay write constant:" + txt
	case !found:
		hint = "for example " + curveExample + "; there are " + names(curveWords())
	}
	if name == txt {
		return badSpec("backoff", txt, errors.New("there is no preset of that name"), hint)
	}
	return badSpec("backoff", txt, fmt.Errorf("there is no curve %q", name), hint)
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

func unknownJitter(txt string) error {
	words := []word{{"add", addExample}}
	for _, j := range plainJitters() {
		words = append(words, word{j.String(), j.String()})
	}
	hint, found := suggest(txt, words)
	if _, err := text.ParseNumber(txt); err == nil {
		hint, found = "did you mean "+txt+"%?", true
	}
	if !found {
		hint = "write none, full, equal, decorrelated, phase, 30% or " + addExample
	}
	return badSpec("jitter", txt, errors.New("there is no such jitter"), hint)
}

// suggest names the word that a person most likely meant, if one is near enough.
func suggest(name string, words []word) (hint string, found bool) {
	var known []string
	for _, w := range words {
		known = append(known, w.name)
	}
	nearest := text.Nearest(name, known)
	i := slices.Index(known, nearest)
	if i < 0 {
		return "", false
	}
	return "did you mean " + words[i].example + "?", true
}
