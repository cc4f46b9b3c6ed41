package plot

import (
	"testing"
	"time"
)

func studiesOf(t *testing.T, tasks, attempts int, specs ...[2]string) (all []Study) {
	t.Helper()
	for _, s := range specs {
		all = append(all, study(t, subject(t, s[0], s[1], attempts), Options{Tasks: tasks, Seed: 1}))
	}
	return all
}

// Waits that hardly grow are even in time, and stay so; those that grow, or lie far apart, need a logarithmic axis.
func TestTimeAxis(t *testing.T) {
	for _, tt := range []struct {
		specs [][2]string
		log   bool
	}{
		{[][2]string{{"constant:5s"}}, false},
		{[][2]string{{"constant:500ms", "30%"}}, false},
		{[][2]string{{"exp:1s..1m"}}, true},
		{[][2]string{{"constant:5s"}, {"exp:1s..1m"}}, true},
		{[][2]string{{"constant:1s"}, {"constant:10s"}}, false},
		{[][2]string{{"constant:1s"}, {"constant:1h"}}, true},
		{[][2]string{{"constant:0s"}}, false},
	} {
		if a := TimeAxis(studiesOf(t, 20, 13, tt.specs...)); a.Log != tt.log || a.Most <= a.Least {
			t.Errorf("%v: %+v", tt.specs, a)
		}
	}
	long := studiesOf(t, 1, 1000, [2]string{"constant:5s", "none"})
	if a := TimeAxis(long); a.Log || a.Most != 4995*time.Second {
		t.Errorf("waits that do not grow come evenly, however many they are: %+v", a)
	}
}

// An axis reaches the longest range, but not where one grows without an end.
func TestDelayAxis(t *testing.T) {
	for spec, want := range map[[2]string]Axis{
		{"constant:5s", "none"}: {Most: 5 * time.Second},
		{"constant:5s", "30%"}:  {Most: 6500 * time.Millisecond},
		{"exp:1s..30s", "none"}: {Most: 30 * time.Second},
		{"exp:1s..2m", "none"}:  {Least: time.Second, Most: 2 * time.Minute, Log: true},
		{"constant:0s", "none"}: {Most: time.Second},
	} {
		if got := DelayAxis(studiesOf(t, 10, 11, spec)); got != want {
			t.Errorf("%s: %+v, want %+v", spec, got, want)
		}
	}
	full := studiesOf(t, 1000, 9, [2]string{"exp:10s", "full"})
	if a := DelayAxis(full); a.Least > full[0].Retries[0].Mean/3 {
		t.Errorf("a range that goes down to 0 has no room below its line: %+v", a)
	}
	decorrelated := studiesOf(t, 10, 21, [2]string{"exp:1s", "decorrelated"})
	if a := DelayAxis(decorrelated); a.Most > clipped*decorrelated[0].Retries[19].Base {
		t.Errorf("a range without an end presses the line down: %+v", a)
	}
}
