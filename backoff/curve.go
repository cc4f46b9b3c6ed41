package backoff

import (
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// formula is d(n) before the cap, for n ≥ 1, in [0, Max].
type formula interface {
	at(n int) time.Duration
	String() string
}

// random is a formula that can have randomness of its own.
type random interface {
	formula
	rolls() bool                        // it does
	reach(n int) span                   // where the delay may fall
	roll(n int, c Chance) time.Duration // it, for the random numbers of a chance
}

// ownRandomness returns the formula where it has randomness of its own.
func ownRandomness(f formula) (r random, ok bool) {
	r, ok = f.(random)
	return r, ok && r.rolls()
}

// curve is a formula under its cap.
type curve struct {
	formula
	limit time.Duration
}

// String is the canonical spec of the curve.
func (cv curve) String() string {
	if cv.limit == unlimited {
		return cv.formula.String()
	}
	return cv.formula.String() + ".." + text.FormatDuration(cv.limit)
}

func (cv curve) base(n int) time.Duration { return min(cv.at(n), cv.limit) }

// reach is where the delay may fall before any jitter: one point, unless the formula has randomness of its own.
func (cv curve) reach(n int) span {
	if e, ok := cv.formula.(*expression); ok && e.rolls() {
		return e.within(cv.limit, n)
	}
	if f, ok := ownRandomness(cv.formula); ok {
		return f.reach(n)
	}
	return span{least: cv.base(n)}
}

// roll is the delay before any jitter.
func (cv curve) roll(n int, c Chance) time.Duration {
	f, ok := ownRandomness(cv.formula)
	if !ok {
		return cv.base(n)
	}
	d := f.roll(n, c)
	if e, ok := f.(*expression); ok && cv.limit != unlimited {
		return e.under(cv.limit, n, d)
	}
	return d
}

// family is one kind of curve: the word before the colon, and how to read what follows it.
type family struct {
	name    string
	example string
	capped  bool // takes a "..cap"
	parse   func(body string) (formula, error)
}

func families() []family {
	return []family{
		{"constant", "constant:5m", false, parseConstant},
		{"fixed", "constant:5m", false, parseConstant},
		{"linear", "linear:5s+2s..1m", true, parseLinear},
		{"exp", "exp:1s*2..30s", true, parseExponential},
		{"fib", "fib:1s..1m", true, parseFibonacci},
		{"poly", "poly:15s+n^4..1h", true, parsePolynomial},
		{"list", "list:1s,2s,5s,1m", false, parseList},
		{"buckets", "buckets:3", false, parseBuckets},
		{"expr", "expr:15 + n^4 + rand(30)*n", true, parseExpression},
	}
}

// Curves are the names of the curves, in the order of their tables.
func Curves() (all []string) {
	for _, f := range families() {
		all = append(all, f.name)
	}
	return all
}

// parseCurve reads a curve that is not the name of a preset.
func parseCurve(text string) (curve, error) {
	name, body, _ := strings.Cut(text, ":")
	if text == (sidekiq{}).String() {
		return curve{formula: sidekiq{}, limit: unlimited}, nil
	}
	for _, f := range families() {
		if f.name == name && name != text {
			cv, err := f.curve(body)
			if err != nil {
				return curve{}, badSpec("backoff", text, err, "for example "+f.example)
			}
			return cv, nil
		}
	}
	return curve{}, unknownCurve(text, name)
}

// curve reads what follows the colon.
func (f family) curve(body string) (curve, error) {
	shape, end, capped := strings.Cut(body, "..")
	if capped && !f.capped {
		return curve{}, fmt.Errorf("%s takes no cap", f.name)
	}
	formula, err := f.parse(shape)
	if err != nil {
		return curve{}, err
	}
	cv := curve{formula, unlimited}
	if !capped {
		return cv, nil
	}
	if cv.limit, err = parsePart("cap", end); err != nil {
		return curve{}, err
	}
	if first := formula.at(1); cv.limit < first {
		return curve{}, fmt.Errorf("the cap %s is below the first delay %s", text.FormatDuration(cv.limit), text.FormatDuration(first))
	}
	return cv, nil
}
