package backoff

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// formula is d(n) before the cap, for n ≥ 1, in [0, Max].
type formula interface {
	at(n int) time.Duration
	String() string
}

// randomFormula is a formula that uses random numbers itself. The limit is the cap of its curve.
type randomFormula interface {
	formula
	bounds(n int, limit time.Duration) span                  // all delays that draw may return
	draw(n int, limit time.Duration, c Chance) time.Duration // the delay for the random numbers of a Chance
}

// curve is a formula with its cap.
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

// bounds are the delays before any jitter: a single one, unless the formula uses random numbers.
func (cv curve) bounds(n int) span {
	if f, ok := cv.formula.(randomFormula); ok {
		return f.bounds(n, cv.limit)
	}
	return span{least: cv.base(n)}
}

// draw is the delay before any jitter.
func (cv curve) draw(n int, c Chance) time.Duration {
	if f, ok := cv.formula.(randomFormula); ok {
		return f.draw(n, cv.limit, c)
	}
	return cv.base(n)
}

// family is one kind of curve: the word before the colon, and the parser of the text after it.
type family struct {
	name    string
	example string
	usual   string // what the name alone stands for; empty: it needs more
	capped  bool   // takes a "..cap"
	parse   func(body string) (formula, error)
}

func families() []family {
	return []family{
		{"constant", "constant:5m", "1s", false, parseConstant},
		{"fixed", "constant:5m", "1s", false, parseConstant},
		{"delay", "constant:5m", "1s", false, parseConstant},
		{"linear", "linear:5s+2s..1m", "1s..1m", true, parseLinear},
		{"exp", "exp:1s*2..30s", "1s..1m", true, parseExponential},
		{"fib", "fib:1s..1m", "1s..1m", true, parseFibonacci},
		{"poly", "poly:15s+n^4..1h", "", true, parsePolynomial},
		{"list", "list:1s,2s,5s,1m", "", false, parseList},
		{"buckets", "buckets:3", "", false, parseBuckets},
		{"expr", "expr:15 + n^4 + rand(30)*n", "", true, parseExpression},
	}
}

// Form is how a kind of curve is written.
type Form struct {
	Name    string
	Example string // with its parameters
	Alone   bool   // the name may stand alone
}

// Forms are those of the curves, in their order; other names of a curve are left out.
func Forms() (all []Form) {
	for _, f := range families() {
		if strings.HasPrefix(f.example, f.name+":") {
			all = append(all, Form{Name: f.name, Example: f.example, Alone: f.usual != ""})
		}
	}
	return all
}

// Curves are the names of the curves.
func Curves() (all []string) {
	for _, f := range families() {
		all = append(all, f.name)
	}
	return all
}

// parseCurve reads a curve that is not the name of a preset. A name alone stands for its usual form, a time alone for a
// constant.
func parseCurve(txt string) (curve, error) {
	name, body, parted := strings.Cut(txt, ":")
	if txt == (sidekiq{}).String() {
		return curve{formula: sidekiq{}, limit: unlimited}, nil
	}
	if _, err := text.ReadDuration(txt); err == nil {
		name, body, parted = "constant", txt, true
	}
	for _, f := range families() {
		if f.name != name || !parted && f.usual == "" {
			continue
		}
		if !parted {
			body = f.usual
		}
		cv, err := f.curve(body)
		if err != nil {
			return curve{}, badSpec("backoff", txt, err, "for example "+f.example)
		}
		return cv, nil
	}
	return curve{}, unknownCurve(txt, name)
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
	if cv.limit, err = parseDelay("cap", end); err != nil {
		return curve{}, err
	}
	if first := formula.at(1); cv.limit < first {
		return curve{}, fmt.Errorf("the cap %s is below the first delay %s", text.FormatDuration(cv.limit),
			text.FormatDuration(first))
	}
	return cv, nil
}

// Max is where every delay saturates.
const Max = 365 * 24 * time.Hour

const (
	unlimited = time.Duration(math.MaxInt64) // the cap of a curve without one
	beyondMax = 2 * Max                      // where a product saturates; sums of a few of these cannot overflow
)

// span is an interval of delays. It has a width rather than an end, as the width stays when the span moves to a cap.
type span struct{ least, width time.Duration }

func between(a, b time.Duration) span { return span{min(a, b), max(a, b) - min(a, b)} }

func (sp span) most() time.Duration { return sp.least + sp.width }

// under moves the whole span down until it ends at the limit: if it were cut off, many delays would equal the cap. It
// is cut off at Max.
func (sp span) under(limit time.Duration) span {
	if sp.most() > limit {
		sp.width = min(sp.width, limit)
		sp.least = limit - sp.width
	}
	sp.least = min(sp.least, Max)
	sp.width = min(sp.width, Max-sp.least)
	return sp
}

// at is the delay at a share of the span; 0 is its least, 1 its most.
func (sp span) at(share float64) time.Duration {
	return sp.least + min(times(sp.width, clamp(share)), sp.width)
}

// times is d·k to the nearest nanosecond, at most beyondMax, for d ≥ 0 and k ≥ 0.
func times(d time.Duration, k float64) time.Duration {
	product := math.Round(float64(d) * k)
	if !(product < float64(beyondMax)) { // an overflow and NaN (0·∞) end here too
		if d == 0 {
			return 0
		}
		return beyondMax
	}
	return time.Duration(product)
}

// seconds makes a delay of a number of seconds, at most Max.
func seconds(count float64) time.Duration { return min(times(time.Second, count), Max) }

// clamp forces x into [0, 1], so that a bad random number of a caller does not make a bad delay.
func clamp(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

func (c Chance) random() float64 {
	if c.Rand == nil {
		return 0.5
	}
	return clamp(c.Rand())
}
