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

// Formula is what follows expr:, compiled. It must be safe for concurrent use.
type Formula interface {
	// Seconds is the delay before retry n, of which previous is the one before (0 for the first), in seconds. Each call of rand(x) in the
	// formula calls random, uniform in [0, 1).
	Seconds(n int, previous float64, random func() float64) (float64, error)
	Rolls() bool     // it calls rand
	Remembers() bool // it looks at the previous delay
}

// compileFormula is handed in, so that this package needs no library for expressions.
var compileFormula = func(string) (Formula, error) {
	return nil, errors.New("formulas are not part of this program")
}

// UseFormulas hands in the compiler of expr: formulas. It is for the init function of the package that has one.
func UseFormulas(compile func(text string) (Formula, error)) { compileFormula = compile }

// tried is for how many retries a formula is tried when it is parsed. Its delays without chance are kept up to there.
const tried = 100

// expression is a formula that a person wrote. Without rand it is a fixed curve, whose previous delay is the curve's own. With rand it
// has randomness of its own, and the previous delay is the one that was slept.
type expression struct {
	text    string
	formula Formula
	bases   []time.Duration // before retries 1 to tried, every rand(x) at its middle
	reaches [tried]atomic.Pointer[span]
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
	return f, nil
}

// try evaluates the formula for each of the first retries with all its random numbers at x.
func (f *expression) try(x float64) error {
	f.bases = f.bases[:0]
	previous := 0.0
	for n := 1; n <= tried; n++ {
		seconds, err := f.formula.Seconds(n, previous, always(x))
		if err != nil {
			return fmt.Errorf("for retry %d it cannot be evaluated: %w", n, err)
		}
		switch {
		case math.IsNaN(seconds), math.IsInf(seconds, 0):
			return fmt.Errorf("for retry %d it gives %s seconds", n, formatWild(seconds))
		case seconds < 0:
			return fmt.Errorf("for retry %d it gives %s seconds\nhint: write expr:max(0, %s)", n, formatWild(seconds), f.text)
		}
		f.bases = append(f.bases, inSeconds(seconds))
		previous = min(seconds, Max.Seconds())
	}
	return nil
}

func formatWild(x float64) string {
	switch {
	case math.IsNaN(x):
		return "no number of"
	case math.IsInf(x, 0):
		return "infinitely many"
	}
	return text.FormatNumber(math.Round(x*1000) / 1000)
}

func always(x float64) func() float64 { return func() float64 { return x } }

// inSeconds is a count of seconds as a delay; what is no such count is Max, and so the cap.
func inSeconds(count float64) time.Duration {
	if !(count >= 0) {
		return Max
	}
	return seconds(count)
}

// at is the delay before retry n with every random number at its middle. Beyond what was tried, a previous delay is that of the last
// one tried.
func (f *expression) at(n int) time.Duration {
	if n <= tried {
		return f.bases[n-1]
	}
	return f.evaluate(n, f.bases[tried-1], always(0.5))
}

func (f *expression) evaluate(n int, previous time.Duration, random func() float64) time.Duration {
	count, err := f.formula.Seconds(n, previous.Seconds(), random)
	if err != nil {
		return Max
	}
	return inSeconds(count)
}

func (f *expression) String() string { return "expr:" + f.text }

func (f *expression) rolls() bool { return f.formula.Rolls() }

// roll is the delay for the random numbers of a chance.
func (f *expression) roll(n int, c Chance) time.Duration { return f.evaluate(n, c.Prev, c.random) }

// within is where the delay falls under a cap.
func (f *expression) within(limit time.Duration, n int) span {
	sp := f.known(n)
	if f.formula.Remembers() {
		least, most := min(sp.least, limit), min(sp.most(), limit)
		return between(least, most)
	}
	return sp.under(limit)
}

// under moves a delay with the whole interval that chance has, so that it ends at the cap: cut off there, delays would clump. A formula that
// looks at its previous delay has no such interval, and is cut off, as decorrelated jitter is.
func (f *expression) under(limit time.Duration, n int, d time.Duration) time.Duration {
	if f.formula.Remembers() {
		return d
	}
	sp := f.known(n)
	if sp.width == 0 || sp.most() <= limit {
		return d
	}
	return sp.under(limit).at(float64(d-sp.least) / float64(sp.width))
}

// known is reach, which is worked out once.
func (f *expression) known(n int) span {
	if n > tried {
		return f.reach(n)
	}
	sp := f.reaches[n-1].Load()
	if sp == nil {
		worked := f.reach(n)
		sp = &worked
		f.reaches[n-1].Store(sp)
	}
	return *sp
}

// corners are the random numbers that reach tries: the delay of a formula that is linear in each of its random numbers is at its least
// and its most where they are 0 or 1.
const corners = 64

// reach is where the delay falls, found by trying: exact for a formula that is linear in each rand(x), and looks at no previous delay.
func (f *expression) reach(n int) span {
	least, most := Max, time.Duration(0)
	for corner := range corners {
		bit := 0
		random := func() float64 {
			bit++
			if corner>>(bit-1)&1 == 1 {
				return math.Nextafter(1, 0)
			}
			return 0
		}
		for _, previous := range f.previous(n) {
			bit = 0
			d := f.evaluate(n, previous, random)
			least, most = min(least, d), max(most, d)
		}
	}
	return between(least, most)
}

// previous are delays that may have come before retry n: the shortest and the longest.
func (f *expression) previous(n int) []time.Duration {
	if n == 1 || !f.formula.Remembers() {
		return []time.Duration{0}
	}
	least, most := time.Duration(0), time.Duration(0)
	for i := 1; i < min(n, tried); i++ {
		least, most = f.evaluate(i, least, always(0)), f.evaluate(i, most, always(math.Nextafter(1, 0)))
	}
	return []time.Duration{least, most}
}
