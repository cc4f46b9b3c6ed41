package render

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/plot"
)

// Over all columns the load is all retries, whatever the axis.
func TestLoadOverCountsAll(t *testing.T) {
	for _, curve := range []string{"constant:5s", "constant:0", "exp:1s..1m", "exp:10s", "sidekiq", "lock-busy"} {
		o := plot.Options{Tasks: 50, Retries: 8, Seed: 1}
		s := studyOf(t, subject(t, curve, ""), o)
		axis, sum := plot.TimeAxis([]plot.Study{s}), 0.0
		for i, rate := range loadOver(s, axis, 70) {
			from := axis.At(float64(i) / 70)
			if i == 0 {
				from = 0
			}
			sum += rate * (axis.At(float64(i+1)/70) - from).Seconds()
		}
		if math.Abs(sum-400) > 8 {
			t.Errorf("%s: %.1f of 400 retries", curve, sum)
		}
	}
}

// A column shorter than a second shows the load of a second, not of itself.
func TestLoadOverShortColumns(t *testing.T) {
	s := studyOf(t, subject(t, "constant:10s", "none"), plot.Options{Tasks: 10, Retries: 2, Seed: 1})
	for i, rate := range loadOver(s, plot.Axis{Most: 20 * time.Second}, 80) {
		want := map[int]float64{10: 10, 19: 10}[i/4]
		if math.Abs(rate-want) > 1.5 { // the last one is a little longer
			t.Errorf("column %d: %.2f a second, want %v", i, rate, want)
		}
	}
}

// Of a window of less than a few seconds, too, it is seen whether the retries come together.
func TestLoadOverShortWindow(t *testing.T) {
	s := studyOf(t, subject(t, "constant:100ms", "none"), plot.Options{Tasks: 10, Retries: 8, Seed: 1})
	idle := 0
	for _, rate := range loadOver(s, plot.TimeAxis([]plot.Study{s}), 73) {
		if rate == 0 {
			idle++
		}
	}
	if idle < 73/2 {
		t.Errorf("only %d of 73 columns are idle", idle)
	}
}

func TestRateAxis(t *testing.T) {
	for _, tt := range []struct {
		rates []float64
		rate  float64
		want  string // its bar, from below
		low   float64
	}{
		{[]float64{0, 32, 10}, 32, "████", 0},
		{[]float64{0, 32, 10}, 16, "██  ", 0},
		{[]float64{0, 32, 10}, 9, "█▁  ", 0},
		{[]float64{0, 32, 10}, 0.001, "▁   ", 0},
		{[]float64{0, 32, 10}, 0, "    ", 0},
		{[]float64{1, 1000}, 1000, "████", 0.1},
		{[]float64{1, 1000}, 10, "██  ", 0.1},
		{[]float64{1, 1000}, 1, "█   ", 0.1},
		{[]float64{0}, 0, "    ", 0},
		{[]float64{1, 50, 60, 70, 100}, 50, "██  ", 0}, // one that is low is not worth a logarithmic axis
		{[]float64{1, 50, 60, 70, 100}, 1, "▁   ", 0},
		{[]float64{1, 1, 60, 70, 100}, 10, "██▅ ", 0.1},
	} {
		a := newRateAxis(tt.rates)
		var bar strings.Builder
		for row := range loadRows {
			bar.WriteRune(a.block(tt.rate, row))
		}
		if bar.String() != tt.want || math.Abs(a.floor()-tt.low) > 1e-9 {
			t.Errorf("%v of %v: %q above %v, want %q above %v", tt.rate, tt.rates, bar.String(), a.floor(), tt.want, tt.low)
		}
	}
}

func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{0: "0", 0.1: "0.1", 1e-6: "1e-6", 0.00212: "0.0021", 0.00012: "1.2e-4", 22.34: "22.3", 999: "999", 6400: "6400", 718296.4: "718296", 1.25e7: "1.2e7", 2.6e10: "2.6e10"} {
		if got := rateText(rate); got != want || len(got) > gutter {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}
