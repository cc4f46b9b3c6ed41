package backoff

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// jitter chooses a delay from a span around the delay of the curve.
type jitter interface {
	// draw gives the span, before the cap, and the share of it, in [0, 1], at which the delay lies.
	draw(w wait, c Chance) (span, float64)
	String() string
}

// wait is the input of a jitter: the delay d before retry n of a curve, after the cap.
type wait struct {
	curve curve
	n     int
	d     time.Duration
}

type none struct{}

func (none) draw(w wait, _ Chance) (span, float64) { return span{least: w.d}, 0 }

func (none) String() string { return "none" }

// full is uniform(0, d).
type full struct{}

func (full) draw(w wait, c Chance) (span, float64) { return span{width: w.d}, c.random() }

func (full) String() string { return "full" }

// equal is d/2 + uniform(0, d/2).
type equal struct{}

func (equal) draw(w wait, c Chance) (span, float64) { return between(w.d/2, w.d), c.random() }

func (equal) String() string { return "equal" }

// decorrelated is uniform(initial, min(cap, 3 · previous delay)), initial the first time.
type decorrelated struct{}

func (decorrelated) draw(w wait, c Chance) (span, float64) {
	initial := w.curve.base(1)
	if w.n == 1 {
		return span{least: initial}, 0
	}
	previous := c.Prev
	if previous <= 0 {
		previous = initial
	}
	most := min(times(previous, 3), w.curve.limit) // capped here, so that the span is not moved down below initial
	return between(initial, max(initial, most)), c.random()
}

func (decorrelated) String() string { return "decorrelated" }

// percent is d · uniform(1 − p/100, 1 + p/100).
type percent struct{ p float64 }

func (j percent) draw(w wait, c Chance) (span, float64) {
	return between(times(w.d, (100-j.p)/100), times(w.d, (100+j.p)/100)), c.random()
}

func (j percent) String() string { return text.FormatNumber(j.p) + "%" }

// add is d + uniform(least, most), or d + n·uniform(least, most) where it is scaled. A cap shortens the span from
// above: it is never below d.
type add struct {
	least, most time.Duration
	scaled      bool
}

const addExample = "add:5s"

func (j add) draw(w wait, c Chance) (span, float64) {
	k := 1.0
	if j.scaled {
		k = float64(w.n)
	}
	limit := w.curve.limit
	return between(min(w.d+times(j.least, k), limit), min(w.d+times(j.most, k), limit)), c.random()
}

func (j add) String() string {
	txt := "add:"
	if j.least > 0 {
		txt += text.FormatDuration(j.least) + ".."
	}
	txt += text.FormatDuration(j.most)
	if j.scaled {
		txt += "*n"
	}
	return txt
}

// fits reports whether a jitter fits a formula that uses random numbers; the hint names those that do.
func fits(f randomFormula, j jitter) (fits bool, hint string) {
	if e, ok := f.(randomExpression); ok && e.formula.UsesPrevious() { // the added time would enter the next delay, too
		return j == none{}, "none, and add + rand(5) to the formula"
	}
	switch j.(type) {
	case none, add: // which never shorten d
		fits = true
	}
	return fits, "none or " + addExample
}

// plainJitters are the jitters without a number.
func plainJitters() []jitter {
	return []jitter{none{}, full{}, equal{}, decorrelated{}, phase{}}
}

// Jitters are the names of the jitters; percent and add are written with a number.
func Jitters() (all []string) {
	for _, j := range plainJitters() {
		all = append(all, j.String())
	}
	return append(all, "percent", "add")
}

func parseJitter(text string) (jitter, error) {
	for _, j := range plainJitters() {
		if j.String() == text {
			return j, nil
		}
	}
	var j jitter
	var err error
	hint := "for example 30%"
	if body, ok := strings.CutPrefix(text, "add:"); ok {
		j, err = parseAdd(body)
		hint = "for example " + addExample + ", add:1s..5s or add:30s*n"
	} else if body, ok := strings.CutSuffix(text, "%"); ok {
		j, err = parsePercent(strings.TrimPrefix(body, "±"))
	} else {
		return nil, unknownJitter(text)
	}
	if err != nil {
		return nil, badSpec("jitter", text, err, hint)
	}
	return j, nil
}

func parsePercent(body string) (jitter, error) {
	p, err := parseNumber("percentage", body)
	if err == nil && (p <= 0 || p > 100) {
		err = errors.New("the percentage must be above 0 and at most 100")
	}
	return percent{p}, err
}

func parseAdd(body string) (jitter, error) {
	body, scaled := strings.CutSuffix(body, "*n")
	low, high, both := strings.Cut(body, "..")
	if !both {
		low, high = "0", body
	}
	least, err := parseDelay("delay", low)
	if err != nil {
		return nil, err
	}
	most, err := parseDelay("delay", high)
	if err == nil && most < least {
		err = fmt.Errorf("%s is below %s", text.FormatDuration(most), text.FormatDuration(least))
	}
	return add{least, most, scaled}, err
}

// phase spreads the tasks by their fixed phase u so that the retries fill the time axis evenly: each wave begins where
// the one before ends, with the same density. With r = d(2)/d(1) the first wait is d(1)·(½ + (r^u − 1)/(r − 1)); the
// wait before retry n ≥ 2 is d(n−1)^(1−u) · d(n)^u.
type phase struct{}

func (phase) String() string { return "phase" }

func (phase) draw(w wait, c Chance) (span, float64) {
	u := clamp(c.Phase)
	if w.n == 1 {
		return span{w.d / 2, w.d}, geometric(w.d, w.curve.base(2), u)
	}
	before := w.curve.base(w.n - 1)
	if before == w.d {
		// Where delays do not grow, tasks of nearly the same phase would stay together for ever.
		return between(times(w.d, 0.8), w.d), c.random()
	}
	share := geometric(before, w.d, u)
	if w.d < before { // the span starts at the lower end, the share was counted from the other
		share = 1 - share
	}
	return between(before, w.d), share
}

// geometric is how far a^(1−u) · b^u lies on the way from a to b: (r^u − 1)/(r − 1) for r = b/a. It is u itself, the
// linear way, where r is 1 and where one of them is 0.
func geometric(a, b time.Duration, u float64) float64 {
	r := float64(b) / float64(a)
	if !(r > 0) || r == 1 || math.IsInf(r, 1) {
		return u
	}
	return math.Expm1(u*math.Log(r)) / (r - 1) // r^u − 1 itself would lose its digits where r is near 1
}
