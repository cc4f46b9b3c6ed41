// Package backoff computes how long to wait before a retry: a curve d(n) with jitter, limited by a cap.
//
// It parses the curves and jitters that users write ("exp:1s..30s", "phase"). It is pure: no clock, no I/O, no global
// randomness. Random numbers are passed in as a Chance.
package backoff

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// Spec is a curve with its jitter. It is immutable; the zero Spec waits 0.
type Spec struct {
	shape       curve
	jitter      jitter
	jitterGiven bool // the user gave the jitter; it is not the default of the curve
}

// Chance holds the random numbers and the history that one delay depends on.
type Chance struct {
	Phase float64        // the task's fixed u in [0, 1)
	Prev  time.Duration  // the delay before the previous retry, for decorrelated; 0 if none
	Rand  func() float64 // uniform in [0, 1); nil stands for the middle
}

// Parse reads a curve and a jitter. An empty jitter means the default: that of the preset, else phase for a curve that
// grows. It is none for a constant and a list, which name the times that are meant, and where the curve uses random
// numbers.
func Parse(curve, jitter string) (Spec, error) {
	given := jitter != ""
	if p, ok := preset(curve); ok {
		curve = p.Curve
		if !given {
			jitter = p.Jitter
		}
	}
	shape, err := parseCurve(curve)
	if err != nil {
		return Spec{}, err
	}
	random, isRandom := shape.formula.(randomFormula)
	if jitter == "" {
		switch shape.formula.(type) {
		case constant, list, randomFormula:
			jitter = none{}.String()
		default:
			jitter = phase{}.String()
		}
	}
	j, err := parseJitter(jitter)
	if err != nil {
		return Spec{}, err
	}
	if isRandom { // a jitter may add to its randomness, not replace it
		if fits, hint := fits(random, j); !fits {
			return Spec{}, fmt.Errorf("jitter %q does not fit backoff %q: %w\nhint: with this backoff use the jitter %s",
				j, shape, errOwnRandomness, hint)
		}
	}
	return Spec{shape: shape, jitter: j, jitterGiven: given}, nil
}

var errOwnRandomness = errors.New("the curve carries its own randomness")

// With returns s with another curve, another jitter or both; "" keeps the old one. A jitter that the user gave is kept,
// and it is an error where it does not fit the new curve. A default jitter is replaced by the default of the new curve,
// and a preset always brings its own.
func (s Spec) With(curve, jitter string) (Spec, error) {
	_, named := preset(curve)
	switch {
	case curve == "" && jitter == "":
		return s, nil
	case curve == "":
		curve = s.Curve()
	case jitter == "" && s.jitterGiven && !named:
		jitter = s.Jitter()
	}
	return Parse(curve, jitter)
}

// Curve is the canonical text of the curve: Parse(s.Curve(), s.Jitter()) has the same delays as s.
func (s Spec) Curve() string { return s.orZero().shape.String() }

// Jitter is the canonical text of the jitter.
func (s Spec) Jitter() string { return s.orZero().jitter.String() }

// Base is d(n), the delay before retry n after the cap and before the jitter; n < 1 counts as 1.
func (s Spec) Base(n int) time.Duration { return s.orZero().shape.base(max(n, 1)) }

// Bounds are the shortest and the longest delay that Delay can return before retry n, over every phase and every
// random number, where each Prev was a delay of this Spec.
func (s Spec) Bounds(n int) (least, most time.Duration) {
	n, s = max(n, 1), s.orZero()
	base := s.shape.bounds(n)
	longest := exponential{s.shape.base(1), 3}.at(max(n-1, 1)) // that decorrelated can have had: initial · 3^(n−2)
	low, _ := s.jitter.draw(wait{s.shape, n, base.least}, Chance{Prev: longest})
	high, _ := s.jitter.draw(wait{s.shape, n, base.most()}, Chance{Prev: longest})
	return low.under(s.shape.limit).least, high.under(s.shape.limit).most()
}

// Delay is the wait before retry n with its jitter, in [0, Max] and never over the curve's cap; n < 1 counts as 1.
// A curve that uses random numbers calls c.Rand before the jitter does.
func (s Spec) Delay(n int, c Chance) time.Duration {
	n, s = max(n, 1), s.orZero()
	place, share := s.jitter.draw(wait{s.shape, n, s.shape.draw(n, c)}, c)
	return place.under(s.shape.limit).at(share)
}

// orZero gives the zero Spec its parts.
func (s Spec) orZero() Spec {
	if s.jitter == nil {
		return Spec{shape: curve{constant{}, unlimited}, jitter: none{}}
	}
	return s
}

// Preset is a named curve with its jitter, as its original defines them.
type Preset struct {
	Name, Curve, Jitter string
	Attempts            int    // all attempts, the first included
	Source              string // where the definition comes from
}

// Presets are the presets that Parse accepts in place of a curve.
func Presets() []Preset {
	return []Preset{
		{"sidekiq", "sidekiq", "none", 26,
			"Sidekiq 7, lib/sidekiq/job_retry.rb: count**4 + 15 + rand(10)*(count+1), 25 retries"},
		{"zizq", "poly:15s+n^4", "add:30s*n", 26,
			"Zizq, zizq.io/docs/cli/backoff.html: 15s + a^4 + a*rand(0 to 30s), 25 retries"},
		{"aws", "exp:1s..20s", "full", 3,
			"AWS SDKs, standard retry mode: full jitter up to 1 s doubling to 20 s, 3 attempts"},
		{"grpc", "exp:1s*1.6..2m", "20%", 5, "gRPC, doc/connection-backoff.md: 1 s x 1.6 to 120 s, jitter 0.2"},
		{"lock-busy", "constant:500ms", "30%", 100, "retry: fast and bounded, for a lock that is held for a short time"},
	}
}

func preset(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

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

func unknownCurve(txt, name string) error {
	const example = "exp:1s*2..30s"
	var names []string
	examples := map[string]string{}
	for _, f := range families() {
		names, examples[f.name] = append(names, f.name), f.example
	}
	for _, p := range Presets() {
		names, examples[p.Name] = append(names, p.Name), p.Name
	}
	hint := "for example " + example + "; there are " + strings.Join(names, ", ")
	nearest, similar := examples[text.Nearest(name, names)]
	_, err := parseList(txt)
	isRange := strings.Contains(txt, "..") && txt[0] >= '0' && txt[0] <= '9'
	switch {
	case txt == "":
		return badSpec("backoff", txt, errors.New("it is empty"), "for example "+example)
	case isRange:
		hint = "for a delay that grows write exp:" + txt
	case strings.HasPrefix(name, "exponential"):
		hint = "write exp, or exp:FIRST..MAX" // exp:1s..1m is what exp stands for
	case err == nil:
		hint = "for one delay after the other write list:" + txt
	case similar:
		hint = "did you mean " + nearest + "?"
	}
	if name == txt {
		return badSpec("backoff", txt, errors.New("there is no preset of that name"), hint)
	}
	return badSpec("backoff", txt, fmt.Errorf("there is no curve %q", name), hint)
}

func unknownJitter(txt string) error {
	names := []string{"add"}
	for _, j := range plainJitters() {
		names = append(names, j.String())
	}
	hint := "write none, full, equal, decorrelated, phase, 30% or " + addExample
	_, err := text.ParseNumber(txt)
	switch nearest := text.Nearest(txt, names); {
	case err == nil:
		hint = "did you mean " + txt + "%?"
	case nearest == "add":
		hint = "did you mean " + addExample + "?"
	case nearest != "":
		hint = "did you mean " + nearest + "?"
	}
	return badSpec("jitter", txt, errors.New("there is no such jitter"), hint)
}
