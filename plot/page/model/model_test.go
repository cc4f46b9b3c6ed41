package model

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/backoff"
	_ "github.com/10f93571/retry/internal/expression"
)

func answer(t *testing.T, specs ...Spec) Answer {
	t.Helper()
	a := Request{Tasks: 20, Seed: 1, Specs: specs}.Answer()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), ":null") {
		t.Errorf("got null in %s", text)
	}
	return a
}

func TestAnswer(t *testing.T) {
	shown := answer(t, Spec{Label: "deploy", Backoff: " zizq ", Attempts: 3}).Specs[0]
	if shown.Backoff != "poly:15s+n^4" || shown.Jitter != "add:30s*n" || shown.Curve != "poly" ||
		shown.JitterKind != "add" {
		t.Errorf("got %+v", shown)
	}
	if len(shown.Retries) != 2 || len(shown.Figures) == 0 || len(shown.Parameters) != 5 ||
		!strings.Contains(shown.SVG, "<title>deploy</title>") {
		t.Errorf("got %+v", shown)
	}
}

// What is wrong with one policy is said there; the others are shown, each at its own place.
func TestOneIsWrong(t *testing.T) {
	specs := answer(t, Spec{Backoff: "exp:1s", Jitter: "none", Attempts: 3}, Spec{Backoff: "exp:", Attempts: 3},
		Spec{Backoff: "exp:2s", Attempts: 1}, Spec{Backoff: "exp:3s", Jitter: "none", Attempts: 3}).Specs
	for i, want := range []string{"", "the initial delay is missing", "one attempt has no retry to show", ""} {
		if !strings.Contains(specs[i].Error, want) || (want == "") != (specs[i].Error == "") {
			t.Errorf("%d: got error %q, want %q", i, specs[i].Error, want)
		}
	}
	if specs[1].SVG != "" || !strings.Contains(specs[3].SVG, "<title>exp:3s/none</title>") {
		t.Error("a picture stands at the wrong place")
	}
}

func TestMove(t *testing.T) {
	for _, tt := range []struct {
		move Move
		want string
	}{
		{Move{Index: 0, Place: 0}, "exp:0s..1m full"},
		{Move{Index: 0, Place: 1}, "exp:1m..1m full"},
		{Move{Index: 1, Place: 1}, "exp:1s*5..1m full"},
		{Move{Index: 2, None: true}, "exp:1s full"},
	} {
		s := answer(t, Spec{Backoff: "exp:1s..1m", Jitter: "full", Attempts: 3, Move: &tt.move}).Specs[0]
		if got := s.Backoff + " " + s.Jitter; got != tt.want || s.Error != "" || s.Move != nil {
			t.Errorf("%+v gives %s, %s, want %s", tt.move, got, s.Error, tt.want)
		}
	}
	formula := Spec{Backoff: "expr:15 + n^4", Attempts: 3, Move: &Move{Index: 0, Place: 1}}
	if s := answer(t, formula).Specs[0]; s.Backoff != "expr:30 + n^4" || s.Error != "" || len(s.Parameters) != 3 {
		t.Errorf("a number of a formula was moved: got %s, %s, %d parameters", s.Backoff, s.Error, len(s.Parameters))
	}
	if s := answer(t, Spec{Backoff: "sidekiq", Attempts: 3, Move: &Move{Index: 7}}).Specs[0]; s.Error == "" {
		t.Error("a slider that there is not was moved")
	}
}

// Every choice of the page is a spec, and is shown as that choice.
func TestChoices(t *testing.T) {
	for _, c := range Curves() {
		s := answer(t, Spec{Backoff: c.Spec, Attempts: 3}).Specs[0]
		if preset := c.Name == c.Spec; s.Error != "" || s.Curve != c.Name && !preset {
			t.Errorf("%s: got %s, %s", c.Name, s.Curve, s.Error)
		}
	}
	for _, c := range Jitters() {
		if s := answer(t, Spec{Backoff: "exp:1s", Jitter: c.Spec, Attempts: 3}).Specs[0]; s.Error != "" ||
			s.JitterKind != c.Name {
			t.Errorf("%s: got %s, %s", c.Name, s.JitterKind, s.Error)
		}
	}
	named := func(all []Choice, name string) bool {
		return slices.ContainsFunc(all, func(c Choice) bool { return c.Name == name })
	}
	for _, name := range backoff.Curves() {
		if name != "fixed" && name != "delay" && !named(Curves(), name) { // other words for constant
			t.Errorf("got no choice of the curve %s, want one", name)
		}
	}
	for _, name := range backoff.Jitters() {
		if !named(Jitters(), strings.Replace(name, "percent", "± %", 1)) {
			t.Errorf("got no choice of the jitter %s, want one", name)
		}
	}
}

func TestCommand(t *testing.T) {
	for spec, want := range map[Spec]string{
		{Backoff: "exp:1s..1m", Jitter: "30%",
			Attempts: 9}: "retry -n 9 -b exp:1s..1m -j 30% -- …",
		{Backoff: "exp:1s*1.5", Jitter: "add:1s*n", Attempts: 2,
			BudgetMS: 90_000}: "retry -n 2 -b 'exp:1s*1.5' -j 'add:1s*n' -B 1m30s -- …",
		{Backoff: "expr:n ? 'a' : 1", Jitter: "none", Attempts: 3,
			Label: "not in it"}: `retry -n 3 -b 'expr:n ? '\''a'\'' : 1' -j none -- …`,
	} {
		if got := command(spec); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// However much is asked for, by a link too, the page stays quick.
func TestFit(t *testing.T) {
	for _, tt := range []struct{ tasks, attempts, want int }{{100, 9, 100}, {1_000_000, 9, 10_000}, {10_000, 1000, 200},
		{100, math.MaxInt, 1}} {
		r := Request{Tasks: tt.tasks, Specs: []Spec{{Attempts: 2}, {Attempts: tt.attempts}}}
		if r.Fit(); r.Tasks != tt.want {
			t.Errorf("%d tasks of %d attempts: got %d, want %d", tt.tasks, tt.attempts, r.Tasks, tt.want)
		}
	}
	if a := (Request{Tasks: math.MaxInt, Specs: []Spec{{Backoff: "exp:1s", Attempts: 2}}}).Answer(); a.Tasks != 10_000 ||
		a.Specs[0].Error != "" {
		t.Errorf("got %d tasks, %s", a.Tasks, a.Specs[0].Error)
	}
}
