package backoff

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/text"
)

// decimal draws a number with up to three places.
func decimal(t *rapid.T, label string, least, most int) string {
	return text.FormatNumber(float64(rapid.IntRange(least*1000, most*1000).Draw(t, label)) / 1000)
}

func delay(t *rapid.T, label string) string {
	return text.FormatDuration(anyDuration(2*Max).Draw(t, label))
}

// growing draws a curve whose delays never fall, with its cap or unlimited.
func growing(t *rapid.T) (string, time.Duration) {
	txt := map[string]func() string{
		"constant": func() string { return delay(t, "delay") },
		"linear":   func() string { return delay(t, "first") + "+" + delay(t, "step") },
		"exp":      func() string { return delay(t, "initial") + "*" + decimal(t, "multiplier", 1, 10) },
		"fib":      func() string { return delay(t, "scale") },
		"poly":     func() string { return delay(t, "base") + "+n^" + decimal(t, "exponent", 0, 8) },
	}
	family := rapid.SampledFrom([]string{"constant", "linear", "exp", "fib", "poly"}).Draw(t, "family")
	curve := family + ":" + txt[family]()
	if family == "constant" || !rapid.Bool().Draw(t, "capped") {
		return curve, unlimited
	}
	limit := parse(t, curve, "none").Base(1) + anyDuration(Max).Draw(t, "headroom")
	return curve + ".." + text.FormatDuration(limit), limit
}

// anyCurve draws from all curves; own reports whether the curve uses random numbers.
func anyCurve(t *rapid.T) (curve string, limit time.Duration, own bool) {
	switch rapid.SampledFrom([]string{"growing", "growing", "list", "buckets", "sidekiq"}).Draw(t, "kind") {
	case "list":
		parts := rapid.SliceOfN(rapid.Map(anyDuration(2*Max), text.FormatDuration), 1, 5).Draw(t, "list")
		return "list:" + strings.Join(parts, ","), unlimited, false
	case "buckets":
		return "buckets:" + decimal(t, "exponent", 0, 8), unlimited, true
	case "sidekiq":
		return "sidekiq", unlimited, true
	}
	curve, limit = growing(t)
	return curve, limit, false
}

func anyJitter(t *rapid.T, own bool) string {
	low := anyDuration(2*Max).Draw(t, "low")
	span := text.FormatDuration(low) + ".." + text.FormatDuration(low+anyDuration(2*Max).Draw(t, "width"))
	fits := []string{"none", "add:" + delay(t, "most"), "add:" + span, "add:" + span + "*n"}
	if !own {
		fits = append(fits, "full", "equal", "decorrelated", "phase", decimal(t, "percent", 1, 100)+"%")
	}
	return rapid.SampledFrom(fits).Draw(t, "jitter")
}

func anyRetry(t *rapid.T) int {
	return rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(1, 1000), rapid.IntRange(1, math.MaxInt)).Draw(t, "n")
}

func chance(t *rapid.T, prev time.Duration) Chance {
	unit := rapid.OneOf(rapid.Float64Range(0, justUnder), rapid.SampledFrom([]float64{0, 0.5, justUnder}))
	return Chance{
		Phase: unit.Draw(t, "phase"),
		Prev:  prev,
		Rand:  func() float64 { return unit.Draw(t, "random") },
	}
}

func TestDelaysKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve, limit, own := anyCurve(t)
		s := parse(t, curve, anyJitter(t, own))
		n := anyRetry(t)
		_, prev := s.Bounds(n - 1)
		prev = time.Duration(rapid.Float64Range(0, 1).Draw(t, "prev") * float64(prev))

		least, most := s.Bounds(n)
		if least < 0 || most < least || most > min(limit, Max) {
			t.Fatalf("got bounds [%v, %v], want them from 0 to the cap %v", least, most, limit)
		}
		if got := s.Delay(n, chance(t, prev)); got < least || got > most {
			t.Fatalf("got delay %v, want [%v, %v]", got, least, most)
		}
		if d := s.Base(n); d < 0 || d > min(limit, Max) {
			t.Fatalf("d(%d): got %v, want at most the cap %v", n, d, limit)
		}
	})
}

// The cap holds for any previous delay, also for years that a server asked for.
func TestAnyHistoryKeepsTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve, limit := growing(t)
		s := parse(t, curve, "decorrelated")
		prev := time.Duration(rapid.Int64().Draw(t, "prev"))
		if got := s.Delay(anyRetry(t), chance(t, prev)); got < s.Base(1) || got > min(limit, Max) {
			t.Fatalf("after %v: got delay %v, want at most the cap %v", prev, got, limit)
		}
	})
}

func TestBaseNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve, _ := growing(t)
		s, n := parse(t, curve, ""), anyRetry(t)
		if n < math.MaxInt && s.Base(n+1) < s.Base(n) {
			t.Fatalf("d(%d): got %v, want at least %v", n+1, s.Base(n+1), s.Base(n))
		}
	})
}

func TestNoneIsTheBase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve, _ := growing(t)
		s, n := parse(t, curve, "none"), anyRetry(t)
		if got := s.Delay(n, chance(t, 0)); got != s.Base(n) {
			t.Fatalf("delay %d: got %v, want %v", n, got, s.Base(n))
		}
	})
}

func TestSpecsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve, _, own := anyCurve(t)
		s := parse(t, curve, anyJitter(t, own))
		if err := comesBack(s, anyRetry(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// comesBack returns an error if the canonical text of s is not parsed as s.
func comesBack(s Spec, n int) error {
	again, err := Parse(s.Curve(), s.Jitter())
	if err != nil {
		return err
	}
	if again.Curve() != s.Curve() || again.Jitter() != s.Jitter() {
		return fmt.Errorf("parsed again: got %s/%s, want %s/%s", again.Curve(), again.Jitter(), s.Curve(), s.Jitter())
	}
	c := Chance{Phase: 0.3, Prev: time.Minute, Rand: always(0.7)}
	if a, b := s.Delay(n, c), again.Delay(n, c); a != b || s.Base(n) != again.Base(n) {
		return fmt.Errorf("%s/%s parsed again: delay %d: got %v, want %v", s.Curve(), s.Jitter(), n, b, a)
	}
	return nil
}

func FuzzParse(f *testing.F) {
	for _, curve := range []string{
		"constant:5m", "fixed:0", "linear:5s+2s..1m", "exp:1s*1.5..30s", "fib:1s..1m", "poly:15s+n^2.5..1h",
		"list:1s,2s,5s,1m", "buckets:3", "sidekiq", "zizq", "exp:0.5.5", "exp:1...5", "expr:n^4", "expo:1s", "", ":",
	} {
		for _, jitter := range []string{"", "none", "decorrelated", "phase", "±30%", "add:1s..5s*n", "add:", "%"} {
			f.Add(curve, jitter, 3)
		}
	}
	f.Fuzz(func(t *testing.T, curve, jitter string, n int) {
		s, err := Parse(curve, jitter)
		if err != nil {
			wantHint(t, err)
			return
		}
		if err := comesBack(s, n); err != nil {
			t.Fatal(err)
		}
		least, most := s.Bounds(n)
		got := s.Delay(n, Chance{Phase: 0.3, Rand: always(0.7)})
		if least < 0 || got < least || got > most || most > Max {
			t.Fatalf("delay %d: got %v, want it in [%v, %v]", n, got, least, most)
		}
	})
}

func wantHint(t *testing.T, err error) {
	if strings.Count(err.Error(), "\nhint: ") != 1 {
		t.Fatalf("got error %q, want one with a hint", err)
	}
}

// justUnder is the largest number that a generator of [0, 1) can give.
var justUnder = math.Nextafter(1, 0)

// parse is Parse for specs that are right.
func parse(t rapid.TB, curve, jitter string) Spec {
	t.Helper()
	s, err := Parse(curve, jitter)
	if err != nil {
		t.Fatalf("Parse(%q, %q): got error %v, want none", curve, jitter, err)
	}
	return s
}

// sec is x seconds to the nanosecond.
func sec(x float64) time.Duration { return time.Duration(math.Round(x * 1e9)) }

// anyDuration draws durations of every order of magnitude up to most.
func anyDuration(most time.Duration) *rapid.Generator[time.Duration] {
	upTo := func(d time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.Int64Range(0, int64(min(d, most))),
			func(n int64) time.Duration { return time.Duration(n) })
	}
	return rapid.OneOf(upTo(time.Second), upTo(time.Hour), upTo(most))
}
