package picture

import (
	"testing"
	"time"

	"github.com/10f93571/retry/plot"
)

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
		if got := cvText(retries); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// What is not all is not said to be all.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0 %", 0.0012: "0.12 %", 0.5: "50 %", 0.9994: "99.9 %", 0.99999: "99.9 %", 1: "100 %"} {
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
