package backoff

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParameters(t *testing.T) {
	for spec, want := range map[string]string{
		"constant:5s/none":       "delay=5s",
		"linear:5s+2s..1m/full":  "initial delay=5s, step=2s, cap=1m",
		"linear:2s/equal":        "initial delay=2s, step=2s, cap=none",
		"exp:1s..30s/phase":      "initial delay=1s, multiplier=2, cap=30s",
		"exp:1s*1.5/30%":         "initial delay=1s, multiplier=1.5, cap=none, jitter percentage=30",
		"fib:1s/decorrelated":    "delay=1s, cap=none",
		"poly:15s+n^4/add:30s*n": "base delay=15s, exponent=4, cap=none, jitter at least=0s, jitter at most=30s",
		"list:1s,2s,1m/none":     "delay 1=1s, delay 2=2s, delay 3=1m",
		"buckets:3/add:1s..5s":   "exponent=3, jitter at least=1s, jitter at most=5s",
		"sidekiq/none":           "",
	} {
		t.Run(spec, func(t *testing.T) {
			curve, jitter, _ := strings.Cut(spec, "/")
			var got []string
			for _, p := range parse(t, curve, jitter).Parameters() {
				name := p.Name
				if p.Jitter {
					name = "jitter " + name
				}
				got = append(got, name+"="+p.Value)
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
		s, err := parse(t, curve, jitter).Set(tt.i, tt.value)
		if got := s.Curve() + "/" + s.Jitter(); err == nil && got != tt.want || err != nil && tt.want != "" {
			t.Errorf("%s with parameter %d = %s: %s, %v, want %q", tt.spec, tt.i, tt.value, got, err, tt.want)
		}
	}
	if _, err := parse(t, "sidekiq", "").Set(0, "1"); !errors.Is(err, errNoParameter) {
		t.Errorf("a preset with code of its own: %v", err)
	}
}

// anyAdjustable draws a spec with a jitter that fits it.
func anyAdjustable(t *rapid.T) Spec {
	curve, _, own := anyCurve(t)
	jitters := []string{"none", "add:5s", "add:1s..5s*n", "full", "equal", "decorrelated", "phase", "30%", "0.5%"}
	if own {
		jitters = jitters[:3]
	}
	return parse(t, curve, rapid.SampledFrom(jitters).Draw(t, "jitter"))
}

// Setting a parameter to what it is changes nothing.
func TestSetIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyAdjustable(t)
		for i, p := range s.Parameters() {
			same, err := s.Set(i, p.Value)
			if err != nil || same.Curve() != s.Curve() || same.Jitter() != s.Jitter() {
				t.Errorf("%s %s with its %s: %s %s, %v", s.Curve(), s.Jitter(), p.Name, same.Curve(), same.Jitter(), err)
			}
		}
	})
}

// Every place of every slider is a valid spec, in which that parameter has that value and the others theirs.
func TestEveryPlaceIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyAdjustable(t)
		place := rapid.OneOf(rapid.SampledFrom([]float64{-1, 0, 0.005, 1, 2}), rapid.Float64Range(0, 1)).Draw(t, "place")
		for i, p := range s.Parameters() {
			moved, err := s.Set(i, p.At(place))
			if err != nil {
				t.Fatalf("%s %s, %s at %v: %v", s.Curve(), s.Jitter(), p.Name, place, err)
			}
			for j, q := range moved.Parameters() {
				want := s.Parameters()[j].Value
				if i == j {
					want = p.At(place)
				}
				if q.Value != want {
					t.Fatalf("%s %s, %s at %v: %s is %s, want %s", s.Curve(), s.Jitter(), p.Name, place, q.Name, q.Value, want)
				}
			}
		}
	})
}

// A slider that is put where its value stands shows nearly that value: it is rounded to a twentieth at the most.
func TestPlaceAndAtAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyAdjustable(t)
		for i, p := range s.Parameters() {
			if p.Value == None || p.Unit == UnitTime && p.number() < float64(shortest) {
				continue
			}
			p.Value = p.At(p.Place())
			was, is := s.Parameters()[i].number(), p.number()
			if is < was*0.94-0.5 || is > was*1.06+0.5 {
				t.Errorf("%s of %s became %s", p.Name, s.Curve(), p.Value)
			}
		}
	})
}

// Each step of the keyboard on a slider of 100 changes the value, and up is up.
func TestEveryStepCounts(t *testing.T) {
	for _, p := range parse(t, "exp:1s..10m", "30%").Parameters() {
		for i := range 100 {
			p.Value = p.At(float64(i) / 100)
			before := p.number()
			p.Value = p.At(float64(i+1) / 100)
			coarse := p.Unit != UnitTime // whole percents, steps of 0.05
			if after := p.number(); after < before || after == before && !coarse {
				t.Errorf("%s: step %d goes from %v to %v", p.Name, i+1, before, after)
			}
		}
	}
}

func ExampleSpec_Set() {
	s, _ := Parse("exp:1s..30s", "full")
	for i, p := range s.Parameters() {
		fmt.Println(i, p.Name, p.Value)
	}
	s, _ = s.Set(2, "2m")
	fmt.Println(s.Curve())
	// Output:
	// 0 initial delay 1s
	// 1 multiplier 2
	// 2 cap 30s
	// exp:1s..2m
}
