package chart

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
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
		Subject: plot.Subject{Label: label, Policy: task.Policy{Backoff: spec}}, Clients: 10, Calls: calls, Refused: refused,
		ByWave: []int{refused}, Wait: q, Done: q,
	}
}

// The least of each column is marked, also without colours; not where all are the same, nor where it was given up.
func TestTrialsMarkTheBest(t *testing.T) {
	given := trial(t, "constant:0", 1, 0, plot.Never)
	given.Left, given.Ended = 10, 90*time.Second
	trials := []plot.Trial{trial(t, "exp:1s", 20, 10, 7*time.Second), trial(t, "exp:1s/full", 30, 5, 7*time.Second), given}
	got := lines(t, func(b *strings.Builder) error {
		return Simulation(b, render.Screen{}, plot.Outage{Clients: 10, Capacity: 1}, trials)
	})
	want := []string{
		"10 clients of a service that is down for 0s and then answers 1 call a second; done at the best after 10s",
		"",
		"SPEC          CALLS  REJECTED  WAIT P50  P95  P99  99% DONE  ALL DONE",
		"exp:1s/phase  20*    10        1s        2s   3s   3s        7s*",
		"exp:1s/full   30     5*        1s        2s   3s   3s        7s*",
		"constant:0    1      0         1s        2s   3s   3s        never",
		"* the least of the column",
		"constant:0: 10 clients of 10 were not done after 1m30s and 1 call, where the simulation ended",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestTrialsAlone(t *testing.T) {
	got := strings.Join(lines(t, func(b *strings.Builder) error {
		return Simulation(b, render.Screen{Width: 50},
			plot.Lock{Clients: 10, Hold: time.Second, Spin: 20 * time.Millisecond},
			[]plot.Trial{trial(t, "aws", 20, 10, time.Second)})
	}), "\n")
	if strings.Contains(got, "*") || !strings.Contains(got, "holds for 1s, and\nwaits for 20ms in each call") ||
		!strings.Contains(got, "aws") {
		t.Errorf("got\n%s", got)
	}
	for line := range strings.SplitSeq(got, "\n") {
		if len([]rune(line)) > 50 {
			t.Errorf("got a line that is too wide: %s", line)
		}
	}
}

// A policy's name is whatever somebody wrote into a file.
func TestTrialsEscapeNames(t *testing.T) {
	nasty := trial(t, "aws", 1, 0, time.Second)
	nasty.Subject.Label = "a\x1b[31m\u202e\n"
	got := strings.Join(lines(t, func(b *strings.Builder) error {
		return Simulation(b, render.Screen{}, plot.Lock{Clients: 1}, []plot.Trial{nasty})
	}), "\n")
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("got %q", got)
	}
}

// On a narrow screen each spec is a column: no figure is cut off, the last one least of all.
func TestTrialsTurn(t *testing.T) {
	trials := []plot.Trial{trial(t, "exp:100ms..10s/equal", 1000, 10, 9*time.Second),
		trial(t, "exp:100ms..10s/full", 30, 5, 7*time.Second)}
	trials = append(trials, trial(t, "list:"+strings.Repeat("1s,", 50)+"2s", 40, 6, 8*time.Second))
	for _, width := range []int{40, 60, 64, 80, 100} {
		got := lines(t, func(b *strings.Builder) error {
			return Simulation(b, render.Screen{Width: width, Color: width == 80}, plot.Outage{Clients: 10, Capacity: 1}, trials)
		})
		text := strings.Join(got, "\n")
		for _, part := range []string{"ALL DONE", "9s", "7s*", "8s", "* the least of the row"} {
			if !strings.Contains(ansi.Strip(text), part) {
				t.Errorf("%d columns: want %q, got\n%s", width, part, text)
			}
		}
		for _, line := range got {
			if lipgloss.Width(line) > width {
				t.Errorf("%d columns: got a line that is too wide: %s", width, line)
			}
		}
	}
}

// A number of which the end is cut off would be another one.
func TestWaveCounts(t *testing.T) {
	for _, tt := range []struct {
		waves []int
		room  int
		want  string
	}{
		{[]int{99, 98, 5}, -1, "99 98 5 "},
		{[]int{99, 98, 5}, 9, "99 98 5 "},
		{[]int{99, 98, 5}, 8, "99 98 …"},
		{[]int{100, 98}, 2, "…"},
		{slices.Repeat([]int{1}, 13), -1, strings.Repeat("1 ", 12) + "…"},
		{nil, 20, ""},
	} {
		if got := waveCounts(tt.waves, tt.room); got != tt.want {
			t.Errorf("%v in %d cells: %q, want %q", tt.waves, tt.room, got, tt.want)
		}
	}
}

// The rule for a busy lock does not count here; who compares policies has to know.
func TestTrialsTellOfRules(t *testing.T) {
	ruled := trial(t, "aws", 1, 0, time.Second)
	ruled.Subject.Policy.Rules = make([]task.Rule, 2)
	got := strings.Join(lines(t, func(b *strings.Builder) error {
		return Simulation(b, render.Screen{}, plot.Lock{Clients: 1}, []plot.Trial{ruled})
	}), "\n")
	if !strings.Contains(got, "aws has 2 rules, which the simulation leaves out") {
		t.Errorf("got\n%s", got)
	}
}

func lines(t *testing.T, draw func(*strings.Builder) error) []string {
	t.Helper()
	var b strings.Builder
	if err := draw(&b); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
