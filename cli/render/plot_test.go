package render

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

// subject is a policy without a limit of attempts.
func subject(t *testing.T, curve, jitter string) plot.Subject {
	t.Helper()
	spec, err := backoff.Parse(curve, jitter)
	if err != nil {
		t.Fatal(err)
	}
	policy := task.DefaultPolicy()
	policy.Attempts, policy.Backoff = 0, spec
	return plot.Subject{Label: curve + "/" + jitter, Policy: policy}
}

func studyOf(t *testing.T, s plot.Subject, o plot.Options) plot.Study {
	t.Helper()
	study, err := plot.NewStudy(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return study
}

func plotted(t *testing.T, s Screen, studies []plot.Study, o plot.Options) []string {
	t.Helper()
	var b strings.Builder
	if err := Plot(&b, s, studies, o); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// Whatever is drawn fits the terminal, in colour and without, and has every part.
func TestPlotFits(t *testing.T) {
	var studies []plot.Study
	o := plot.Options{Tasks: 30, Retries: 8, Seed: 1}
	for _, s := range [][2]string{
		{"exp:1s..1m", ""}, {"sidekiq", ""}, {"zizq", ""}, {"constant:0", "none"}, {"exp:1s", "decorrelated"}, {"constant:365d", "full"}, {"buckets:3", ""}, {"constant:1ms", "none"},
	} {
		studies = append(studies, studyOf(t, subject(t, s[0], s[1]), o))
	}
	studies[1].Subject.Label = strings.Repeat("wide 界 ", 40)
	studies = append(studies, studyOf(t, subject(t, "constant:365d", "full"), plot.Options{Tasks: 3, Retries: 999, Seed: 1}))
	for _, retries := range []int{1, 10, 36, 999} {
		studies = append(studies, studyOf(t, subject(t, "fib:10ms..1h", "30%"), plot.Options{Tasks: 3, Retries: retries, Seed: 1}))
	}
	for _, width := range []int{40, 59, 60, 80, 91, 140, 200, 300} {
		for _, colour := range []bool{false, true} {
			for n := 1; n <= len(studies); n += 3 {
				checkFits(t, Screen{Width: width, Color: colour}, studies[n-1:], o)
			}
		}
	}
}

func checkFits(t *testing.T, s Screen, studies []plot.Study, o plot.Options) {
	t.Helper()
	lines := plotted(t, s, studies, o)
	for _, line := range lines {
		if lipgloss.Width(line) > min(s.Width, mostPlot) {
			t.Errorf("%d columns, %d studies: %d wide: %s", s.Width, len(studies), lipgloss.Width(line), line)
		}
		if strings.Contains(line, "\x1b") && !s.Color {
			t.Errorf("a colour without colours: %q", line)
		}
	}
	text := strings.Join(lines, "\n")
	for _, part := range []string{": ░ range, ┃ base", "Retries of ", "Load: retries a second", "Worst local load"} {
		if n := strings.Count(text, part); n != len(studies) && part != "Worst local load" || n == 0 {
			t.Errorf("%d columns: %q stands there %d times for %d studies", s.Width, part, n, len(studies))
		}
	}
}

// As many pictures stand side by side as have room; below each other they are as wide as everything.
func TestPlotSideBySide(t *testing.T) {
	o := plot.Options{Tasks: 5, Retries: 3, Seed: 1}
	study := studyOf(t, subject(t, "constant:5s", "none"), o)
	for _, tt := range []struct{ width, studies, most int }{{0, 2, 1}, {90, 2, 1}, {91, 2, 2}, {140, 3, 3}, {140, 2, 2}, {200, 9, 4}} {
		side := 0
		for _, line := range plotted(t, Screen{Width: tt.width}, make9(study)[:tt.studies], o) {
			side = max(side, strings.Count(line, "Load: retries a second"))
		}
		if side != tt.most {
			t.Errorf("%d columns: %d of %d side by side, want %d", tt.width, side, tt.studies, tt.most)
		}
	}
}

func make9(s plot.Study) []plot.Study { return []plot.Study{s, s, s, s, s, s, s, s, s} }

// Blocks of several heights do not shift what stands below or beside them.
func TestBeside(t *testing.T) {
	got := beside([][]string{{"a", "bb"}, {"c"}, {"d", "e", "f"}}, 3)
	want := []string{"a     c     d     ", "bb          e     ", "            f     "}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What the head says is what the policy has, also where a budget ends it early.
func TestPlotHead(t *testing.T) {
	o := plot.Options{Tasks: 3, Retries: 8, Seed: 1}
	s := subject(t, "exp:10s", "none")
	s.Label = "a\x1b[31mb"
	s.Policy.Budget = 25 * time.Second
	lines := plotted(t, Screen{Width: 100}, []plot.Study{studyOf(t, s, o)}, o)
	if lines[0] != `a\x1b[31mb` || lines[1] != "9 attempts, backoff exp:10s, jitter none" {
		t.Errorf("%q", lines[:2])
	}
}
