package picture

import (
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

// Waits that hardly grow are even in time, and stay so; those that grow, or lie far apart, need a logarithmic axis.
func TestTimeAxis(t *testing.T) {
	for _, tt := range []struct {
		specs []string
		log   bool
	}{
		{[]string{"constant:5s"}, false},
		{[]string{"constant:500ms/30%"}, false},
		{[]string{"exp:1s..1m"}, true},
		{[]string{"constant:5s", "exp:1s..1m"}, true},
		{[]string{"constant:1s", "constant:10s"}, false},
		{[]string{"constant:1s", "constant:1h"}, true},
		{[]string{"constant:0s"}, false},
	} {
		a := timeAxis(studies(t, 20, 12, tt.specs...))
		if a.Log != tt.log || a.Most <= a.Least {
			t.Errorf("%v: %+v", tt.specs, a)
		}
	}
}

func TestDelayAxis(t *testing.T) {
	for spec, want := range map[string]plot.Axis{
		"constant:5s/none": {Most: 5 * time.Second},
		"exp:1s..30s/none": {Most: 30 * time.Second},
		"exp:1s..2m/none":  {Least: time.Second, Most: 2 * time.Minute, Log: true},
		"constant:0s/none": {Most: time.Second},
	} {
		if got := delayAxis(studies(t, 10, 10, spec)); got != want {
			t.Errorf("%s: %+v, want %+v", spec, got, want)
		}
	}
	full := studies(t, 1000, 8, "exp:10s/full")
	if a := delayAxis(full); a.Least > full[0].Retries[0].Mean/3 {
		t.Errorf("a band that goes down to 0 has no room below its line: %+v", a)
	}
	decorrelated := studies(t, 10, 20, "exp:1s/decorrelated")
	if a := delayAxis(decorrelated); a.Most > clipped*decorrelated[0].Retries[19].Base {
		t.Errorf("a band without an end presses the line down: %+v", a)
	}
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
		shortest := min(time.Second, a.Most/20)
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
		edges := edgesOf(timeAxis([]plot.Study{s}))
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
