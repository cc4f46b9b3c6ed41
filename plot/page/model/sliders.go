package model

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
)

// slider is one number of a spec, with the range in which it is worth changing.
type slider struct {
	name     string // "initial delay"
	value    string // as the spec has it: "1m30s", "1.5", or none
	unit     unit
	optional bool // the value may be none
	// Every value in the range is valid while the others stay, except in a formula. Times are in nanoseconds.
	least, most float64
}

// unit is what the number of a slider counts.
type unit int

const (
	plainNumber unit = iota
	percentage
	timeUnit
)

// none is the value of a cap that a spec does not have.
const none = "none"

const day = 24 * time.Hour

// minTime is where the logarithmic axis of a time that may be 0 begins.
const minTime = 10 * time.Millisecond

var errNoSlider = errors.New("the spec has no such parameter")

// slidersOf returns the sliders of a spec, those of the curve first. A preset with code of its own has none.
func slidersOf(s backoff.Spec) []slider {
	_, curve := curveSliders(s)
	_, jitter := jitterSliders(s.Jitter())
	for i := range jitter {
		jitter[i].name = "jitter, " + jitter[i].name
	}
	return slices.Concat(curve, jitter)
}

// withValue returns the spec with another value of its i-th slider. It makes a text of the spec, which backoff checks.
func withValue(s backoff.Spec, i int, value string) (backoff.Spec, error) {
	curveFormat, curve := curveSliders(s)
	jitterFormat, jitter := jitterSliders(s.Jitter())
	all := slices.Concat(curve, jitter)
	if i < 0 || i >= len(all) {
		return backoff.Spec{}, fmt.Errorf("set parameter %d of %s: %w", i, s.Curve(), errNoSlider)
	}
	all[i].value = value
	return backoff.Parse(fill(curveFormat, all[:len(curve)]), fill(jitterFormat, all[len(curve):]))
}

// fill puts the values into the format of a spec, without a cap of none.
func fill(format string, sliders []slider) string {
	values := make([]any, len(sliders))
	for i, s := range sliders {
		values[i] = s.value
	}
	return strings.TrimSuffix(fmt.Sprintf(format, values...), ".."+none)
}

// curveSliders returns the format of the curve's text, with a verb for each slider, and the sliders.
func curveSliders(s backoff.Spec) (format string, all []slider) {
	kind, rest, _ := strings.Cut(s.Curve(), ":")
	body, limit, capped := strings.Cut(rest, "..")
	switch kind {
	case "constant":
		return "constant:%s", []slider{timeSlider("delay", body)}
	case "buckets":
		return "buckets:%s", []slider{numberSlider("exponent", body, 0, 6)}
	case "list":
		delays := strings.Split(body, ",")
		for i, d := range delays {
			all = append(all, timeSlider(fmt.Sprintf("delay %d", i+1), d))
		}
		return "list:" + strings.Repeat("%s,", len(delays)-1) + "%s", all
	case "linear":
		first, step, given := strings.Cut(body, "+")
		if !given {
			step = first
		}
		format, all = "linear:%s+%s", []slider{timeSlider("initial delay", first), timeSlider("step", step)}
	case "exp":
		initial, multiplier, given := strings.Cut(body, "*")
		if !given {
			multiplier = "2"
		}
		format, all = "exp:%s*%s", []slider{timeSlider("initial delay", initial), numberSlider("multiplier", multiplier, 1, 5)}
	case "fib":
		format, all = "fib:%s", []slider{timeSlider("delay", body)}
	case "poly":
		base, exponent, _ := strings.Cut(body, "+n^")
		format, all = "poly:%s+n^%s", []slider{timeSlider("base delay", base), numberSlider("exponent", exponent, 0, 6)}
	case "expr":
		format, all = formulaSliders(body)
	default:
		return strings.ReplaceAll(s.Curve(), "%", "%%"), nil
	}
	return format + "..%s", addCap(all, s, limit, capped)
}

// addCap adds the slider of the cap, from the first delay on.
func addCap(all []slider, s backoff.Spec, limit string, capped bool) []slider {
	first := float64(s.Base(1))
	slider := slider{name: "cap", value: none, unit: timeUnit, optional: true, least: first, most: max(float64(30*day), first)}
	if !capped {
		return append(all, slider)
	}
	slider.value = limit
	slider.most = max(slider.most, slider.number())
	if len(all) > 0 { // a larger first number makes the first delay longer, which may not pass the cap
		room := slider.number() - first
		all[0].most = max(min(all[0].most, all[0].number()+room), all[0].number())
	}
	return append(all, slider)
}

// formulaSliders makes each plain number of a formula a slider. Not every value has to be valid.
func formulaSliders(formula string) (format string, all []slider) {
	// A name is matched too, since a digit in it is not a number.
	word := regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)
	format = word.ReplaceAllStringFunc(strings.ReplaceAll(formula, "%", "%%"), func(word string) string {
		x, err := text.ParseNumber(word)
		if err != nil {
			return word
		}
		all = append(all, numberSlider(fmt.Sprintf("number %d", len(all)+1), word, 0, max(10, 2*x)))
		return "%s"
	})
	return "expr:" + format, all
}

func jitterSliders(jitter string) (format string, all []slider) {
	if value, ok := strings.CutSuffix(jitter, "%"); ok {
		s := numberSlider("percentage", value, 1, 100)
		s.unit = percentage
		return "%s%%", []slider{s}
	}
	body, ok := strings.CutPrefix(jitter, "add:")
	if !ok {
		return jitter, nil
	}
	body, scaled := strings.CutSuffix(body, "*n")
	low, high, both := strings.Cut(body, "..")
	if !both {
		low, high = text.FormatDuration(0), body
	}
	least, most := timeSlider("at least", low), timeSlider("at most", high)
	least.most, most.least = most.number(), least.number()
	if scaled {
		return "add:%s..%s*n", []slider{least, most}
	}
	return "add:%s..%s", []slider{least, most}
}

// timeSlider ranges from 0 to a day.
func timeSlider(name, value string) slider {
	s := slider{name: name, value: value, unit: timeUnit}
	s.most = max(float64(day), s.number())
	return s
}

func numberSlider(name, value string, least, most float64) slider {
	s := slider{name: name, value: value}
	s.least, s.most = min(least, s.number()), max(most, s.number())
	return s
}

// number is the value as a number; a time is in nanoseconds.
func (s slider) number() float64 {
	if s.unit == timeUnit {
		d, _ := text.ReadDuration(s.value)
		return float64(d)
	}
	x, _ := text.ParseNumber(s.value)
	return x
}

// place is where the value stands in its range, from 0 to 1; none stands at 1. The axis of a time is logarithmic.
func (s slider) place() float64 {
	x := s.number()
	switch {
	case s.value == none || s.most <= s.least:
		return 1
	case s.unit != timeUnit:
		return clamp((x - s.least) / (s.most - s.least))
	case x == 0:
		return 0
	}
	first := s.firstTime()
	return clamp(math.Log(x/first) / math.Log(s.most/first))
}

// at is the value at a place, rounded to what people use. It can be set, except in a formula.
func (s slider) at(place float64) string {
	place = clamp(place)
	if s.unit != timeUnit {
		step := 0.05
		if s.unit == percentage {
			step = 1
		}
		x := math.Round((s.least+place*(s.most-s.least))/step) * step
		return text.FormatNumber(min(max(x, s.least), s.most))
	}
	if place == 0 && s.least == 0 {
		return text.FormatDuration(0)
	}
	first := s.firstTime()
	x := first * math.Pow(s.most/first, place)
	return text.FormatDuration(time.Duration(min(max(roundTime(x), s.least), s.most)))
}

// firstTime is where the logarithmic axis of a time begins.
func (s slider) firstTime() float64 {
	if s.least > 0 {
		return s.least
	}
	return min(float64(minTime), max(s.most, 1))
}

func clamp(place float64) float64 { return min(max(place, 0), 1) }

// roundTime rounds a time in nanoseconds by a twentieth of itself at the most.
func roundTime(x float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(max(x, 1)))-1)
	for _, s := range []time.Duration{
		50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 12 * time.Hour, day,
	} {
		if x >= float64(time.Second) && float64(s) <= x/20 {
			step = float64(s)
		}
	}
	return math.Round(x/step) * step
}

// Choice is a kind of curve or jitter, with a spec to begin with.
type Choice struct {
	Name string `json:"name"`
	Spec string `json:"spec"`
}

// Curves are the kinds of curve and the presets.
func Curves() (all []Choice) {
	for _, example := range []string{
		"constant:5m", "linear:5s+2s..1m", "exp:1s*2..30s", "fib:1s..1m", "poly:15s+n^4..1h", "list:1s,2s,5s,1m", "buckets:3", "expr:15 + n^4 + rand(30)*n",
	} {
		all = append(all, Choice{kindOfCurve(example), example})
	}
	for _, p := range backoff.Presets() {
		all = append(all, Choice{p.Name, p.Name})
	}
	return all
}

// Jitters are the kinds of jitter.
func Jitters() (all []Choice) {
	for _, example := range []string{"none", "full", "equal", "decorrelated", "phase", "30%", "add:5s"} {
		all = append(all, Choice{kindOfJitter(example), example})
	}
	return all
}

func kindOfCurve(spec string) string {
	kind, _, _ := strings.Cut(spec, ":")
	return kind
}

func kindOfJitter(spec string) string {
	if strings.HasSuffix(spec, "%") {
		return "± %"
	}
	kind, _, _ := strings.Cut(spec, ":")
	return kind
}
