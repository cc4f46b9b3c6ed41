package render

import (
	"fmt"
	"testing"
	"time"

	"github.com/10f93571/retry/plot"
)

func lasting(windows ...time.Duration) (studies []plot.Study) {
	for _, w := range windows {
		studies = append(studies, plot.Study{Window: plot.Window{Most: w}})
	}
	return studies
}

// Studies share their scales where the shorter one is still seen.
func TestAlike(t *testing.T) {
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
		if got := fmt.Sprint(alike(lasting(tt.windows...))); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.windows, got, tt.want)
		}
	}
}

func TestTimeAxis(t *testing.T) {
	for _, tt := range []struct {
		curve, jitter string
		retries       int
		log           bool
		most          time.Duration
	}{
		{"constant:5s", "none", 999, false, 4995 * time.Second}, // waits that do not grow come evenly, however many they are
		{"exp:1s", "none", 3, false, 7 * time.Second},
		{"exp:1s", "none", 8, true, 255 * time.Second},
		{"constant:0", "none", 3, false, time.Second},
	} {
		s := studyOf(t, subject(t, tt.curve, tt.jitter), plot.Options{Tasks: 1, Retries: tt.retries, Seed: 1})
		if a := timeAxis([]plot.Study{s}); a.Log != tt.log || a.Most != tt.most {
			t.Errorf("%s: %+v", tt.curve, a)
		}
	}
}

// An axis reaches the longest range, but not where one grows without an end.
func TestDelayAxis(t *testing.T) {
	for _, tt := range []struct {
		curve, jitter string
		least, most   time.Duration
	}{
		{"constant:5s", "none", 0, 5 * time.Second},
		{"constant:5s", "30%", 0, 6500 * time.Millisecond},
		{"exp:1s", "none", time.Second, 128 * time.Second},
		{"exp:1s", "full", time.Second / 8, 128 * time.Second},
		{"exp:1s", "decorrelated", time.Second, 512 * time.Second},
		{"constant:0", "none", 0, time.Second},
	} {
		s := studyOf(t, subject(t, tt.curve, tt.jitter), plot.Options{Tasks: 1, Retries: 8, Seed: 1})
		s.Retries[0].Mean = s.Retries[0].Base / 2 // of one task it is any
		for i := range s.Retries[1:] {
			s.Retries[i+1].Mean = s.Retries[i+1].Base
		}
		if a := delayAxis([]plot.Study{s}); a.Log && a.Least != tt.least && tt.jitter == "full" || a.Most != tt.most {
			t.Errorf("%s/%s: %+v, want %s to %s", tt.curve, tt.jitter, a, tt.least, tt.most)
		}
	}
}
