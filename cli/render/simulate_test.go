package render

import (
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/runner"
)

func trial(t *testing.T, label string, calls, refused int, all time.Duration) plot.Trial {
	t.Helper()
	curve, jitter, _ := strings.Cut(label, "/")
	spec, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatal(err)
	}
	q := plot.Quantiles{P50: time.Second, P95: 2 * time.Second, P99: 3 * time.Second, All: all}
	return plot.Trial{
		Subject: plot.Subject{Label: label, Policy: runner.Policy{Backoff: spec}}, Clients: 10, Calls: calls, Refused: refused,
		ByWave: []int{refused}, Wait: q, Done: q,
	}
}

// The least of each column is marked, also without colours; not where all are the same, nor where it was given up.
func TestTrialsMarkTheBest(t *testing.T) {
	given := trial(t, "constant:0", 1, 0, plot.Never)
	given.Left, given.Ended = 10, 90*time.Second
	trials := []plot.Trial{trial(t, "exp:1s", 20, 10, 7*time.Second), trial(t, "exp:1s/full", 30, 5, 7*time.Second), given}
	got := lines(t, func(b *strings.Builder) error {
		return Outage(b, Screen{}, plot.Outage{Clients: 10, Capacity: 1}, trials)
	})
	want := []string{
		"10 clients of a service that is down for 0s and then answers 1 call a second; done at the best after 10s",
		"",
		"SPEC          CALLS  REJECTED  WAIT P50  P95  P99  99% DONE  ALL DONE",
		"exp:1s/phase  20*    10        1s        2s   3s   3s        7s*",
		"exp:1s/full   30     5*        1s        2s   3s   3s        7s*",
		"constant:0    1      0         1s        2s   3s   3s        never",
		"* the least of the column",
		"constant:0: 10 clients of 10 were not done after 1m30s and 1 calls, where the simulation ended",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestTrialsAlone(t *testing.T) {
	got := strings.Join(lines(t, func(b *strings.Builder) error {
		return Lock(b, Screen{Width: 50}, plot.Lock{Clients: 10, Hold: time.Second, Spin: 20 * time.Millisecond}, []plot.Trial{trial(t, "aws", 20, 10, time.Second)})
	}), "\n")
	if strings.Contains(got, "*") || !strings.Contains(got, "holds for 1s, and waits for 20ms in each call") || !strings.Contains(got, "aws") {
		t.Errorf("got\n%s", got)
	}
	for line := range strings.SplitSeq(got, "\n") {
		if len([]rune(line)) > 50 && !strings.HasPrefix(line, "10 clients") {
			t.Errorf("too wide: %s", line)
		}
	}
}

// A policy's name is whatever somebody wrote into a file.
func TestTrialsEscapeNames(t *testing.T) {
	nasty := trial(t, "aws", 1, 0, time.Second)
	nasty.Subject.Label = "a\x1b[31m\u202e\n"
	got := strings.Join(lines(t, func(b *strings.Builder) error { return Lock(b, Screen{}, plot.Lock{Clients: 1}, []plot.Trial{nasty}) }), "\n")
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("got %q", got)
	}
}
