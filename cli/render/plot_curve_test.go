package render

import (
	"fmt"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
)

func TestDelayBar(t *testing.T) {
	linear := plot.Axis{Most: 10 * time.Second}
	for _, tt := range []struct {
		axis              plot.Axis
		least, base, most time.Duration
		want              string
	}{
		{linear, 2 * time.Second, 4 * time.Second, 6 * time.Second, "  ░░┃░░   "},
		{linear, 0, 10 * time.Second, 10 * time.Second, "░░░░░░░░░┃"},
		{linear, 5 * time.Second, 5 * time.Second, 5 * time.Second, "     ┃    "},
		{linear, 0, 0, 0, "┃         "},
		{linear, 5 * time.Second, 6 * time.Second, time.Minute, "     ░┃░░→"},
		{linear, 5 * time.Second, time.Minute, time.Minute, "     ░░░░┃"},
		{plot.Axis{Least: time.Second, Most: 1024 * time.Second, Log: true}, 0, 32 * time.Second, 32 * time.Second, "░░░░░┃    "},
	} {
		k := sketch{axes: plotAxes{delay: tt.axis}, study: plot.Study{Retries: make([]plot.Retry, 8)}}
		if got := k.delayBar(plot.Retry{N: 1, Least: tt.least, Base: tt.base, Most: tt.most}, 10); got != tt.want {
			t.Errorf("%s..%s..%s: %q, want %q", tt.least, tt.base, tt.most, got, tt.want)
		}
	}
}

// All retries have a row, or every so many of them, and the last one always.
func TestCurveRows(t *testing.T) {
	for n, want := range map[int]string{1: "[1]", 4: "[1 2 3 4]", 13: "[1 3 5 7 9 11 13]", 14: "[1 3 5 7 9 11 13 14]", 999: "[1 85 169 253 337 421 505 589 673 757 841 925 999]"} {
		k := sketch{}
		for i := range n {
			k.study.Retries = append(k.study.Retries, plot.Retry{N: i + 1})
		}
		var got []int
		for _, r := range k.curveRows() {
			got = append(got, r.N)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d: %v, want %s", n, got, want)
		}
	}
}

func TestRangeText(t *testing.T) {
	for want, r := range map[string]plot.Retry{
		"0s–1s": {Most: time.Second}, "1s": {Least: time.Second, Most: time.Second}, "1d5h": {Least: 29*time.Hour + 1, Most: 29*time.Hour + 9},
		"from 1s": {Least: time.Second, Most: backoff.Max, Unbounded: true},
	} {
		if got := rangeText(r); got != want {
			t.Errorf("%s to %s: %s, want %s", r.Least, r.Most, got, want)
		}
	}
}

// Numbers leave the ranges their room: what the picture shows, too, gives way first.
func TestCurveNumbers(t *testing.T) {
	retry := plot.Retry{N: 1, Base: 90 * time.Second, Least: time.Second, Most: 2 * time.Hour, CV: 1.234}
	for width, want := range map[int][2]string{
		80: {"   BASE  RANGE    CV", "  1m30s  1s–2h  1.23"}, gutter + 1 + 20 + leastBar: {"   BASE  RANGE    CV", "  1m30s  1s–2h  1.23"},
		gutter + 1 + 19 + leastBar: {"   BASE    CV", "  1m30s  1.23"}, 40: {"   BASE    CV", "  1m30s  1.23"},
	} {
		if got := (sketch{width: width}).curveNumbers([]plot.Retry{retry}); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}
