package plot

import (
	"math"
	"testing"
	"time"
)

// An axis of any length has ticks, and not more than asked for but one.
func TestTicks(t *testing.T) {
	for _, a := range []Axis{
		{Most: 1}, {Most: 7 * time.Second}, {Most: time.Hour}, {Most: 150 * 365 * day}, {Most: math.MaxInt64},
		{Least: time.Second, Most: time.Hour, Log: true}, {Least: 1, Most: math.MaxInt64, Log: true},
	} {
		for _, atMost := range []int{2, 5, 9} {
			ticks := a.Ticks(atMost)
			if len(ticks) == 0 || len(ticks) > atMost+1 {
				t.Errorf("%+v: %d ticks, want at most %d", a, len(ticks), atMost)
			}
			for i, tick := range ticks {
				if tick < a.Least || tick > a.Most || i > 0 && tick <= ticks[i-1] {
					t.Errorf("%+v: %v", a, ticks)
				}
			}
		}
	}
}

// Waits of centuries in all do not turn negative.
func TestWindowOfCenturies(t *testing.T) {
	s := study(t, subject(t, "constant:365d", "none", 1000), Options{Tasks: 2, Seed: 1})
	if s.Window != (Window{math.MaxInt64, math.MaxInt64, math.MaxInt64}) {
		t.Errorf("%+v", s.Window)
	}
}
