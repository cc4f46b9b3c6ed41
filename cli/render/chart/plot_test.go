package chart

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/render"
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

func plotted(t *testing.T, s render.Screen, studies []plot.Study, o plot.Options) []string {
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
		{"exp:1s..1m", ""}, {"sidekiq", ""}, {"zizq", ""}, {"constant:0", "none"}, {"exp:1s", "decorrelated"},
		{"constant:365d", "full"}, {"buckets:3", ""}, {"constant:1ms", "none"},
	} {
		studies = append(studies, studyOf(t, subject(t, s[0], s[1]), o))
	}
	studies[1].Subject.Label = strings.Repeat("wide 界 ", 40)
	studies = append(studies, studyOf(t, subject(t, "constant:180d", "full"),
		plot.Options{Tasks: 3, Retries: 999, Seed: 1}))
	for _, retries := range []int{1, 10, 36, 999} {
		studies = append(studies, studyOf(t, subject(t, "fib:10ms..1h", "30%"),
			plot.Options{Tasks: 3, Retries: retries, Seed: 1}))
	}
	for _, width := range []int{40, 59, 60, 80, 91, 140, 200, 300} {
		for _, colour := range []bool{false, true} {
			for n := 1; n <= len(studies); n += 3 {
				checkFits(t, render.Screen{Width: width, Color: colour}, studies[n-1:], o)
			}
		}
	}
}

func checkFits(t *testing.T, s render.Screen, studies []plot.Study, o plot.Options) {
	t.Helper()
	lines := plotted(t, s, studies, o)
	for _, line := range lines {
		if lipgloss.Width(line) > min(s.Width, maxPlotWidth) {
			t.Errorf("%d columns, %d studies: got %d cells: %s", s.Width, len(studies), lipgloss.Width(line), line)
		}
		if strings.Contains(line, "\x1b") && !s.Color {
			t.Errorf("got a colour without colours: %q", line)
		}
	}
	text := strings.Join(lines, "\n")
	for _, part := range []string{": ░ range, ┃ base", "Retries of ", "Load: retries a second", "Worst local load"} {
		if n := strings.Count(text, part); n != len(studies) && part != "Worst local load" || n == 0 {
			t.Errorf("%d columns: got %q %d times for %d studies", s.Width, part, n, len(studies))
		}
	}
}

// As many pictures stand side by side as have room; below each other they are as wide as everything.
func TestPlotSideBySide(t *testing.T) {
	o := plot.Options{Tasks: 5, Retries: 3, Seed: 1}
	study := studyOf(t, subject(t, "constant:5s", "none"), o)
	for _, tt := range []struct{ width, studies, most int }{{0, 2, 1}, {90, 2, 1}, {91, 2, 2}, {140, 3, 3}, {140, 2, 2},
		{200, 9, 4}} {
		side := 0
		for _, line := range plotted(t, render.Screen{Width: tt.width}, make9(study)[:tt.studies], o) {
			side = max(side, strings.Count(line, "Load: retries a second"))
		}
		if side != tt.most {
			t.Errorf("%d columns: got %d of %d side by side, want %d", tt.width, side, tt.studies, tt.most)
		}
	}
}

func make9(s plot.Study) []plot.Study { return []plot.Study{s, s, s, s, s, s, s, s, s} }

// What the head says is what the policy has, also where a budget ends it early.
func TestPlotHead(t *testing.T) {
	o := plot.Options{Tasks: 3, Retries: 8, Seed: 1}
	s := subject(t, "exp:10s", "none")
	s.Label = "a\x1b[31mb"
	s.Policy.Budget = 25 * time.Second
	lines := plotted(t, render.Screen{Width: 100}, []plot.Study{studyOf(t, s, o)}, o)
	if lines[0] != `a\x1b[31mb` || lines[1] != "9 attempts, backoff exp:10s, jitter none" {
		t.Errorf("got %q", lines[:2])
	}
}

// What comes before an axis begins stands at its begin, and the first mark says so.
func TestAxisOfEarlyRetries(t *testing.T) {
	o := plot.Options{Tasks: 100, Retries: 8, Seed: 1}
	for spec, want := range map[string]bool{"full": true, "none": false} {
		text := strings.Join(plotted(t, render.Screen{}, []plot.Study{studyOf(t, subject(t, "exp:10s", spec), o)}, o), "\n")
		if strings.Contains(text, "│≤") != want {
			t.Errorf("%s: got\n%s", spec, text)
		}
	}
}

// What a picture leaves out is said.
func TestPlotNotes(t *testing.T) {
	o := plot.Options{Tasks: 4, Retries: 8, Seed: 1}
	named := func(label, curve string, change func(*task.Policy)) plot.Study {
		s := subject(t, curve, "none")
		s.Label, s.Policy.Attempts = label, 4
		change(&s.Policy)
		return studyOf(t, s, o)
	}
	nothing := func(*task.Policy) {}
	rules := func(p *task.Policy) { p.Rules = make([]task.Rule, 2) }
	limited := func(d time.Duration) func(p *task.Policy) { return func(p *task.Policy) { p.Budget = d } }
	endless := func(p *task.Policy) { p.Attempts = 0 }
	const limit = "What has no limit of attempts is shown with 9; --attempts N shows others."
	const apart = "Pictures whose windows differ by more than 10 times have scales of their own."
	for _, tt := range []struct {
		studies []plot.Study
		want    []string
	}{
		{[]plot.Study{named("a", "exp:1s", nothing)}, nil},
		{[]plot.Study{named("a", "exp:1s", rules)},
			[]string{"a has 2 rules, which the picture leaves out: it is of the policy's own curve."}},
		{[]plot.Study{named("a", "exp:1s", limited(2*time.Second))},
			[]string{"a: the budget of 2s ends tasks early; the last retry is number 2, of 4 tasks."}},
		{[]plot.Study{named("a", "exp:1s", limited(4*time.Second))},
			[]string{"a: the budget of 4s shortens a last wait that would pass it."}},
		{[]plot.Study{named("a", "exp:1s", limited(8*time.Second))}, nil},
		{[]plot.Study{named("a", "exp:1ms", limited(4*time.Second))}, nil},
		{[]plot.Study{named("a", "exp:1s", endless)}, []string{limit}},
		{[]plot.Study{named("a", "exp:1s", nothing), named("b", "exp:2s", nothing)},
			[]string{"All pictures have the same scales."}},
		{[]plot.Study{named("a", "exp:1s", nothing), named("b", "exp:1m", nothing)}, []string{apart}},
		{[]plot.Study{named("a", "exp:1m", nothing), named("b", "exp:1s", nothing), named("c", "exp:10s", endless)},
			[]string{"The same scales: a, c", apart, limit}},
		{[]plot.Study{named("a", "buckets:3", nothing)},
			[]string{"The worst local load of 4 tasks is mostly chance; --tasks 100000 tells more."}},
	} {
		got := plotNotes(tt.studies, o)
		if !slices.Equal(got, tt.want) {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

func TestPlotNotesOfManyTasks(t *testing.T) {
	s := studyOf(t, subject(t, "exp:1s", "full"), plot.Options{Tasks: 10, Retries: 8, Seed: 1})
	s.Subject.Policy.Attempts = 9
	if got := plotNotes([]plot.Study{s}, plot.Options{Tasks: manyTasks, Retries: 8}); got != nil {
		t.Errorf("got %q, want none", got)
	}
}

// A table has as many columns as fit; where not one fits, each value stands below its name.
func TestPlotFigures(t *testing.T) {
	o := plot.Options{Tasks: 1, Retries: 2, Seed: 1}
	a, b := studyOf(t, subject(t, "constant:5s", "none"), o), studyOf(t, subject(t, "constant:1m", "none"), o)
	wide := figures(render.Screen{}, []plot.Study{a, b}, 80)
	for _, want := range []string{"  constant:5s/none  constant:1m/none\n",
		"Window: least · mean · most  10 · 10 · 10 s    2 · 2 · 2 min\n"} {
		if !strings.Contains(wide, want) {
			t.Errorf("got\n%s\nwant %q in it", wide, want)
		}
	}
	got := figures(render.Screen{}, []plot.Study{a, b}, 50)
	if lines := strings.Split(got, "\n"); strings.Count(got, "Window") != 2 || lines[6] != "" {
		t.Errorf("got\n%s\nwant two tables", got)
	}
	got = figures(render.Screen{}, []plot.Study{a}, 40)
	if want := "constant:5s/none\nWindow: least · mean · most\n  10 · 10 · 10 s\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant it to begin with\n%s", got, want)
	}
}

func TestPlotJSON(t *testing.T) {
	o := plot.Options{Tasks: 1, Retries: 1, Seed: 18446744073709551615}
	s := studyOf(t, subject(t, "exp:1500ms..1m", "none"), o)
	s.Load = plot.Load{Peak: 1.0 / 3, Mean: 1e-9, Idle: 0.12345678, Local: 16}
	s.Retries[0].CV = 2.0 / 3
	var b strings.Builder
	if err := PlotJSON(&b, []plot.Study{s}, o); err != nil {
		t.Fatal(err)
	}
	const want = `{"tasks":1,"seed":18446744073709551615,"specs":[{"label":"exp:1500ms..1m/none","backoff":"exp:1.5s..1m","jitter":"none",` +
		`"window_ms":{"min":1500,"mean":1500,"max":1500},"load":{"peak":0.333333,"mean":1e-9,"idle":0.123457,"local":16},` +
		`"retries":[{"n":1,"base_ms":1500,"min_ms":1500,"mean_ms":1500,"max_ms":1500,"cv":0.666667}]}]}`
	if got := strings.Join(strings.Fields(b.String()), ""); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A wait that no bound keeps below what every delay saturates at has no greatest value.
func TestPlotJSONWithoutBound(t *testing.T) {
	o := plot.Options{Tasks: 1, Retries: 30, Seed: 1}
	for jitter, want := range map[string]string{"decorrelated": "null", "none": "512000"} {
		curve := "exp:1s"
		if jitter == "none" {
			curve = "exp:1s..512s"
		}
		var b strings.Builder
		if err := PlotJSON(&b, []plot.Study{studyOf(t, subject(t, curve, jitter), o)}, o); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if last := text[strings.LastIndex(text, `"max_ms"`):]; !strings.HasPrefix(last, `"max_ms": `+want+",") {
			t.Errorf("%s: got %s, want %s", jitter, last[:20], want)
		}
	}
}
