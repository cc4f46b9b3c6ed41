package model

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
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

// namesOf are the names of the numbers in a kind of curve or jitter; # is the count of the number.
func namesOf(kind string) []string {
	return map[string][]string{
		"constant": {"delay"}, "linear": {"initial delay", "step"}, "exp": {"initial delay", "multiplier"}, "fib": {"delay"},
		"poly": {"base delay", "exponent"}, "buckets": {"exponent"}, "list": {"delay #"}, "expr": {"number #"},
		"add": {"at least", "at most"}, "± %": {"percentage"},
	}[kind]
}

// curveSliders returns the format of the curve's text, with a verb for each slider, and the sliders. In a formula, not
// every value of a number has to be valid.
func curveSliders(s backoff.Spec) (format string, all []slider) {
	kind := kindOfCurve(s.Curve())
	text, limit, capped := strings.Cut(s.Curve(), "..")
	switch {
	case kind == "linear" && !strings.Contains(text, "+"):
		text += "+" + strings.TrimPrefix(text, "linear:")
	case kind == "exp" && !strings.Contains(text, "*"):
		text += "*2"
	}
	format, all = numbersOf(text, kind)
	if namesOf(kind) == nil || slices.Contains([]string{"constant", "buckets", "list"}, kind) {
		return format, all
	}
	return format + "..%s", addCap(all, s, limit, capped)
}

// addCap adds the slider of the cap, from the first delay on.
func addCap(all []slider, s backoff.Spec, limit string, capped bool) []slider {
	first := float64(s.Base(1))
	slider := slider{name: "cap", value: none, unit: timeUnit, optional: true, least: first}
	slider.most = max(float64(30*day), first)
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

func jitterSliders(jitter string) (format string, all []slider) {
	if !strings.Contains(jitter, "..") {
		jitter = strings.Replace(jitter, "add:", "add:0s..", 1)
	}
	format, all = numbersOf(jitter, kindOfJitter(jitter))
	if len(all) == 2 {
		all[0].most, all[1].least = all[1].number(), all[0].number()
	}
	return format, all
}

// numbersOf makes each number and each time of a text a slider.
func numbersOf(spec, kind string) (format string, all []slider) {
	names := namesOf(kind)
	// A name is matched too, since a digit in it is not a number.
	word := regexp.MustCompile(`[A-Za-z_]\w*|(?:[0-9]+(?:\.[0-9]+)?(?:[eE][-+][0-9]+|[a-zµ]*))+`)
	format = word.ReplaceAllStringFunc(strings.ReplaceAll(spec, "%", "%%"), func(word string) string {
		s := slider{value: word, most: float64(day), unit: timeUnit}
		x, err := text.ParseNumber(word)
		if err == nil {
			s.unit, s.most = plainNumber, max(10, 2*x)
		} else if _, err = text.ReadDuration(word); err != nil {
			return word
		}
		name := names[min(len(all), len(names)-1)]
		s.name = strings.Replace(name, "#", strconv.Itoa(len(all)+1), 1)
		switch name {
		case "multiplier":
			s.least, s.most = 1, 5
		case "exponent":
			s.most = 6
		case "percentage":
			s.unit, s.least, s.most = percentage, 1, 100
		}
		s.least, s.most = min(s.least, s.number()), max(s.most, s.number())
		all = append(all, s)
		return "%s"
	})
	return format, all
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
		50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
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
		"constant:5m", "linear:5s+2s..1m", "exp:1s*2..30s", "fib:1s..1m", "poly:15s+n^4..1h", "list:1s,2s,5s,1m",
		"buckets:3", "expr:15 + n^4 + rand(30)*n",
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
