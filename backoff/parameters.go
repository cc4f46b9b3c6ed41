package backoff

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// Parameter is a number of a spec that can be changed on its own, and the range in which it is worth changing.
type Parameter struct {
	Name     string // "initial delay"
	Value    string // as the spec has it: "1m30s", "1.5"; None where there is none
	Unit     Unit
	Optional bool // None is a value, too
	Jitter   bool // a part of the jitter, not of the curve

	least, most float64 // every value from the least to the most is valid while the others stay, but in a formula; durations in nanoseconds
}

// Unit is what a parameter counts.
type Unit string

// The units.
const (
	UnitTime    Unit = "time"
	UnitNumber  Unit = "number"
	UnitPercent Unit = "percent"
)

// None is the value of a cap that there is not.
const None = "none"

var errNoParameter = errors.New("the spec has no such parameter")

// Parameters are those of the curve, then those of the jitter. A preset with code of its own has none.
func (s Spec) Parameters() []Parameter {
	_, all := s.curve().adjustable()
	_, bend := adjustable(s.bend())
	for _, p := range bend {
		p.Jitter = true
		all = append(all, p)
	}
	return all
}

// Set returns the spec with another value of its i-th parameter. It goes through the spec's text, so that one parser judges both.
func (s Spec) Set(i int, value string) (Spec, error) {
	curveForm, shape := s.curve().adjustable()
	bendForm, bend := adjustable(s.bend())
	all := slices.Concat(shape, bend)
	if i < 0 || i >= len(all) {
		return Spec{}, fmt.Errorf("set parameter %d of %s: %w", i, s.Curve(), errNoParameter)
	}
	if err := all[i].take(value); err != nil {
		return Spec{}, fmt.Errorf("set the %s: %w", all[i].Name, err)
	}
	return Parse(write(curveForm, all[:len(shape)]), write(bendForm, all[len(shape):]))
}

// take checks a value and keeps it in the form that a spec has.
func (p *Parameter) take(value string) error {
	switch {
	case p.Optional && value == None:
		p.Value = None
	case p.Unit == UnitTime:
		d, err := text.ParseDuration(value)
		if err != nil {
			return err
		}
		p.Value = text.FormatDuration(d)
	default:
		x, err := text.ParseNumber(value)
		if err != nil {
			return fmt.Errorf("%q %w", value, err)
		}
		p.Value = text.FormatNumber(x)
	}
	return nil
}

// write puts the values into the form of a spec; a cap of none leaves it.
func write(form string, parameters []Parameter) string {
	values := make([]any, len(parameters))
	for i, p := range parameters {
		values[i] = p.Value
	}
	return strings.TrimSuffix(fmt.Sprintf(form, values...), ".."+None)
}

// adjustable is the form of the curve's text, a verb for each parameter, and the parameters.
func (cv curve) adjustable() (form string, all []Parameter) {
	form, all = adjustable(cv.formula)
	if !cv.takesCap() {
		return form, all
	}
	first := float64(cv.at(1))
	limit := Parameter{Name: "cap", Value: None, Unit: UnitTime, Optional: true, least: first, most: max(float64(30*24*time.Hour), first)}
	if cv.limit == unlimited {
		return form + "..%s", append(all, limit)
	}
	limit.Value, limit.most = text.FormatDuration(cv.limit), max(limit.most, float64(cv.limit))
	if len(all) > 0 { // the first parameter is what the first delay begins with: that may reach the cap, and no more
		room := float64(cv.limit) - first
		all[0].most = max(min(all[0].most, all[0].number()+room), all[0].number())
	}
	return form + "..%s", append(all, limit)
}

func (cv curve) takesCap() bool {
	name, _, _ := strings.Cut(cv.formula.String(), ":")
	for _, f := range families() {
		if f.name == name {
			return f.capped
		}
	}
	return false
}

// adjustable is the form of a formula's or a jitter's text, a verb for each parameter, and the parameters.
func adjustable(part fmt.Stringer) (form string, all []Parameter) {
	switch f := part.(type) {
	case constant:
		return "constant:%s", []Parameter{length("delay", f.delay)}
	case linear:
		return "linear:%s+%s", []Parameter{length("initial delay", f.first), length("step", f.step)}
	case exponential:
		return "exp:%s*%s", []Parameter{length("initial delay", f.initial), amount("multiplier", f.multiplier, 1, 5)}
	case fibonacci:
		return "fib:%s", []Parameter{length("delay", f.scale)}
	case polynomial:
		return "poly:%s+n^%s", []Parameter{length("base delay", f.start), amount("exponent", f.exponent, 0, 6)}
	case buckets:
		return "buckets:%s", []Parameter{amount("exponent", f.exponent, 0, 6)}
	case list:
		for i, d := range f {
			all = append(all, length(fmt.Sprintf("delay %d", i+1), d))
		}
		return "list:" + strings.Repeat("%s,", len(f)-1) + "%s", all
	case percent:
		p := amount("percentage", f.p, min(1, f.p), 100)
		p.Unit = UnitPercent
		return "%s%%", []Parameter{p}
	case add:
		return f.adjustable()
	case *expression:
		return f.adjustable()
	}
	return strings.ReplaceAll(part.String(), "%", "%%"), nil
}

func (j add) adjustable() (form string, all []Parameter) {
	least, most := length("at least", j.least), length("at most", j.most)
	least.most, most.least = float64(j.most), float64(j.least)
	if j.scaled {
		return "add:%s..%s*n", []Parameter{least, most}
	}
	return "add:%s..%s", []Parameter{least, most}
}

// length is a parameter that is a time, from nothing to a day.
func length(name string, d time.Duration) Parameter {
	return Parameter{Name: name, Value: text.FormatDuration(d), Unit: UnitTime, most: max(float64(24*time.Hour), float64(d))}
}

func amount(name string, x, least, most float64) Parameter {
	return Parameter{Name: name, Value: text.FormatNumber(x), Unit: UnitNumber, least: min(least, x), most: max(most, x)}
}

// CurveExamples are a spec for each kind of curve.
func CurveExamples() (all []string) {
	for _, f := range families() {
		if f.name != "fixed" { // another word for constant
			all = append(all, f.example)
		}
	}
	return all
}

// JitterExamples are a spec for each kind of jitter.
func JitterExamples() (all []string) {
	for _, j := range plainJitters() {
		all = append(all, j.String())
	}
	return append(all, "30%", addExample)
}

// literals finds the plain numbers of a formula, and its names: a digit behind a letter is part of one. It is made when it is needed.
var literals = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)
})

// adjustable makes each plain number of the formula a parameter. They have no names of their own, and not every value has to be valid.
func (f *expression) adjustable() (form string, all []Parameter) {
	form = literals().ReplaceAllStringFunc(strings.ReplaceAll(f.text, "%", "%%"), func(word string) string {
		x, err := text.ParseNumber(word)
		if err != nil {
			return word
		}
		all = append(all, amount(fmt.Sprintf("number %d", len(all)+1), x, 0, max(10, 2*x)))
		return "%s"
	})
	return "expr:" + form, all
}
