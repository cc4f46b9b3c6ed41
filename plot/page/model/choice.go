package model

import (
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/chart"
)

// Choice is a kind of curve or jitter, with a spec to begin with.
type Choice struct {
	Name string `json:"name"`
	Spec string `json:"spec"`
}

// Curves are the kinds of curve and the presets.
func Curves() (all []Choice) {
	for _, example := range backoff.CurveExamples() {
		all = append(all, Choice{kindOfCurve(example), example})
	}
	for _, p := range backoff.Presets() {
		all = append(all, Choice{p.Name, p.Name})
	}
	return all
}

// Jitters are the kinds of jitter.
func Jitters() (all []Choice) {
	for _, example := range backoff.JitterExamples() {
		all = append(all, Choice{kindOfJitter(example), example})
	}
	return all
}

func kindOfCurve(spec string) string {
	kind, _, _ := strings.Cut(spec, ":")
	return kind
}

func kindOfJitter(spec string) string {
	if strings.HasSuffix(spec, "%") {
		return "± %"
	}
	kind, _, _ := strings.Cut(spec, ":")
	return kind
}

func parameter(p backoff.Parameter) Parameter {
	name, value := p.Name, p.Value
	if p.Jitter {
		name = "jitter, " + name
	}
	if p.Unit == backoff.UnitPercent {
		value += " %"
	}
	return Parameter{Name: name, Value: value, Place: p.Place(), Optional: p.Optional}
}

// row is a line of the table of all retries.
func row(r plot.Retry) []string {
	most := exact(r.Most)
	if r.Unbounded {
		most = "no bound"
	}
	return []string{strconv.Itoa(r.N), exact(r.Base), exact(r.Least), exact(r.Mean), most, strconv.FormatFloat(r.CV, 'f', 2, 64)}
}

// exact is a delay to the millisecond, as a spec would have it.
func exact(d time.Duration) string {
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

// quote puts a word into quotes where a shell would do something with it.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(":.,+%_-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
