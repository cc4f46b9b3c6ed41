package render

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

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
		{[]plot.Study{named("a", "exp:1s", rules)}, []string{"a has 2 rules, which the picture leaves out: it is of the policy's own curve."}},
		{[]plot.Study{named("a", "exp:1s", limited(2*time.Second))}, []string{"a: the budget of 2s ends tasks early; the last retry is number 2, of 4 tasks."}},
		{[]plot.Study{named("a", "exp:1s", limited(4*time.Second))}, []string{"a: the budget of 4s shortens a last wait that would pass it."}},
		{[]plot.Study{named("a", "exp:1s", limited(7*time.Second))}, nil},
		{[]plot.Study{named("a", "exp:1ms", limited(4*time.Second))}, nil},
		{[]plot.Study{named("a", "exp:1s", endless)}, []string{limit}},
		{[]plot.Study{named("a", "exp:1s", nothing), named("b", "exp:2s", nothing)}, []string{"All pictures have the same scales."}},
		{[]plot.Study{named("a", "exp:1s", nothing), named("b", "exp:1m", nothing)}, []string{apart}},
		{[]plot.Study{named("a", "exp:1m", nothing), named("b", "exp:1s", nothing), named("c", "exp:10s", endless)}, []string{"The same scales: a, c", apart, limit}},
		{[]plot.Study{named("a", "buckets:3", nothing)}, []string{"The worst local load of 4 tasks is mostly chance; --tasks 100000 tells more."}},
	} {
		got := plotNotes(tt.studies, o, 200)
		if len(got) > 0 {
			got = got[1:]
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

func TestPlotNotesOfManyTasks(t *testing.T) {
	s := studyOf(t, subject(t, "exp:1s", "full"), plot.Options{Tasks: 10, Retries: 8, Seed: 1})
	s.Subject.Policy.Attempts = 9
	if got := plotNotes([]plot.Study{s}, plot.Options{Tasks: manyTasks, Retries: 8}, 200); got != nil {
		t.Errorf("%q", got)
	}
}

// A table has as many columns as fit; where not one fits, each value stands below its name.
func TestPlotFigures(t *testing.T) {
	o := plot.Options{Tasks: 1, Retries: 2, Seed: 1}
	a, b := studyOf(t, subject(t, "constant:5s", "none"), o), studyOf(t, subject(t, "constant:1m", "none"), o)
	wide := strings.Join(Screen{}.figures([]plot.Study{a, b}, 80), "\n")
	for _, want := range []string{"  constant:5s/none  constant:1m/none\n", "Window: least · mean · most  10 · 10 · 10 s    2 · 2 · 2 min "} {
		if !strings.Contains(wide, want) {
			t.Errorf("%q is missing in\n%s", want, wide)
		}
	}
	if got := (Screen{}).figures([]plot.Study{a, b}, 50); strings.Count(strings.Join(got, "\n"), "Window") != 2 || got[6] != "" {
		t.Errorf("no two tables:\n%s", strings.Join(got, "\n"))
	}
	if got := (Screen{}).figures([]plot.Study{a}, 40); got[0] != "constant:5s/none" || got[1] != "Window: least · mean · most" || got[2] != "  10 · 10 · 10 s" {
		t.Errorf("no list:\n%s", strings.Join(got, "\n"))
	}
}
