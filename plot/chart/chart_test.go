package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

// study simulates tasks under a spec such as "exp:1s/full".
func study(t *testing.T, spec string, tasks, retries int) plot.Study {
	t.Helper()
	curve, jitter, _ := strings.Cut(spec, "/")
	policy := task.DefaultPolicy()
	var err error
	if policy.Backoff, err = backoff.Parse(curve, jitter); err != nil {
		t.Fatal(err)
	}
	policy.Attempts = retries + 1
	s, err := plot.NewStudy(plot.Subject{Label: spec, Policy: policy}, plot.Options{Tasks: tasks, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func studies(t *testing.T, tasks, retries int, specs ...string) (all []plot.Study) {
	t.Helper()
	for _, s := range specs {
		all = append(all, study(t, s, tasks, retries))
	}
	return all
}

func linear(most time.Duration) Axis { return Axis{Most: float64(most)} }

func logarithmic(least, most time.Duration) Axis {
	return Axis{Least: float64(least), Most: float64(most), Log: true}
}

// An axis of any length has ticks, and not more than asked for but one.
func TestTimeTicks(t *testing.T) {
	for _, a := range []Axis{
		linear(1), linear(7 * time.Second), linear(time.Hour), linear(150 * year), linear(math.MaxInt64),
		logarithmic(time.Second, time.Hour), logarithmic(1, math.MaxInt64),
	} {
		for _, most := range []int{2, 5, 9} {
			ticks := a.TimeTicks(most)
			if len(ticks) == 0 || len(ticks) > most+1 {
				t.Errorf("%+v: got %d ticks, want at most %d", a, len(ticks), most)
			}
			for i, tick := range ticks {
				if tick.Place < 0 || tick.Place > 1 || i > 0 && tick.Place <= ticks[i-1].Place {
					t.Errorf("%+v: got ticks %v, want ascending ones from 0 to 1", a, ticks)
				}
			}
		}
	}
}

// Delays that hardly grow come evenly in time, on a linear axis; others, and windows that lie far apart, need a
// logarithmic one.
func TestTimeAxis(t *testing.T) {
	for _, tt := range []struct {
		specs []string
		log   bool
	}{
		{specs: []string{"constant:5s"}},
		{specs: []string{"constant:500ms/30%"}},
		{specs: []string{"exp:1s..1m"}, log: true},
		{specs: []string{"constant:5s", "exp:1s..1m"}, log: true},
		{specs: []string{"constant:1s", "constant:10s"}},
		{specs: []string{"constant:1s", "constant:1h"}, log: true},
		{specs: []string{"constant:0s"}},
	} {
		if got := timeAxis(studies(t, 20, 12, tt.specs...)); got.Log != tt.log || got.Most <= got.Least {
			t.Errorf("%v: got %+v, want logarithmic %v", tt.specs, got, tt.log)
		}
	}
	long := studies(t, 1, 999, "constant:5s/none")
	if got, want := timeAxis(long), linear(4995*time.Second); got != want {
		t.Errorf("many even delays: got %+v, want %+v", got, want)
	}
}

// An axis reaches the longest range, except where that grows without an end.
func TestDelayAxis(t *testing.T) {
	for spec, want := range map[string]Axis{
		"constant:5s/none": linear(5 * time.Second),
		"constant:5s/30%":  linear(6500 * time.Millisecond),
		"exp:1s..30s/none": linear(30 * time.Second),
		"exp:1s..2m/none":  logarithmic(time.Second, 2*time.Minute),
		"constant:0s/none": linear(time.Second),
	} {
		if got := delayAxis(studies(t, 10, 10, spec)); got != want {
			t.Errorf("%s: got %+v, want %+v", spec, got, want)
		}
	}
	full := studies(t, 1000, 8, "exp:10s/full")
	if got := delayAxis(full); got.Least > float64(full[0].Retries[0].Mean/3) {
		t.Errorf("got %+v, want room below the curve for a range down to 0", got)
	}
	decorrelated := studies(t, 10, 20, "exp:1s/decorrelated")
	if got := delayAxis(decorrelated); got.Most > float64(maxOverBase*decorrelated[0].Retries[19].Base) {
		t.Errorf("got %+v, want an end although the range has none", got)
	}
}

func TestRateAxis(t *testing.T) {
	for _, tt := range []struct {
		rates []float64
		want  Axis
	}{
		{rates: []float64{0, 3, 12}, want: Axis{Most: 12}},
		{rates: []float64{0.004, 800}, want: Axis{Least: 0.001, Most: 800, Log: true}},
		{rates: []float64{1, 1000}, want: Axis{Least: 0.1, Most: 1000, Log: true}},
		{rates: []float64{0}, want: Axis{}},
		{rates: []float64{1, 50, 60, 70, 100}, want: Axis{Most: 100}}, // a single low rate needs no logarithmic axis
		{rates: []float64{1, 1, 60, 70, 100}, want: Axis{Least: 0.1, Most: 100, Log: true}},
	} {
		got := rateAxis(tt.rates)
		if got.Log != tt.want.Log || got.Most != tt.want.Most || math.Abs(got.Least-tt.want.Least) > 1e-9 {
			t.Errorf("%v: got %+v, want %+v", tt.rates, got, tt.want)
		}
	}
	for _, a := range []Axis{{Most: 12}, {Least: 0.001, Most: 800, Log: true}, {Most: 0.03}} {
		ticks := a.RateTicks()
		if len(ticks) < 3 || len(ticks) > 8 || ticks[0].Place != 0 {
			t.Errorf("%+v: got ticks %v, want 3 to 8 from the begin", a, ticks)
		}
	}
}

func TestPlace(t *testing.T) {
	log := logarithmic(time.Second, 1024*time.Second)
	for _, tt := range []struct {
		axis Axis
		time time.Duration
		want float64
	}{
		{linear(10 * time.Second), 5 * time.Second, 0.5}, {linear(10 * time.Second), time.Hour, 1},
		{linear(10 * time.Second), 0, 0},
		{log, 32 * time.Second, 0.5}, {log, 0, 0}, {log, time.Hour, 1}, {Axis{}, time.Second, 0},
	} {
		if got := tt.axis.PlaceTime(tt.time); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%+v: %s: got %v, want %v", tt.axis, tt.time, got, tt.want)
		}
	}
}

// The load is counted by seconds: no bar is shorter, unless all is over in a few seconds.
func TestLoadEdges(t *testing.T) {
	for _, a := range []Axis{linear(time.Minute), logarithmic(time.Second, time.Hour), logarithmic(1, year),
		linear(2 * time.Second), linear(1)} {
		c := Chart{Time: a}
		edges, most := c.loadEdges(90), time.Duration(a.Most)
		shortest := min(time.Second, most/40)
		for i := 1; i < len(edges); i++ {
			if got := edges[i] - edges[i-1]; got < shortest {
				t.Errorf("%+v: bar %d: got %s, want at least %s", a, i, got, shortest)
			}
		}
		if got := edges[len(edges)-1]; got <= most {
			t.Errorf("%+v: got the last edge %s, want it after the last retry", a, got)
		}
	}
}

// The bars hold all retries, whatever the axis, early ones included.
func TestLoadIsComplete(t *testing.T) {
	for _, spec := range []string{"exp:10s/full", "constant:5s", "constant:0", "exp:1s..1m", "exp:10s/none",
		"constant:5s/none", "sidekiq", "lock-busy"} {
		for _, bars := range []int{70, 90} {
			c := New(studies(t, 100, 8, spec), bars)[0]
			edges, sum := c.loadEdges(bars), 0.0
			for i, b := range c.Load {
				sum += b.Rate * (edges[i+1] - edges[i]).Seconds()
			}
			if math.Abs(sum-800) > 1 {
				t.Errorf("%s: got %.1f retries in %d bars, want 800", spec, sum, bars)
			}
		}
	}
}

// Waves of equally many retries look alike: none is cut in two, and the last one is not lower.
func TestWavesLookAlike(t *testing.T) {
	for _, spec := range []string{"constant:5s/none", "constant:7s/none", "constant:3m/none"} {
		var rates []float64
		for _, b := range New(studies(t, 10, 8, spec), 90)[0].Load {
			if b.Rate > 0 {
				rates = append(rates, b.Rate)
			}
		}
		if len(rates) != 8 || slices.Max(rates) > 1.5*slices.Min(rates) {
			t.Errorf("%s: got waves %.2f, want 8 of one height", spec, rates)
		}
	}
}

// A short window still shows whether the retries come together.
func TestLoadOfShortWindow(t *testing.T) {
	idle := 0.0
	for _, b := range New(studies(t, 10, 8, "constant:100ms/none"), 73)[0].Load {
		if b.Rate == 0 {
			idle += b.To - b.From
		}
	}
	if idle < 0.5 {
		t.Errorf("got idle %.2f of the time, want at least half", idle)
	}
}

// Retries before the begin of a logarithmic axis are shown at its begin, and the label says so.
func TestEarly(t *testing.T) {
	for spec, want := range map[string]bool{"exp:10s/full": true, "exp:10s/none": false, "constant:5s/30%": false} {
		if got := New(studies(t, 1000, 8, spec), 90)[0].Early; strings.HasPrefix(got, "≤") != want ||
			strings.Contains(got, " ") {
			t.Errorf("%s: got label %q, want one: %v", spec, got, want)
		}
	}
}

// Studies share axes where enough of the shorter one is seen.
func TestComparable(t *testing.T) {
	for _, tt := range []struct {
		windows []time.Duration
		want    string
	}{
		{[]time.Duration{time.Minute}, "[[0]]"},
		{[]time.Duration{10 * time.Minute, time.Minute}, "[[0 1]]"},
		{[]time.Duration{11 * time.Minute, time.Minute}, "[[1] [0]]"},
		{[]time.Duration{time.Hour, time.Second, 20 * time.Minute, 2 * time.Second}, "[[1 3] [0 2]]"},
		{[]time.Duration{0, 0, time.Second}, "[[0 1] [2]]"},
	} {
		var all []plot.Study
		for _, w := range tt.windows {
			all = append(all, plot.Study{Window: plot.Window{Most: w}})
		}
		if got := fmt.Sprint(Comparable(all)); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.windows, got, tt.want)
		}
	}
	charts := NewComparable(studies(t, 5, 3, "constant:1m/none", "constant:1s/none", "constant:2m/none"), 90)
	if charts[0].Time != charts[2].Time || charts[0].Time == charts[1].Time ||
		charts[1].Study.Subject.Label != "constant:1s/none" {
		t.Errorf("got %+v, %+v and %+v, want the first and the last alike", charts[0].Time, charts[1].Time, charts[2].Time)
	}
}

func TestFormatRate(t *testing.T) {
	for rate, want := range map[float64]string{
		0: "0", 0.1: "0.1", 0.5: "0.5", 20: "20", 1e-5: "1e-5", 5e8: "5e8", 1e-6: "1e-6", 0.00212: "0.0021",
		0.00012: "1.2e-4", 22.34: "22.3", 999: "999",
		6400: "6400", 718296.4: "718296", 1.25e7: "1.2e7", 2.6e10: "2.6e10",
	} {
		if got := FormatRate(rate); got != want {
			t.Errorf("%v: got %s, want %s", rate, got, want)
		}
	}
}

func TestFigures(t *testing.T) {
	s := plot.Study{
		Window:  plot.Window{Least: 50 * time.Second, Mean: time.Minute, Most: 90 * time.Second},
		Load:    plot.Load{Peak: 12, Mean: 0.25, Idle: 0.115, Local: 2.153},
		Retries: []plot.Retry{{N: 1, CV: 0.311}, {N: 2, CV: 1.2}},
	}
	want := []Figure{
		{"Window: least · mean · most", "50 s · 1 · 1.5 min"},
		{"Load: peak · mean", "12/s · 0.25/s"},
		{"Seconds without a retry", "11.5 %"},
		{"Worst local load, 1 is even", "2.15"},
		{"CV of the wait, n = 1, 2 …", ".31 1.20"},
	}
	for i, got := range Figures(s) {
		if got != want[i] {
			t.Errorf("got  %+v\nwant %+v", got, want[i])
		}
	}
}

// The first four and the last are shown; what is left out is said.
func TestCVText(t *testing.T) {
	for n, want := range map[int]string{
		1: ".01", 4: ".01 .02 .03 .04", 5: ".01 .02 .03 .04 .05", 6: ".01 .02 .03 .04 … .06", 25: ".01 .02 .03 .04 … .25",
	} {
		var retries []plot.Retry
		for i := range n {
			retries = append(retries, plot.Retry{N: i + 1, CV: float64(i+1) / 100})
		}
		if got := formatCVs(retries); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// What is not all is not said to be all.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0 %", 0.0012: "0.12 %", 0.5: "50 %", 0.9994: "99.9 %",
		0.99999: "99.9 %", 1: "100 %"} {
		if got := percent(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
}

// What was not measured is no 0, which would look better than even.
func TestNothingMeasured(t *testing.T) {
	for i, got := range Figures(plot.Study{})[1:4] {
		if got.Value != "–" {
			t.Errorf("figure %d is %+v", i+1, got)
		}
	}
}

func TestFormatTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 3: "3 ns", 1500: "1.5 µs", 12 * time.Millisecond: "12 ms", 1234 * time.Millisecond: "1.23 s",
		90 * time.Second: "1.5 min",
		36 * time.Hour:   "1.5 d", 20*24*time.Hour + 10*time.Hour: "20.4 d", 2 * year: "2 y", math.MaxInt64: "292 y",
	} {
		if got := FormatTime(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.0012: "0.0012", 0.5: "0.5", 1: "1", 2.345: "2.35", 23.45: "23.4", 234.5: "234", 100: "100",
		123456: "123456", math.Inf(1): "0",
	} {
		if got := formatNumber(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

func TestOften(t *testing.T) {
	for rate, want := range map[float64]string{0: "0/s", 12: "12/s", 0.1: "0.1/s", 1.0 / 3600: "1/h",
		2.0 / 3600 / 24: "2/d"} {
		if got := rateWithUnit(rate); got != want {
			t.Errorf("%v: %q, want %q", rate, got, want)
		}
	}
}

func TestTogether(t *testing.T) {
	if got := formatTimes(90*time.Second, 2*time.Minute, 3*time.Minute); got != "1.5 · 2 · 3 min" {
		t.Errorf("one unit: %s", got)
	}
	if got := formatTimes(0, 50*time.Second, time.Minute); got != "0 · 50 s · 1 min" {
		t.Errorf("two units: %s", got)
	}
}

func TestSteps(t *testing.T) {
	for n, want := range map[int]string{1: "1", 3: "1 2 3", 25: "1 5 10 15 20 25", 99: "1 10 20 30 40 50 60 70 80 90",
		999: "1 100 200 300 400 500 600 700 800 900"} {
		got := ""
		for _, m := range CountTicks(n, 10) {
			got += " " + m.Label
		}
		if got != " "+want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
