package backoff

import (
	"math"
	"testing"
	"time"
)

// pinned is a preset as its original has it. The figures were worked out from the originals' formulas, not by this package.
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
		{1, 0, 1}, {2, 0, 2}, {4, 0, 4}, {8, 0, 8}, {16, 0, 16}, {20, 0, 20}, {20, 0, 20}, {20, 0, 20}, {20, 0, 20}, {20, 0, 20},
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
			t.Errorf("%s is %+v", p.Name, p)
		}
		s := parse(t, p.Name, "")
		if s.Curve() != want.curve || s.Jitter() != want.jitter {
			t.Errorf("%s is parsed as %s/%s; want %s/%s", p.Name, s.Curve(), s.Jitter(), want.curve, want.jitter)
		}
		for i, d := range want.delays {
			least, most := s.Bounds(i + 1)
			if base := s.Base(i + 1); base != sec(d[0]) || least != sec(d[1]) || most != sec(d[2]) {
				t.Errorf("%s: delay %d is %v in [%v, %v]; want %v s", p.Name, i+1, base, least, most, d)
			}
		}
		if least, mean, most := window(s, want.attempts-1); least != want.window[0] || mean != want.window[1] || most != want.window[2] {
			t.Errorf("%s: its window is %v, %v, %v s; want %v s", p.Name, least, mean, most, want.window)
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
			t.Errorf("preset %d of %d is %s; want %s", i, len(first), first[i].Name, name)
		}
	}
	first[0].Curve = "constant:0s"
	if got := parse(t, "sidekiq", "").Curve(); got != "sidekiq" {
		t.Errorf("a caller's change reached the presets: sidekiq is %s", got)
	}
}
