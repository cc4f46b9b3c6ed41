package model

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
)

func newSpec(t rapid.TB, curve, jitter string) backoff.Spec {
	t.Helper()
	s, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", curve, jitter, err)
	}
	return s
}

func TestParameters(t *testing.T) {
	for spec, want := range map[string]string{
		"constant:5s/none":       "delay=5s",
		"linear:5s+2s..1m/full":  "initial delay=5s, step=2s, cap=1m",
		"linear:2s/equal":        "initial delay=2s, step=2s, cap=none",
		"exp:1s..30s/phase":      "initial delay=1s, multiplier=2, cap=30s",
		"exp:1s*1.5/30%":         "initial delay=1s, multiplier=1.5, cap=none, jitter, percentage=30",
		"fib:1s/decorrelated":    "delay=1s, cap=none",
		"poly:15s+n^4/add:30s*n": "base delay=15s, exponent=4, cap=none, jitter, at least=0s, jitter, at most=30s",
		"list:1s,2s,1m/none":     "delay 1=1s, delay 2=2s, delay 3=1m",
		"buckets:3/add:1s..5s":   "exponent=3, jitter, at least=1s, jitter, at most=5s",
		"sidekiq/none":           "",
	} {
		t.Run(spec, func(t *testing.T) {
			curve, jitter, _ := strings.Cut(spec, "/")
			var got []string
			for _, p := range slidersOf(newSpec(t, curve, jitter)) {
				got = append(got, p.name+"="+p.value)
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("got  %s\nwant %s", text, want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	for _, tt := range []struct {
		spec, value string
		i           int
		want        string
	}{
		{"exp:1s..30s/full", "90", 0, ""},
		{"exp:1s..30s/full", "2s", 0, "exp:2s..30s/full"},
		{"exp:1s..30s/full", "1.5", 1, "exp:1s*1.5..30s/full"},
		{"exp:1s..30s/full", "none", 2, "exp:1s/full"},
		{"exp:1s/full", "1m", 2, "exp:1s..1m/full"},
		{"linear:2s/none", "1s", 1, "linear:2s+1s/none"},
		{"list:1s,2s/10%", "25", 2, "list:1s,2s/25%"},
		{"zizq/", "5", 1, "poly:15s+n^5/add:30s*n"},
		{"exp:1s/full", "1s..2s", 0, ""},
		{"exp:1s/full", "0.5", 1, ""},
		{"exp:1s/full", "inf", 1, ""},
		{"exp:1s/full", "none", 0, ""},
		{"exp:1s/full", "1s", 3, ""},
		{"exp:1s/full", "1s", -1, ""},
	} {
		curve, jitter, _ := strings.Cut(tt.spec, "/")
		s, err := withValue(newSpec(t, curve, jitter), tt.i, tt.value)
		if got := s.Curve() + "/" + s.Jitter(); err == nil && got != tt.want || err != nil && tt.want != "" {
			t.Errorf("%s with parameter %d = %s: got %s, %v, want %q", tt.spec, tt.i, tt.value, got, err, tt.want)
		}
	}
	if _, err := withValue(newSpec(t, "sidekiq", ""), 0, "1"); !errors.Is(err, errNoSlider) {
		t.Errorf("a preset with code of its own: got %v, want errNoSlider", err)
	}
}

// anySpec draws a spec of any kind of curve, with a jitter that fits it.
func anySpec(t *rapid.T) backoff.Spec {
	delay := func(name string) string {
		most := rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 2 * backoff.Max}).Draw(t, name+" at most")
		return text.FormatDuration(time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name)))
	}
	number := func(name string, least int) string {
		return text.FormatNumber(float64(rapid.IntRange(100*least, 800).Draw(t, name)) / 100)
	}
	kinds := []string{"constant", "linear", "exp", "fib", "poly", "list", "buckets", "sidekiq"}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	curve := map[string]func() string{
		"constant": func() string { return "constant:" + delay("delay") },
		"linear":   func() string { return "linear:" + delay("first") + "+" + delay("step") },
		"exp":      func() string { return "exp:" + delay("initial") + "*" + number("multiplier", 1) },
		"fib":      func() string { return "fib:" + delay("delay") },
		"poly":     func() string { return "poly:" + delay("base") + "+n^" + number("exponent", 0) },
		"list":     func() string { return "list:" + delay("first") + "," + delay("second") },
		"buckets":  func() string { return "buckets:" + number("exponent", 0) },
		"sidekiq":  func() string { return "sidekiq" },
	}[kind]()
	jitters := []string{"none", "add:5s", "add:1s..5s*n", "full", "equal", "decorrelated", "phase", "30%", "0.5%"}
	switch kind {
	case "buckets", "sidekiq":
		jitters = jitters[:3]
	case "linear", "exp", "fib", "poly":
		if rapid.Bool().Draw(t, "capped") {
			more := time.Duration(rapid.Int64Range(0, int64(backoff.Max)).Draw(t, "cap"))
			curve += ".." + text.FormatDuration(newSpec(t, curve, "none").Base(1)+more)
		}
	}
	return newSpec(t, curve, rapid.SampledFrom(jitters).Draw(t, "jitter"))
}

// Setting a parameter to what it is changes nothing.
func TestSetIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		for i, p := range slidersOf(s) {
			same, err := withValue(s, i, p.value)
			if err != nil || same.Curve() != s.Curve() || same.Jitter() != s.Jitter() {
				t.Errorf("%s %s with its %s: got %s %s, %v", s.Curve(), s.Jitter(), p.name, same.Curve(), same.Jitter(), err)
			}
		}
	})
}

// Every place of every slider is a valid spec, in which that parameter has that value and the others theirs.
func TestEveryPlaceIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		place := rapid.OneOf(rapid.SampledFrom([]float64{-1, 0, 0.005, 1, 2}), rapid.Float64Range(0, 1)).Draw(t, "place")
		for i, p := range slidersOf(s) {
			moved, err := withValue(s, i, p.at(place))
			if err != nil {
				t.Fatalf("%s %s, %s at %v: got %v", s.Curve(), s.Jitter(), p.name, place, err)
			}
			for j, q := range slidersOf(moved) {
				want := slidersOf(s)[j].value
				if i == j {
					want = p.at(place)
				}
				if q.value != want {
					t.Fatalf("%s %s, %s at %v, %s: got %s, want %s", s.Curve(), s.Jitter(), p.name, place, q.name, q.value, want)
				}
			}
		}
	})
}

// A slider that is put where its value stands shows nearly that value: it is rounded to a twentieth at the most.
func TestPlaceAndAtAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		for i, p := range slidersOf(s) {
			if p.value == none || p.unit == timeUnit && p.number() < float64(minTime) {
				continue
			}
			p.value = p.at(p.place())
			was, is := slidersOf(s)[i].number(), p.number()
			if is < was*0.94-0.5 || is > was*1.06+0.5 {
				t.Errorf("%s of %s: got %s", p.name, s.Curve(), p.value)
			}
		}
	})
}

// Each step of the keyboard on a slider of 100 changes the value, and up is up.
func TestEveryStepCounts(t *testing.T) {
	for _, p := range slidersOf(newSpec(t, "exp:1s..10m", "30%")) {
		for i := range 100 {
			p.value = p.at(float64(i) / 100)
			before := p.number()
			p.value = p.at(float64(i+1) / 100)
			coarse := p.unit != timeUnit // whole percents, steps of 0.05
			if after := p.number(); after < before || after == before && !coarse {
				t.Errorf("%s: got step %d from %v to %v", p.name, i+1, before, after)
			}
		}
	}
}

// Each plain number of a formula can be moved on its own; what it makes invalid is refused.
func TestFormulaHasParameters(t *testing.T) {
	s := newSpec(t, "expr:15 + n^4.5 + rand(30)*n % 7 ..1h", "")
	var values []string
	for i, p := range slidersOf(s) {
		values = append(values, p.name+" "+p.value)
		same, err := withValue(s, i, p.value)
		if err != nil || same.Curve() != s.Curve() {
			t.Errorf("%s set to what it is: got %s, %v", p.name, same.Curve(), err)
		}
		if moved, err := withValue(s, i, p.at(0.75)); err != nil || moved.Curve() == s.Curve() {
			t.Errorf("%s moved: got %s, %v", p.name, moved.Curve(), err)
		}
	}
	if got := strings.Join(values, ", "); got != "number 1 15, number 2 4.5, number 3 30, number 4 7, cap 1h" {
		t.Errorf("got %s", got)
	}
	if moved, err := withValue(s, 1, "2"); err != nil || moved.Curve() != "expr:15 + n^2 + rand(30)*n % 7..1h" {
		t.Errorf("got %s, %v", moved.Curve(), err)
	}
	if _, err := withValue(newSpec(t, "expr:10 - min(n, 3)", ""), 0, "2"); err == nil {
		t.Error("a delay below 0 was accepted")
	}
	if all := slidersOf(newSpec(t, "expr:n + 1e3 + prev", "")); len(all) != 1 || all[0].name != "cap" {
		t.Errorf("got %+v", all)
	}
}
