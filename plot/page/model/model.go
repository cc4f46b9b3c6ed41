// Package model is what the page asks and is told: policies in, their pictures, figures and sliders out. The page holds no formula; it
// runs this very code, compiled to WebAssembly.
package model

import (
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
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
	Label    string `json:"label"` // of a named policy, as long as it is the one that was named
	Backoff  string `json:"backoff"`
	Jitter   string `json:"jitter"` // "" is the curve's own
	Attempts int    `json:"attempts"`
	BudgetMS int64  `json:"budget_ms"`
	Move     *Move  `json:"move,omitempty"` // a slider that was moved since
}

// Move puts a slider to a place from 0 to 1, or takes an optional parameter away.
type Move struct {
	Index int     `json:"index"`
	Place float64 `json:"place"`
	None  bool    `json:"none"`
}

// Answer is what the page shows of a request.
type Answer struct {
	Tasks   int      `json:"tasks"` // how many were played through
	Specs   []Shown  `json:"specs"`
	Curves  []Choice `json:"curves"`
	Jitters []Choice `json:"jitters"`
}

// Shown is one policy: its spec in full after a move, or what is wrong with it.
type Shown struct {
	Spec
	Error      string      `json:"error"`
	Curve      string      `json:"curve"` // which Choice it is
	Bend       string      `json:"bend"`
	SVG        string      `json:"svg"`
	Figures    []Figure    `json:"figures"`
	Parameters []Parameter `json:"parameters"`
	Retries    [][]string  `json:"retries"` // n, base, least, mean, most, CV
	Command    string      `json:"command"` // what to type for it
}

// Figure is a line of the table below a picture.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Parameter is a slider.
type Parameter struct {
	Name     string  `json:"name"`
	Value    string  `json:"value"`
	Place    float64 `json:"place"`
	Optional bool    `json:"optional"`
}

// What keeps the page quick: it plays every task through while a slider moves.
const (
	mostTasks   = 10_000
	mostRetries = 200_000 // of the tasks of one policy
)

// Fit has the page play no more tasks than it can while a slider moves.
func (r *Request) Fit() {
	r.Tasks = min(r.Tasks, mostTasks)
	for _, s := range r.Specs {
		r.Tasks = min(r.Tasks, max(1, mostRetries/max(1, s.Attempts)))
	}
}

// Answer plays the specs through. What is wrong with one is said in its place; the others are shown.
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
	shown := Shown{Spec: s, Figures: []Figure{}, Parameters: []Parameter{}, Retries: [][]string{}} // none is [] in JSON, not null
	spec, err := s.parse()
	if err != nil {
		return shown, plot.Study{}, err
	}
	shown.Backoff, shown.Jitter, shown.Move = spec.Curve(), spec.Jitter(), nil
	shown.Curve, shown.Bend = kindOfCurve(spec.Curve()), kindOfJitter(spec.Jitter())
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
	shown.tell(study, spec)
	shown.Command = command(shown.Spec)
	return shown, study, nil
}

func (s Spec) parse() (backoff.Spec, error) {
	spec, err := backoff.Parse(strings.TrimSpace(s.Backoff), strings.TrimSpace(s.Jitter))
	if err != nil || s.Move == nil {
		return spec, err
	}
	value := backoff.None
	if all := spec.Parameters(); !s.Move.None && s.Move.Index >= 0 && s.Move.Index < len(all) {
		value = all[s.Move.Index].At(s.Move.Place)
	}
	return spec.Set(s.Move.Index, value)
}

// tell fills in what is written beside the picture.
func (s *Shown) tell(study plot.Study, spec backoff.Spec) {
	for _, f := range chart.Figures(study) {
		s.Figures = append(s.Figures, Figure(f))
	}
	for _, p := range spec.Parameters() {
		s.Parameters = append(s.Parameters, parameter(p))
	}
	for _, r := range study.Retries {
		s.Retries = append(s.Retries, row(r))
	}
}
