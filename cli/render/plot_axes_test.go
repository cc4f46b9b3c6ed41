package render

import (
	"fmt"
	"strings"
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

// What comes before an axis begins stands at its begin, and the first mark says so.
func TestAxisOfEarlyRetries(t *testing.T) {
	o := plot.Options{Tasks: 100, Retries: 8, Seed: 1}
	for spec, want := range map[string]bool{"full": true, "none": false} {
		text := strings.Join(plotted(t, Screen{}, []plot.Study{studyOf(t, subject(t, "exp:10s", spec), o)}, o), "\n")
		if strings.Contains(text, "│≤") != want {
			t.Errorf("%s:\n%s", spec, text)
		}
	}
}
