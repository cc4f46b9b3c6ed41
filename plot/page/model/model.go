// Package model computes what the page shows: it gets policies, and returns their pictures, figures and sliders. The
// page has no formulas of its own; it runs this code, compiled to WebAssembly.
package model

import (
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/chart"
	"github.com/10f93571/retry/plot/picture"
	"github.com/10f93571/retry/task"
)

// Request is everything that the page shows.
type Request struct {
	Tasks int    `json:"tasks"`
	Seed  uint64 `json:"seed,string"` // a number of JavaScript would lose digits
	Specs []Spec `json:"specs"`
}

// Spec is one policy of a page.
type Spec struct {
	Label    string `json:"label"` // the name of a named policy, until it is changed
	Backoff  string `json:"backoff"`
	Jitter   string `json:"jitter"` // "" is the default of the curve
	Attempts int    `json:"attempts"`
	BudgetMS int64  `json:"budget_ms"`
	Move     *Move  `json:"move,omitempty"` // a slider that was moved
}

// Move sets a slider to a place from 0 to 1, or removes an optional parameter.
type Move struct {
	Index int     `json:"index"`
	Place float64 `json:"place"`
	None  bool    `json:"none"`
}

// Answer is what the page shows for a request.
type Answer struct {
	Tasks   int      `json:"tasks"` // how many were simulated
	Specs   []Shown  `json:"specs"`
	Curves  []Choice `json:"curves"`
	Jitters []Choice `json:"jitters"`
}

// Shown is one policy: its complete spec after a move, or an error.
type Shown struct {
	Spec
	Error      string         `json:"error"`
	Curve      string         `json:"curve"` // the name of its Choice
	JitterKind string         `json:"jitter_kind"`
	SVG        string         `json:"svg"`
	Figures    []chart.Figure `json:"figures"`
	Parameters []Parameter    `json:"parameters"`
	Retries    [][]string     `json:"retries"` // n, base, least, mean, most, CV
	Command    string         `json:"command"` // the command line for it
}

// Parameter is a slider.
type Parameter struct {
	Name     string  `json:"name"`
	Value    string  `json:"value"`
	Place    float64 `json:"place"`
	Optional bool    `json:"optional"`
}

// The page simulates all tasks while a slider moves, so there are limits.
const (
	maxTasks   = 10_000
	maxRetries = 200_000 // of the tasks of one policy
)

// Fit reduces the tasks to as many as the page can simulate while a slider moves.
func (r *Request) Fit() {
	r.Tasks = min(r.Tasks, maxTasks)
	for _, s := range r.Specs {
		r.Tasks = min(r.Tasks, max(1, maxRetries/max(1, s.Attempts)))
	}
}

// Answer simulates the specs. An error in one does not hide the others.
func (r Request) Answer() Answer {
	r.Fit()
	answer := Answer{Tasks: r.Tasks, Curves: Curves(), Jitters: Jitters()}
	var studies []plot.Study
	var places []int
	for i, s := range r.Specs {
		shown, study, err := r.show(s)
		if err != nil {
			shown.Error = err.Error()
		} else {
			studies, places = append(studies, study), append(places, i)
		}
		answer.Specs = append(answer.Specs, shown)
	}
	for i, svg := range picture.Each(studies) {
		answer.Specs[places[i]].SVG = svg
	}
	return answer
}

func (r Request) show(s Spec) (Shown, plot.Study, error) {
	// None is [] in JSON, not null.
	shown := Shown{Spec: s, Figures: []chart.Figure{}, Parameters: []Parameter{}, Retries: [][]string{}}
	spec, err := s.parse()
	if err != nil {
		return shown, plot.Study{}, err
	}
	shown.Backoff, shown.Jitter, shown.Move = spec.Curve(), spec.Jitter(), nil
	shown.Curve, shown.JitterKind = kindOfCurve(spec.Curve()), kindOfJitter(spec.Jitter())
	label := s.Label
	if label == "" {
		label = spec.Curve() + "/" + spec.Jitter()
	}
	policy := task.DefaultPolicy()
	policy.Backoff, policy.Attempts, policy.Budget = spec, s.Attempts, time.Duration(s.BudgetMS)*time.Millisecond
	options := plot.Options{Tasks: r.Tasks, Seed: r.Seed}
	study, err := plot.NewStudy(plot.Subject{Label: label, Policy: policy}, options)
	if err != nil {
		return shown, plot.Study{}, err
	}
	shown.describe(study, spec)
	shown.Command = command(shown.Spec)
	return shown, study, nil
}

func (s Spec) parse() (backoff.Spec, error) {
	spec, err := backoff.Parse(strings.TrimSpace(s.Backoff), strings.TrimSpace(s.Jitter))
	if err != nil || s.Move == nil {
		return spec, err
	}
	value := none
	if all := slidersOf(spec); !s.Move.None && s.Move.Index >= 0 && s.Move.Index < len(all) {
		value = all[s.Move.Index].at(s.Move.Place)
	}
	return withValue(spec, s.Move.Index, value)
}

// describe fills in the texts beside the picture.
func (s *Shown) describe(study plot.Study, spec backoff.Spec) {
	s.Figures = chart.Figures(study)
	for _, p := range slidersOf(spec) {
		value := p.value
		if p.unit == percentage {
			value += " %"
		}
		s.Parameters = append(s.Parameters, Parameter{Name: p.name, Value: value, Place: p.place(), Optional: p.optional})
	}
	for _, r := range study.Retries {
		most := formatDelay(r.Most)
		if r.Unbounded {
			most = "no bound"
		}
		s.Retries = append(s.Retries, []string{
			strconv.Itoa(r.N), formatDelay(r.Base), formatDelay(r.Least), formatDelay(r.Mean), most,
			strconv.FormatFloat(r.CV, 'f', 2, 64),
		})
	}
}

// formatDelay is a delay to the millisecond, as a spec would have it.
func formatDelay(d time.Duration) string {
	if d < time.Millisecond {
		return chart.FormatTime(d)
	}
	return text.FormatDuration(d.Round(time.Millisecond))
}

// command is the command line that runs something under a spec.
func command(s Spec) string {
	line := "retry -n " + strconv.Itoa(s.Attempts) + " -b " + quote(s.Backoff) + " -j " + quote(s.Jitter)
	if s.BudgetMS > 0 {
		line += " -B " + text.FormatDuration(time.Duration(s.BudgetMS)*time.Millisecond)
	}
	return line + " -- …"
}

// quote quotes a word for a shell where it needs that.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789:.,+%_-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
