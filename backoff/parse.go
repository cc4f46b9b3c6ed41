package backoff

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// parseNumber reads one number of a spec.
func parseNumber(part, txt string) (float64, error) { return parsePart(part, txt, text.ParseNumber) }

// parseDelay reads one duration of a spec.
func parseDelay(part, txt string) (time.Duration, error) {
	return parsePart(part, txt, text.ReadDuration)
}

// parsePart reads one part of a spec; the error names the part.
func parsePart[T any](part, txt string, read func(string) (T, error)) (value T, err error) {
	txt = strings.TrimSpace(txt)
	if txt == "" {
		return value, fmt.Errorf("the %s is missing", part)
	}
	if value, err = read(txt); err != nil {
		return *new(T), fmt.Errorf("the %s %q %w", part, txt, err)
	}
	return value, nil
}

// badSpec makes the parse errors of this package: the text, what is wrong with it, and an example or a hint.
func badSpec(kind, text string, err error, hint string) error {
	if strings.Contains(err.Error(), "\nhint: ") { // the compiler of formulas has a better hint
		return fmt.Errorf("parse %s %q: %w", kind, text, err)
	}
	return fmt.Errorf("parse %s %q: %w\nhint: %s", kind, text, err, hint)
}

// knownName is a name that the user may have meant, with a valid spec.
type knownName struct{ name, example string }

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
		hint = "for example " + curveExample + "; there are " + strings.Join(namesOf(curveWords()), ", ")
	}
	if name == txt {
		return badSpec("backoff", txt, errors.New("there is no preset of that name"), hint)
	}
	return badSpec("backoff", txt, fmt.Errorf("there is no curve %q", name), hint)
}

func curveWords() []knownName {
	var words []knownName
	for _, f := range families() {
		words = append(words, knownName{f.name, f.example})
	}
	for _, p := range Presets() {
		words = append(words, knownName{p.Name, p.Name})
	}
	return words
}

func namesOf(words []knownName) (all []string) {
	for _, w := range words {
		all = append(all, w.name)
	}
	return all
}

func unknownJitter(txt string) error {
	words := []knownName{{"add", addExample}}
	for _, j := range plainJitters() {
		words = append(words, knownName{j.String(), j.String()})
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

// suggest finds the name that the user most likely meant, if one is similar enough.
func suggest(name string, words []knownName) (hint string, found bool) {
	known := namesOf(words)
	i := slices.Index(known, text.Nearest(name, known))
	if i < 0 {
		return "", false
	}
	return "did you mean " + words[i].example + "?", true
}
