package backoff

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// Formula is a compiled formula, the text after "expr:". It must be safe for concurrent use.
type Formula interface {
	// Seconds is the delay before retry n. The previous delay is 0 for the first retry. Each call of rand(x) in the
	// formula calls random, which is uniform in [0, 1).
	Seconds(n int, previous float64, random func() float64) (float64, error)
	UsesRandom() bool   // the formula calls rand
	UsesPrevious() bool // the formula reads the previous delay
}

// compileFormula is set by UseFormulas, so that this package does not import a library for expressions.
var compileFormula = func(string) (Formula, error) {
	return nil, errors.New("formulas are not part of this program")
}

// UseFormulas sets the compiler of formulas. The init function of the package that has a compiler calls it.
func UseFormulas(compile func(text string) (Formula, error)) { compileFormula = compile }

// triedRetries is how many retries a formula is evaluated for when it is parsed. Their delays are kept.
const triedRetries = 100

// expression is a formula that the user wrote. Its previous delay is the one of the curve.
type expression struct {
	text    string
	formula Formula
	bases   []time.Duration // of retries 1 to triedRetries, with every rand(x) at its middle
}

// randomExpression is an expression with rand. Its previous delay is the one that was slept.
type randomExpression struct {
	*expression
	cached *[triedRetries]atomic.Pointer[span] // extremes
}

func parseExpression(body string) (formula, error) {
	text := strings.TrimSpace(body)
	if text == "" {
		return nil, errors.New("the formula is missing")
	}
	compiled, err := compileFormula(text)
	if err != nil {
		return nil, err
	}
	f := &expression{text: text, formula: compiled}
	for _, x := range []float64{0, math.Nextafter(1, 0), 0.5} {
		if err := f.try(x); err != nil {
			return nil, err
		}
	}
	if compiled.UsesRandom() {
		return randomExpression{f, new([triedRetries]atomic.Pointer[span])}, nil
	}
	return f, nil
}

// try evaluates the formula for each of the first retries, with all random numbers at x.
func (f *expression) try(x float64) error {
	f.bases = f.bases[:0]
	previous := 0.0
	for n := 1; n <= triedRetries; n++ {
		seconds, err := f.formula.Seconds(n, previous, always(x))
		if err != nil {
			return fmt.Errorf("for retry %d it cannot be evaluated: %w", n, err)
		}
		switch {
		case math.IsNaN(seconds), math.IsInf(seconds, 0):
			return fmt.Errorf("for retry %d it gives %s seconds", n, formatInvalid(seconds))
		case seconds < 0:
			return fmt.Errorf("for retry %d it gives %s seconds\nhint: write expr:max(0, %s)", n, formatInvalid(seconds), f.text)
		}
		f.bases = append(f.bases, inSeconds(seconds))
		previous = min(seconds, Max.Seconds())
	}
	return nil
}

func formatInvalid(x float64) string {
	switch {
	case math.IsNaN(x):
		return "no number of"
	case math.IsInf(x, 0):
		return "infinitely many"
	}
	return text.FormatNumber(math.Round(x*1000) / 1000)
}

func always(x float64) func() float64 { return func() float64 { return x } }

// inSeconds makes a delay of a number of seconds. Anything that is not a valid number becomes Max, and so the cap.
func inSeconds(count float64) time.Duration {
	if !(count >= 0) {
		return Max
	}
	return seconds(count)
}

// at is the delay before retry n with every random number at its middle. After triedRetries, the previous delay is the
// last one that was tried.
func (f *expression) at(n int) time.Duration {
	if n <= triedRetries {
		return f.bases[n-1]
	}
	return f.evaluate(n, f.bases[triedRetries-1], always(0.5))
}

func (f *expression) evaluate(n int, previous time.Duration, random func() float64) time.Duration {
	count, err := f.formula.Seconds(n, previous.Seconds(), random)
	if err != nil {
		return Max
	}
	return inSeconds(count)
}

func (f *expression) String() string { return "expr:" + f.text }

// draw moves a delay together with its bounds so that these end at the limit: if delays were cut off there, many would
// be equal. A delay of a formula that reads the previous delay is cut off by the caller, like one of decorrelated.
func (f randomExpression) draw(n int, limit time.Duration, c Chance) time.Duration {
	d := f.evaluate(n, c.Prev, c.random)
	if limit == unlimited || f.formula.UsesPrevious() {
		return d
	}
	sp := f.extremes(n)
	if sp.width == 0 || sp.most() <= limit {
		return d
	}
	return sp.under(limit).at(float64(d-sp.least) / float64(sp.width))
}

func (f randomExpression) bounds(n int, limit time.Duration) span {
	sp := f.extremes(n)
	if f.formula.UsesPrevious() {
		return between(min(sp.least, limit), min(sp.most(), limit))
	}
	return sp.under(limit)
}

// extremes computes the bounds of a retry without a limit, and keeps those of the first retries.
func (f randomExpression) extremes(n int) span {
	if n > triedRetries {
		return f.findExtremes(n)
	}
	if sp := f.cached[n-1].Load(); sp != nil {
		return *sp
	}
	sp := f.findExtremes(n)
	f.cached[n-1].Store(&sp)
	return sp
}

// corners is how many combinations of random numbers near 0 and 1 findExtremes tries. A formula that is linear in each
// of its random numbers has its extremes there; if it also reads the previous delay, they are estimates.
const corners = 64

func (f randomExpression) findExtremes(n int) span {
	least, most := Max, time.Duration(0)
	for _, previous := range f.possiblePrevious(n) {
		for corner := range corners {
			bits := corner
			d := f.evaluate(n, previous, func() float64 {
				bit := bits & 1
				bits >>= 1
				return float64(bit) * math.Nextafter(1, 0)
			})
			least, most = min(least, d), max(most, d)
		}
	}
	return between(least, most)
}

// possiblePrevious are the shortest and the longest delay that may come before retry n.
func (f randomExpression) possiblePrevious(n int) []time.Duration {
	if n == 1 || !f.formula.UsesPrevious() {
		return []time.Duration{0}
	}
	least, most := time.Duration(0), time.Duration(0)
	for i := 1; i < min(n, triedRetries); i++ {
		least, most = f.evaluate(i, least, always(0)), f.evaluate(i, most, always(math.Nextafter(1, 0)))
	}
	return []time.Duration{least, most}
}
