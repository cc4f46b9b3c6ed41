package backoff

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/text"
)

func TestJitter(t *testing.T) {
	for _, row := range []struct {
		curve, jitter string
		n             int
		prev          time.Duration
		want          [3]float64 // seconds, where the random number is 0, 0.5 and just under 1
	}{
		{"constant:10s", "none", 3, 0, [3]float64{10, 10, 10}},
		{"constant:10s", "full", 3, 0, [3]float64{0, 5, 10}},
		{"constant:10s", "equal", 3, 0, [3]float64{5, 7.5, 10}},
		{"constant:10s", "30%", 3, 0, [3]float64{7, 10, 13}},
		{"constant:10s", "±30%", 3, 0, [3]float64{7, 10, 13}},
		{"constant:10s", "100%", 3, 0, [3]float64{0, 10, 20}},
		{"constant:10s", "0.5%", 3, 0, [3]float64{9.95, 10, 10.05}},
		{"constant:10s", "add:5s", 3, 0, [3]float64{10, 12.5, 15}},
		{"constant:10s", "add:1s..5s", 3, 0, [3]float64{11, 13, 15}},
		{"constant:10s", "add:30s*n", 1, 0, [3]float64{10, 25, 40}},
		{"constant:10s", "add:30s*n", 3, 0, [3]float64{10, 55, 100}},
		{"constant:10s", "add:1s..5s*n", 2, 0, [3]float64{12, 16, 20}},
		{"constant:10s", "add:0", 2, 0, [3]float64{10, 10, 10}},
		{"exp:1s", "full", 4, 0, [3]float64{0, 4, 8}},

		{"exp:1s", "decorrelated", 1, 0, [3]float64{1, 1, 1}},
		{"exp:1s", "decorrelated", 1, time.Hour, [3]float64{1, 1, 1}},
		{"exp:1s", "decorrelated", 2, time.Second, [3]float64{1, 2, 3}},
		{"exp:1s", "decorrelated", 2, 0, [3]float64{1, 2, 3}},
		{"exp:1s", "decorrelated", 5, 10 * time.Second, [3]float64{1, 15.5, 30}},
		{"exp:1s..20s", "decorrelated", 5, 10 * time.Second, [3]float64{1, 10.5, 20}},
		{"exp:1s..20s", "decorrelated", 5, math.MaxInt64, [3]float64{1, 10.5, 20}},
		{"list:1s,9s", "decorrelated", 3, 10 * time.Second, [3]float64{1, 15.5, 30}},
		{"exp:1s", "decorrelated", 5, 100 * time.Millisecond, [3]float64{1, 1, 1}},
		{"constant:0", "decorrelated", 5, 0, [3]float64{0, 0, 0}},

		// With a cap the whole span moves down until it ends there, and keeps its width.
		{"exp:10s..10s", "30%", 1, 0, [3]float64{4, 7, 10}},
		{"exp:10s..12s", "50%", 1, 0, [3]float64{2, 7, 12}},
		{"exp:10s..14s", "50%", 1, 0, [3]float64{4, 9, 14}},
		{"exp:10s..15s", "50%", 1, 0, [3]float64{5, 10, 15}},
		{"exp:10s..10s", "100%", 1, 0, [3]float64{0, 5, 10}},
		{"exp:10s..10s", "full", 1, 0, [3]float64{0, 5, 10}},
		{"exp:10s..10s", "equal", 1, 0, [3]float64{5, 7.5, 10}},
		{"exp:10s..10s", "none", 1, 0, [3]float64{10, 10, 10}},
		{"exp:10s..10s", "add:5s", 1, 0, [3]float64{10, 10, 10}},
		{"exp:10s..12s", "add:1s..5s", 1, 0, [3]float64{11, 11.5, 12}},
		{"exp:10s..10s", "add:1d..1d", 1, 0, [3]float64{10, 10, 10}},
		{"exp:10s..20s", "add:20s", 1, 0, [3]float64{10, 15, 20}},
		{"exp:10s..20s", "add:5s*n", 1e9, 0, [3]float64{20, 20, 20}},
		{"exp:10s..20s", "add:100000d..100000d*n", math.MaxInt, 0, [3]float64{20, 20, 20}},

		// Without a cap the span is cut off at Max.
		{"constant:400d", "30%", 1, 0, [3]float64{0.7 * maxSeconds, 0.85 * maxSeconds, maxSeconds}},
		{"constant:165d", "add:300d", 1, 0, [3]float64{165 * 86400, 265 * 86400, maxSeconds}},
		{"constant:1s", "add:400d..401d*n", math.MaxInt, 0, [3]float64{maxSeconds, maxSeconds, maxSeconds}},
		{"constant:0", "decorrelated", 5, math.MaxInt64, [3]float64{0, 0.5 * maxSeconds, maxSeconds}},

		// Random curves: buckets are continuous, Sidekiq's rand(10) is a whole number.
		{"buckets:3", "none", 1, 0, [3]float64{0, 4, 8}},
		{"buckets:3", "none", 2, 0, [3]float64{1, 14, 27}},
		{"buckets:3", "add:5s", 2, 0, [3]float64{1, 16.5, 32}},
		{"sidekiq", "none", 1, 0, [3]float64{15, 20, 24}},
		{"sidekiq", "none", 3, 0, [3]float64{31, 46, 58}},
		{"sidekiq", "add:2s..4s", 3, 0, [3]float64{33, 49, 62}},
	} {
		s := parse(t, row.curve, row.jitter)
		for i, random := range []float64{0, 0.5, justUnder} {
			got := s.Delay(row.n, Chance{Phase: 0.3, Prev: row.prev, Rand: always(random)})
			if want := sec(row.want[i]); (got - want).Abs() > want/1e15 { // exact, but for what a float loses in months
				t.Errorf("%s/%s: delay %d at %v: got %v, want %v",
					row.curve, row.jitter, row.n, random, got, sec(row.want[i]))
			}
		}
	}
}

func TestSidekiqDrawsWholeNumbers(t *testing.T) {
	s := parse(t, "sidekiq", "")
	for i := range 1000 {
		got := s.Delay(2, Chance{Rand: always(float64(i) / 1000)})
		if want := sec(16 + float64(2*(i/100))); got != want {
			t.Errorf("rand %d/1000: got %v, want %v", i, got, want)
		}
	}
}

// A random number out of range must not make a bad delay.
func TestChanceIsForcedIntoRange(t *testing.T) {
	for _, jitter := range []string{"full", "phase"} {
		s := parse(t, "constant:10s", jitter)
		least, most := s.Bounds(1)
		for x, want := range map[float64]time.Duration{-1: least, math.Inf(-1): least, 2: most, math.Inf(1): most} {
			if got := s.Delay(1, Chance{Phase: x, Rand: always(x)}); got != want {
				t.Errorf("%s at %v: got %v, want %v", jitter, x, got, want)
			}
		}
		if got := s.Delay(1, Chance{Phase: math.NaN(), Rand: always(math.NaN())}); got != least {
			t.Errorf("%s at NaN: got %v, want %v", jitter, got, least)
		}
	}
	if got := parse(t, "constant:10s", "full").Delay(1, Chance{}); got != 5*time.Second {
		t.Errorf("without a Rand: got %v, want the middle", got)
	}
}

func TestCanonicalJitter(t *testing.T) {
	for text, want := range map[string]string{
		"none": "none", "full": "full", "equal": "equal", "decorrelated": "decorrelated", "phase": "phase",
		"30%": "30%", "±30%": "30%", "0.50%": "0.5%", "100%": "100%",
		"add:5": "add:5s", "add:0..5s": "add:5s", "add:1s..5s": "add:1s..5s", "add: 1s .. 60s": "add:1s..1m",
		"add:30s*n": "add:30s*n", "add:1s..5s*n": "add:1s..5s*n", "add:0": "add:0s",
	} {
		if got := parse(t, "exp:1s", text).Jitter(); got != want {
			t.Errorf("jitter %q: got %q, want %q", text, got, want)
		}
	}
}

func TestJitterErrors(t *testing.T) {
	for _, row := range []struct{ text, reason, hint string }{
		{"0%", "must be above 0 and at most 100", "30%"},
		{"100.1%", "must be above 0 and at most 100", "30%"},
		{"-5%", `the percentage "-5" is not a plain decimal number`, "30%"},
		{"%", "the percentage is missing", "30%"},
		{"±%", "the percentage is missing", "30%"},
		{"nan%", "is not a plain decimal number", "30%"},
		{"add:", "the delay is missing", "add:5s"},
		{"add:-5s", `the delay "-5s" is negative`, "add:5s"},
		{"add:5s..1s", "1s is below 5s", "add:1s..5s"},
		{"add:..5s", "the delay is missing", "add:1s..5s"},
		{"add:*n", "the delay is missing", "add:30s*n"},
		{"add:30s*m", `unknown unit "s*m"`, "add:30s*n"},
		{"fulll", "there is no such jitter", "did you mean full?"},
		{"Phase", "there is no such jitter", "did you mean phase?"},
		{"decor", "there is no such jitter", "did you mean decorrelated?"},
		{"add", "there is no such jitter", "did you mean add:5s?"},
		{"30", "there is no such jitter", "did you mean 30%?"},
		{"gaussian", "there is no such jitter", "write none, full, equal, decorrelated, phase, 30% or add:5s"},
	} {
		_, err := Parse("exp:1s", row.text)
		wantError(t, row.text, err, "parse jitter ", row.reason, row.hint)
	}
}

// The coefficients of variation that SPEC 2.2 promises, per retry; the last holds for all later ones.
func TestVariation(t *testing.T) {
	for _, row := range []struct {
		curve, jitter string
		want          map[int]float64
	}{
		{"exp:10s", "phase", map[int]float64{1: 0.31, 2: 0.20, 5: 0.20, 8: 0.20}},
		{"exp:10s", "full", map[int]float64{1: 0.58, 2: 0.58, 8: 0.58}},
		{"exp:10s", "equal", map[int]float64{1: 0.19, 2: 0.19, 8: 0.19}},
		{"sidekiq", "", map[int]float64{1: 0.15, 2: 0.23, 8: 0.01}},
		{"exp:10s", "none", map[int]float64{1: 0, 8: 0}},
	} {
		s := parse(t, row.curve, row.jitter)
		for n, want := range row.want {
			// Half of the last digit given, and the error of 20,000 samples.
			if got := variation(s, n); math.Abs(got-want) > 0.0075 {
				t.Errorf("%s/%s: variation of wait %d: got %.4f, want %.2f", row.curve, row.jitter, n, got, want)
			}
		}
	}
}

func variation(s Spec, n int) float64 {
	const samples = 20_000
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var sum, squares float64
	for range samples {
		x := s.Delay(n, Chance{Phase: random.Float64(), Rand: random.Float64}).Seconds()
		sum, squares = sum+x, squares+x*x
	}
	mean := sum / samples
	return math.Sqrt(max(squares/samples-mean*mean, 0)) / mean
}

// At the cap the delays must be spread evenly over the moved span: no tenth may hold more than its share.
func TestDelaysAtTheCapAreSpread(t *testing.T) {
	s := parse(t, "exp:10s..10s", "30%")
	var tenths [10]int
	const samples = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	for range samples {
		d := s.Delay(3, Chance{Rand: random.Float64})
		tenths[min(int((d.Seconds()-4)/0.6), 9)]++
	}
	for i, count := range tenths {
		if count < 1800 || count > 2200 {
			t.Errorf("tenth %d: got %d of %d delays, want 1800 to 2200", i, count, samples)
		}
	}
}

func TestPhase(t *testing.T) {
	for _, row := range []struct {
		curve string
		n     int
		want  [3]float64 // seconds, at the phases 0, 0.5 and just under 1
	}{
		{"exp:10s", 1, [3]float64{5, 9.142135624, 15}},
		{"exp:10s", 2, [3]float64{10, 14.142135624, 20}},
		{"exp:10s", 3, [3]float64{20, 28.284271247, 40}},
		{"exp:10s*1.21", 2, [3]float64{10, 11, 12.1}},
		{"constant:10s", 1, [3]float64{5, 10, 15}},
		{"constant:0", 1, [3]float64{0, 0, 0}},
		{"constant:0", 2, [3]float64{0, 0, 0}},
		{"linear:4s+5s", 2, [3]float64{4, 6, 9}},

		// With a falling list r < 1, and the wait lies between the longer delay and the shorter.
		{"list:10s,2.5s", 1, [3]float64{5, 11.666666667, 15}},
		{"list:10s,2.5s", 2, [3]float64{10, 5, 2.5}},

		// If one of the two is 0, the wait between them is linear.
		{"list:0s,10s", 1, [3]float64{0, 0, 0}},
		{"list:0s,10s", 2, [3]float64{0, 5, 10}},
		{"list:10s,0s", 1, [3]float64{5, 10, 15}},
		{"list:10s,0s", 2, [3]float64{10, 5, 0}},

		// The first wait is up to 1.5·d(1): with a cap its whole span moves down.
		{"exp:10s..12.1s", 1, [3]float64{2.1, 6.861904762, 12.1}},
		{"exp:10s..10s", 1, [3]float64{0, 5, 10}},
		{"exp:10s..15s", 1, [3]float64{5, 9.494897428, 15}},
		{"exp:10s..12.1s", 2, [3]float64{10, 11, 12.1}},
	} {
		s := parse(t, row.curve, "phase")
		for i, u := range []float64{0, 0.5, justUnder} {
			got := s.Delay(row.n, Chance{Phase: u, Rand: always(0.9)})
			if got != sec(row.want[i]) {
				t.Errorf("%s: delay %d at phase %v: got %v, want %v", row.curve, row.n, u, got, sec(row.want[i]))
			}
		}
	}
}

// If d(n) = d(n−1), the phase has no effect, and random numbers spread the tasks.
func TestPhaseOnTheFlat(t *testing.T) {
	for curve, n := range map[string]int{
		"constant:10s": 2, "exp:1s..10s": 6, "list:1s,10s": 3, "exp:10s*1": 7, "fib:10s": 2, "exp:10s..10s": 2,
	} {
		s := parse(t, curve, "phase")
		for random, want := range map[float64]float64{0: 8, 0.5: 9, justUnder: 10} {
			for _, u := range []float64{0, 0.7, justUnder} {
				if got := s.Delay(n, Chance{Phase: u, Rand: always(random)}); got != sec(want) {
					t.Errorf("%s: delay %d at %v: got %v, want %v", curve, n, random, got, sec(want))
				}
			}
		}
	}
}

// On a geometric curve the retries of all tasks are evenly spread on a logarithmic axis, without a gap between two
// waves. The axis starts at d(1)·(½ − 1/(r − 1)): from there, each retry is r^(1/tasks) times as late as the one before.
func TestPhaseTiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Float64Range(1, 100).Draw(t, "first")
		r := rapid.Float64Range(1.1, 4).Draw(t, "r")
		tasks := rapid.IntRange(2, 40).Draw(t, "tasks")
		s := parse(t, "exp:"+text.FormatDuration(sec(first))+"*"+text.FormatNumber(r), "phase")

		times := retryTimes(s, tasks, 6)
		slices.SortFunc(times, func(a, b retryTime) int { return cmp.Compare(a.at, b.at) })
		origin := first * (0.5 - 1/(r-1))
		step := math.Pow(r, 1/float64(tasks))
		for i := 1; i < len(times); i++ {
			a, b := times[i-1], times[i]
			if got := (b.at.Seconds() - origin) / (a.at.Seconds() - origin); math.Abs(got-step) > 1e-6 {
				t.Fatalf("retry %d of phase %v after retry %d of phase %v: got %v times as late, want %v",
					b.n, b.phase, a.n, a.phase, got, step)
			}
			if i%tasks == 0 && (a.n != i/tasks || b.n != i/tasks+1) {
				t.Fatalf("after %d retries: got wave %d, then %d, want %d, then %d", i, a.n, b.n, i/tasks, i/tasks+1)
			}
		}
	})
}

type retryTime struct {
	at    time.Duration
	n     int
	phase float64
}

// retryTimes returns the retries of tasks that failed at the same time, with evenly spread phases.
func retryTimes(s Spec, tasks, retries int) []retryTime {
	var all []retryTime
	for i := range tasks {
		phase, at := float64(i)/float64(tasks), time.Duration(0)
		for n := 1; n <= retries; n++ {
			at += s.Delay(n, Chance{Phase: phase})
			all = append(all, retryTime{at, n, phase})
		}
	}
	return all
}

// geometric must be exact for a curve that is almost flat.
func TestGeometricNearOne(t *testing.T) {
	for _, r := range []time.Duration{1, 10, 1000, 1e6} {
		got := geometric(1e15, 1e15+r, 0.5)
		want := 0.5 - float64(r)/1e15/8 // (r^½ − 1)/(r − 1) = ½ − (r − 1)/8 + …
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("r = 1 + %de-15: got %.15f, want %.15f", r, got, want)
		}
	}
	if got := geometric(364*24*time.Hour, 364*24*time.Hour+1, 0.3); got != 0.3 { // a difference that a float can't see
		t.Errorf("a nanosecond more than 364 days: got %v, want 0.3", got)
	}
}
