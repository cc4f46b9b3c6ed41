package backoff

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/text"
)

func TestDefaultJitter(t *testing.T) {
	for curve, want := range map[string]string{
		"constant:5s": "none", "5": "none", "exp:1s..30s": "phase", "list:1s,2s": "none", "buckets:3": "none",
		"linear:1s": "phase", "fib": "phase", "poly:1s+n^2": "phase",
		"sidekiq": "none", "zizq": "add:30s*n", "aws": "full", "grpc": "20%", "lock-busy": "30%",
	} {
		if got := parse(t, curve, "").Jitter(); got != want {
			t.Errorf("%s: got jitter %s, want %s", curve, got, want)
		}
	}
	if got := parse(t, "zizq", "equal").Jitter(); got != "equal" {
		t.Errorf("zizq with the jitter equal: got %s, want equal", got)
	}
}

// What people type first is a time, or a curve's name alone.
func TestShortSpecs(t *testing.T) {
	for short, want := range map[string]string{
		"5": "constant:5s", "5s": "constant:5s", "0": "constant:0s", "1h30m": "constant:1h30m", "0.5": "constant:500ms",
		"delay:5m": "constant:5m", "exp": "exp:1s..1m", "fib": "fib:1s..1m", "linear": "linear:1s..1m",
		"constant": "constant:1s", "fixed": "constant:1s", "delay": "constant:1s",
	} {
		if got := parse(t, short, "").Curve(); got != want {
			t.Errorf("%s: got %s, want %s", short, got, want)
		}
	}
}

func TestWith(t *testing.T) {
	for _, row := range []struct {
		from, with [2]string // curve, jitter
		want       string
	}{
		{[2]string{"exp:1s", "full"}, [2]string{"", ""}, "exp:1s/full"},
		{[2]string{"exp:1s", ""}, [2]string{"", "full"}, "exp:1s/full"},
		{[2]string{"exp:1s", "full"}, [2]string{"", "30%"}, "exp:1s/30%"},
		{[2]string{"exp:1s", "full"}, [2]string{"fib:1s", "equal"}, "fib:1s/equal"},
		{[2]string{"buckets:3", ""}, [2]string{"", "add:5s"}, "buckets:3/add:5s"},
		{[2]string{"sidekiq", "add:5s"}, [2]string{"", "none"}, "sidekiq/none"},

		// A given jitter stays if it fits.
		{[2]string{"exp:1s", "full"}, [2]string{"fib:1s", ""}, "fib:1s/full"},
		{[2]string{"exp:1s", "add:5s"}, [2]string{"buckets:3", ""}, "buckets:3/add:5s"},
		{[2]string{"exp:1s", "none"}, [2]string{"buckets:3", ""}, "buckets:3/none"},
		{[2]string{"buckets:3", "none"}, [2]string{"exp:1s", ""}, "exp:1s/none"},

		// A default jitter is replaced by the default of the new curve.
		{[2]string{"exp:1s", ""}, [2]string{"buckets:3", ""}, "buckets:3/none"},
		{[2]string{"buckets:3", ""}, [2]string{"exp:1s", ""}, "exp:1s/phase"},
		{[2]string{"zizq", ""}, [2]string{"exp:1s", ""}, "exp:1s/phase"},
		{[2]string{"exp:1s", ""}, [2]string{"aws", ""}, "exp:1s..20s/full"},

		// A preset brings its own jitter, which also replaces a given one.
		{[2]string{"exp:1s", "full"}, [2]string{"zizq", ""}, "poly:15s+n^4/add:30s*n"},
		{[2]string{"exp:1s", "full"}, [2]string{"sidekiq", ""}, "sidekiq/none"},
		{[2]string{"exp:1s", "full"}, [2]string{"zizq", "equal"}, "poly:15s+n^4/equal"},
	} {
		from := parse(t, row.from[0], row.from[1])
		got, err := from.With(row.with[0], row.with[1])
		if err != nil || got.Curve()+"/"+got.Jitter() != row.want {
			t.Errorf("%v with %v: got %s/%s, error %v, want %s", row.from, row.with, got.Curve(), got.Jitter(), err,
				row.want)
		}
	}
}

// A jitter given to With counts as given, like one given to Parse.
func TestWithTwice(t *testing.T) {
	for _, row := range []struct {
		jitter string
		steps  [][2]string
		want   string
	}{
		{"", [][2]string{{"", "full"}, {"fib:1s", ""}}, "fib:1s/full"},
		{"full", [][2]string{{"fib:1s", ""}, {"linear:1s", ""}}, "linear:1s/full"},
		{"full", [][2]string{{"zizq", ""}, {"exp:1s", ""}}, "exp:1s/phase"},
		{"full", [][2]string{{"buckets:3", "none"}, {"exp:1s", ""}}, "exp:1s/none"},
	} {
		s := parse(t, "exp:1s", row.jitter)
		for _, step := range row.steps {
			var err error
			if s, err = s.With(step[0], step[1]); err != nil {
				t.Fatalf("%v: got error %v, want none", row.steps, err)
			}
		}
		if got := s.Curve() + "/" + s.Jitter(); got != row.want {
			t.Errorf("%v: got %s, want %s", row.steps, got, row.want)
		}
	}
}

func TestJitterDoesNotFit(t *testing.T) {
	for _, curve := range []string{"buckets:3", "sidekiq"} {
		for _, jitter := range []string{"full", "equal", "decorrelated", "phase", "30%"} {
			_, parsed := Parse(curve, jitter)
			_, added := parse(t, curve, "").With("", jitter)
			for _, err := range []error{parsed, added} {
				if !errors.Is(err, errOwnRandomness) {
					t.Errorf("%s with %s: got error %v, want %v", curve, jitter, err, errOwnRandomness)
					continue
				}
				for _, part := range []string{curve, jitter, "\nhint: ", "add:5s"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s with %s: got %q, want %q in it", curve, jitter, err, part)
					}
				}
			}
		}
	}
	if _, err := parse(t, "exp:1s", "full").With("buckets:3", ""); !errors.Is(err, errOwnRandomness) {
		t.Errorf("a given jitter that does not fit the new curve: got %v, want %v", err, errOwnRandomness)
	}
}

func TestWithErrors(t *testing.T) {
	s := parse(t, "exp:1s", "full")
	for _, with := range [][2]string{{"exp:", ""}, {"exp:", "full"}, {"", "ful"}, {"exp:2s", "ful"}} {
		if got, err := s.With(with[0], with[1]); err == nil || got.Curve() != "constant:0s" {
			t.Errorf("With(%q, %q): got %s, error %v, want the zero Spec and an error", with[0], with[1], got.Curve(),
				err)
		}
	}
	if s.Curve() != "exp:1s" || s.Jitter() != "full" {
		t.Errorf("receiver of With: got %s/%s, want exp:1s/full", s.Curve(), s.Jitter())
	}
}

func TestBounds(t *testing.T) {
	for _, row := range []struct {
		curve, jitter string
		n             int
		least, most   float64
	}{
		{"exp:10s", "phase", 0, 5, 15},
		{"exp:10s", "phase", 1, 5, 15},
		{"exp:10s", "phase", 2, 10, 20},
		{"exp:10s..12s", "phase", 1, 2, 12},
		{"exp:10s..12s", "phase", 9, 9.6, 12},
		{"list:10s,5s", "phase", 2, 5, 10},
		{"exp:10s..10s", "30%", 1, 4, 10},
		{"exp:1s", "decorrelated", 1, 1, 1},
		{"exp:1s", "decorrelated", 2, 1, 3},
		{"exp:1s", "decorrelated", 4, 1, 27},
		{"exp:1s..20s", "decorrelated", 4, 1, 20},
		{"exp:1s", "decorrelated", 1e9, 1, maxSeconds},
		{"constant:0", "decorrelated", 1e9, 0, 0},
		{"buckets:3", "none", 2, 1, 27},
		{"buckets:3", "add:1s..5s", 2, 2, 32},
		{"sidekiq", "add:5s", 1, 15, 29},
		{"exp:1s", "full", math.MaxInt, 0, maxSeconds},
	} {
		if least, most := parse(t, row.curve, row.jitter).Bounds(row.n); least != sec(row.least) ||
			most != sec(row.most) {
			t.Errorf("%s/%s: bounds of delay %d: got [%v, %v], want [%v, %v]",
				row.curve, row.jitter, row.n, least, most, sec(row.least), sec(row.most))
		}
	}
}

// The zero Spec waits 0, and With completes it.
func TestZeroSpec(t *testing.T) {
	var s Spec
	least, most := s.Bounds(3)
	if s.Curve() != "constant:0s" || s.Jitter() != "none" || s.Base(3)+s.Delay(3, Chance{})+least+most != 0 {
		t.Errorf("the zero Spec: got %s/%s, want constant:0s/none", s.Curve(), s.Jitter())
	}
	got, err := s.With("exp:1s", "")
	if err != nil || got.Jitter() != "phase" || got.Base(2) != 2*time.Second {
		t.Errorf("the zero Spec with exp:1s: got %s/%s, error %v, want exp:1s/phase", got.Curve(), got.Jitter(), err)
	}
	if got, err = s.With("", "full"); err != nil || got.Jitter() != "full" {
		t.Errorf("the zero Spec with full: got %s/%s, error %v, want constant:0s/full", got.Curve(), got.Jitter(), err)
	}
}

func BenchmarkDelay(b *testing.B) {
	for _, curve := range []string{"exp:1s..1h", "fib:1s..1h", "sidekiq"} {
		s := parse(b, curve, "")
		b.Run(curve, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Delay(7, Chance{Phase: 0.3})
			}
		})
	}
}

// A float of nanoseconds is exact for 104 days. Past that, d(1) must still be what was written, and the cap must hold.
func TestNanosecondsPastAFloat(t *testing.T) {
	const d = 200*24*time.Hour + 3
	txt := "exp:" + text.FormatDuration(d)
	if got := parse(t, txt, "none").Base(1); got != d {
		t.Errorf("%s: d(1): got %d, want %d", txt, got, d)
	}
	if got := parse(t, txt+".."+text.FormatDuration(d), "full").Delay(1, Chance{Rand: always(1)}); got != d {
		t.Errorf("%s with the same cap: got %d, want %d", txt, got, d)
	}
}

// pinned is a preset as its original has it. The figures were worked out from the originals' formulas, not by this
// package.
type pinned struct {
	curve, jitter string
	attempts      int
	delays        [10][3]float64 // of the first ten retries: base, least, most, in seconds
	window        [3]float64     // of all its retries: least, mean, most, in seconds
}

var originals = map[string]pinned{
	"sidekiq": {"sidekiq", "none", 26, [10][3]float64{
		{15, 15, 24}, {16, 16, 34}, {31, 31, 58}, {96, 96, 132}, {271, 271, 316},
		{640, 640, 694}, {1311, 1311, 1374}, {2416, 2416, 2488}, {4111, 4111, 4192}, {6576, 6576, 6666},
	}, [3]float64{1763395, 1764857.5, 1766320}}, // 20.4 days
	"zizq": {"poly:15s+n^4", "add:30s*n", 26, [10][3]float64{
		{16, 16, 46}, {31, 31, 91}, {96, 96, 186}, {271, 271, 391}, {640, 640, 790},
		{1311, 1311, 1491}, {2416, 2416, 2626}, {4111, 4111, 4351}, {6576, 6576, 6846}, {10015, 10015, 10315},
	}, [3]float64{2154020, 2158895, 2163770}}, // 25.0 days
	"aws": {"exp:1s..20s", "full", 3, [10][3]float64{
		{1, 0, 1}, {2, 0, 2}, {4, 0, 4}, {8, 0, 8}, {16, 0, 16}, {20, 0, 20}, {20, 0, 20}, {20, 0, 20}, {20, 0, 20},
		{20, 0, 20},
	}, [3]float64{0, 1.5, 3}},
	"grpc": {"exp:1s*1.6..2m", "20%", 5, [10][3]float64{
		{1, 0.8, 1.2}, {1.6, 1.28, 1.92}, {2.56, 2.048, 3.072}, {4.096, 3.2768, 4.9152}, {6.5536, 5.24288, 7.86432},
		{10.48576, 8.388608, 12.582912}, {16.777216, 13.4217728, 20.1326592}, {26.8435456, 21.47483648, 32.21225472},
		{42.94967296, 34.359738368, 51.539607552}, {68.719476736, 54.975581389, 82.463372083},
	}, [3]float64{7.4048, 9.256, 11.1072}},
	"lock-busy": {"constant:500ms", "30%", 100, [10][3]float64{
		{0.5, 0.35, 0.65}, {0.5, 0.35, 0.65}, {0.5, 0.35, 0.65}, {0.5, 0.35, 0.65}, {0.5, 0.35, 0.65},
		{0.5, 0.35, 0.65}, {0.5, 0.35, 0.65}, {0.5, 0.35, 0.65}, {0.5, 0.35, 0.65}, {0.5, 0.35, 0.65},
	}, [3]float64{34.65, 49.5, 64.35}},
}

func TestPresetsReproduceTheirOriginals(t *testing.T) {
	for _, p := range Presets() {
		want := originals[p.Name]
		if p.Curve != want.curve || p.Jitter != want.jitter || p.Attempts != want.attempts || p.Source == "" {
			t.Errorf("%s: got %+v, want %+v", p.Name, p, want)
		}
		s := parse(t, p.Name, "")
		if s.Curve() != want.curve || s.Jitter() != want.jitter {
			t.Errorf("%s: got %s/%s, want %s/%s", p.Name, s.Curve(), s.Jitter(), want.curve, want.jitter)
		}
		for i, d := range want.delays {
			least, most := s.Bounds(i + 1)
			if base := s.Base(i + 1); base != sec(d[0]) || least != sec(d[1]) || most != sec(d[2]) {
				t.Errorf("%s: delay %d: got %v in [%v, %v], want %v s", p.Name, i+1, base, least, most, d)
			}
		}
		if least, mean, most := window(s, want.attempts-1); least != want.window[0] || mean != want.window[1] ||
			most != want.window[2] {
			t.Errorf("%s: window: got %v, %v, %v s, want %v s", p.Name, least, mean, most, want.window)
		}
	}
}

// window adds up the delays of the retries, in seconds to the microsecond. Every preset spreads its delays evenly about
// the middle of their bounds, so that the mean is the middle.
func window(s Spec, retries int) (least, mean, most float64) {
	var low, high time.Duration
	for n := 1; n <= retries; n++ {
		a, b := s.Bounds(n)
		low, high = low+a, high+b
	}
	round := func(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
	return round(low), round((low + high) / 2), round(high)
}

func TestPresetsAreFreshAndInOrder(t *testing.T) {
	first := Presets()
	for i, name := range []string{"sidekiq", "zizq", "aws", "grpc", "lock-busy"} {
		if first[i].Name != name || len(first) != 5 {
			t.Errorf("preset %d of %d: got %s, want %s", i, len(first), first[i].Name, name)
		}
	}
	first[0].Curve = "constant:0s"
	if got := parse(t, "sidekiq", "").Curve(); got != "sidekiq" {
		t.Errorf("sidekiq after a change by a caller: got %s, want sidekiq", got)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, of := range []struct{ curve, jitter string }{
		{"exp:1s..1m", ""}, {"constant:0", "none"}, {"poly:15s+n^4", "add:30s*n"}, {"list:1s,5s,1m", "30%"},
		{"sidekiq", ""},
	} {
		b.Run(of.curve+" "+of.jitter, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(of.curve, of.jitter); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseDuration(b *testing.B) {
	for _, txt := range []string{"90", "1h30m", "2d"} {
		b.Run(txt, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := text.ParseDuration(txt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
