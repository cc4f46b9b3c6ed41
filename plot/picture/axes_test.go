package picture

import (
	"slices"
	"testing"
	"time"

	"github.com/10f93571/retry/plot"
)

func studies(t *testing.T, tasks, retries int, specs ...string) (all []plot.Study) {
	t.Helper()
	for _, s := range specs {
		all = append(all, study(t, s, tasks, retries))
	}
	return all
}

func TestRates(t *testing.T) {
	flat, steep := rates{}.with(3).with(0).with(12), rates{}.with(0.004).with(800)
	if flat.log() || flat.place(0) != 0 || flat.place(6) != 0.5 || flat.place(12) != 1 {
		t.Errorf("%+v is not even from 0", flat)
	}
	if !steep.log() || steep.floor() != 0.001 || steep.place(0.004) <= 0 || steep.place(800) != 1 {
		t.Errorf("%+v does not show its least", steep)
	}
	for rate, want := range map[float64]string{0: "0", 0.5: "0.5", 20: "20", 1e-5: "1e-5", 5e8: "5e8"} {
		if got := rateText(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}

// A load is counted by seconds: no bin is shorter, unless all is over in a few.
func TestBins(t *testing.T) {
	for _, a := range []plot.Axis{{Most: time.Minute}, {Least: time.Second, Most: time.Hour, Log: true}, {Least: 1, Most: year, Log: true}, {Most: 2 * time.Second}, {Most: 1}} {
		edges := edgesOf(a)
		shortest := min(time.Second, a.Most/40)
		for i := 1; i < len(edges); i++ {
			if edges[i]-edges[i-1] < shortest {
				t.Errorf("%+v: bin %d goes from %s to %s", a, i, edges[i-1], edges[i])
			}
		}
		if edges[len(edges)-1] <= a.Most {
			t.Errorf("%+v: the last retry is in no bin", a)
		}
	}
}

// All retries are in the load that is drawn.
func TestLoadIsWhole(t *testing.T) {
	for _, s := range studies(t, 100, 8, "exp:10s/full", "constant:5s", "exp:1s..1m", "exp:10s/none", "constant:5s/none") {
		edges := edgesOf(plot.TimeAxis([]plot.Study{s}))
		sum := 0.0
		for i, rate := range s.Load.Rates(edges) {
			sum += rate * (edges[i+1] - edges[i]).Seconds()
		}
		if sum < 0.97*800 || sum > 800.1 { // full jitter has a few before the axis begins
			t.Errorf("%s: %.1f retries, want 800", s.Subject.Label, sum)
		}
	}
}

// A single retry has a band that can be seen.
func TestSingleRetry(t *testing.T) {
	for _, s := range drawn(studies(t, 10, 1, "exp:1s/full")).shapes {
		if a, ok := s.(area); ok && (a.bounds().width() < 10 || a.bounds().height() < 10) {
			t.Errorf("the band covers %+v", a.bounds())
		}
	}
}

// Where all retries fall on one pixel, the latest is seen.
func TestLatestRetryIsSeen(t *testing.T) {
	for _, s := range drawn(studies(t, 3, 4, "constant:0s")).shapes {
		if d, ok := s.(dots); ok && d.fill >= roles && len(d.points) > 1 && d.fill != shade(4, 4) {
			t.Errorf("%d dots have the ink %d", len(d.points), d.fill)
		}
	}
}

// Waves of as many retries look alike: neither is one cut in two, nor is the last one lower.
func TestWavesLookAlike(t *testing.T) {
	for _, spec := range []string{"constant:5s/none", "constant:7s/none", "constant:3m/none"} {
		var rates []float64
		s := study(t, spec, 10, 8)
		for _, b := range loadOf(s, plot.TimeAxis([]plot.Study{s})) {
			if b.rate > 0 {
				rates = append(rates, b.rate)
			}
		}
		if len(rates) != 8 || slices.Max(rates) > 1.5*slices.Min(rates) {
			t.Errorf("%s: the waves are %.2f", spec, rates)
		}
	}
}
