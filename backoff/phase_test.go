package backoff

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/10f93571/retry/internal/text"
)

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

		// A list that falls: r < 1, and the wait runs from the longer delay to the shorter.
		{"list:10s,2.5s", 1, [3]float64{5, 11.666666667, 15}},
		{"list:10s,2.5s", 2, [3]float64{10, 5, 2.5}},

		// Where one of the two is 0 the way between them is linear.
		{"list:0s,10s", 1, [3]float64{0, 0, 0}},
		{"list:0s,10s", 2, [3]float64{0, 5, 10}},
		{"list:10s,0s", 1, [3]float64{5, 10, 15}},
		{"list:10s,0s", 2, [3]float64{10, 5, 0}},

		// The first wait reaches to 1.5·d(1): under a cap its whole span moves down.
		{"exp:10s..12.1s", 1, [3]float64{2.1, 6.861904762, 12.1}},
		{"exp:10s..10s", 1, [3]float64{0, 5, 10}},
		{"exp:10s..15s", 1, [3]float64{5, 9.494897428, 15}},
		{"exp:10s..12.1s", 2, [3]float64{10, 11, 12.1}},
	} {
		s := parse(t, row.curve, "")
		for i, u := range []float64{0, 0.5, justUnder} {
			got := s.Delay(row.n, Chance{Phase: u, Rand: always(0.9)})
			if got != sec(row.want[i]) {
				t.Errorf("%s: delay %d at phase %v = %v; want %v", row.curve, row.n, u, got, sec(row.want[i]))
			}
		}
	}
}

// Where d(n) = d(n−1) the phase counts for nothing and chance parts neighbours.
func TestPhaseOnTheFlat(t *testing.T) {
	for curve, n := range map[string]int{
		"constant:10s": 2, "exp:1s..10s": 6, "list:1s,10s": 3, "exp:10s*1": 7, "fib:10s": 2, "exp:10s..10s": 2,
	} {
		s := parse(t, curve, "")
		for random, want := range map[float64]float64{0: 8, 0.5: 9, justUnder: 10} {
			for _, u := range []float64{0, 0.7, justUnder} {
				if got := s.Delay(n, Chance{Phase: u, Rand: always(random)}); got != sec(want) {
					t.Errorf("%s: delay %d at %v = %v; want %v", curve, n, random, got, sec(want))
				}
			}
		}
	}
}

// The promise of phase: on a geometric curve all the retries of all the tasks, in the order of time, are evenly spread
// on a logarithmic axis, with no gap and no seam where one wave ends and the next begins. The axis starts at
// d(1)·(½ − 1/(r − 1)): seen from there, each retry is r^(1/tasks) times as late as the one before it.
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
				t.Fatalf("retry %d of phase %v comes %v times as late as retry %d of phase %v; want %v",
					b.n, b.phase, got, a.n, a.phase, step)
			}
			if i%tasks == 0 && (a.n != i/tasks || b.n != i/tasks+1) {
				t.Fatalf("after %d retries wave %d gives way to wave %d", i, a.n, b.n)
			}
		}
	})
}

type retryTime struct {
	at    time.Duration
	n     int
	phase float64
}

// retryTimes are the retries of tasks that failed together, their phases evenly spread.
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

// geometric must not lose its digits where the curve is all but flat.
func TestGeometricNearOne(t *testing.T) {
	for _, r := range []time.Duration{1, 10, 1000, 1e6} {
		got := geometric(1e15, 1e15+r, 0.5)
		want := 0.5 - float64(r)/1e15/8 // (r^½ − 1)/(r − 1) = ½ − (r − 1)/8 + …
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("r = 1 + %de-15: %.15f; want %.15f", r, got, want)
		}
	}
	if got := geometric(364*24*time.Hour, 364*24*time.Hour+1, 0.3); got != 0.3 { // a difference that a float can't see
		t.Errorf("a nanosecond more than 364 days: %v; want 0.3", got)
	}
}
