package render

import (
	"io"
	"strconv"

	"github.com/10f93571/retry/plot"
)

type plotJSON struct {
	Tasks int            `json:"tasks"`
	Seed  uint64         `json:"seed"`
	Specs []plotSpecJSON `json:"specs"`
}

type plotSpecJSON struct {
	Label   string          `json:"label"`
	Backoff string          `json:"backoff"`
	Jitter  string          `json:"jitter"`
	Window  windowJSON      `json:"window_ms"`
	Load    loadJSON        `json:"load"`
	Retries []plotRetryJSON `json:"retries"`
}

type windowJSON struct {
	Min  int64 `json:"min"`
	Mean int64 `json:"mean"`
	Max  int64 `json:"max"`
}

type loadJSON struct {
	Peak  float64 `json:"peak"`
	Mean  float64 `json:"mean"`
	Idle  float64 `json:"idle"`
	Local float64 `json:"local"`
}

type plotRetryJSON struct {
	N      int     `json:"n"`
	BaseMS int64   `json:"base_ms"`
	MinMS  int64   `json:"min_ms"`
	MeanMS int64   `json:"mean_ms"`
	MaxMS  *int64  `json:"max_ms"`
	CV     float64 `json:"cv"`
}

// PlotJSON prints studies as JSON; docs/json.md describes it.
func PlotJSON(w io.Writer, studies []plot.Study, o plot.Options) error {
	j := plotJSON{Tasks: o.Tasks, Seed: o.Seed, Specs: []plotSpecJSON{}}
	for _, s := range studies {
		j.Specs = append(j.Specs, newPlotSpecJSON(s))
	}
	return writeJSON(w, j)
}

func newPlotSpecJSON(s plot.Study) plotSpecJSON {
	spec := s.Subject.Policy.Backoff
	j := plotSpecJSON{
		Label: s.Subject.Label, Backoff: spec.Curve(), Jitter: spec.Jitter(),
		Window:  windowJSON{s.Window.Least.Milliseconds(), s.Window.Mean.Milliseconds(), s.Window.Most.Milliseconds()},
		Load:    loadJSON{sixDigits(s.Load.Peak), sixDigits(s.Load.Mean), sixDigits(s.Load.Idle), sixDigits(s.Load.Local)},
		Retries: []plotRetryJSON{},
	}
	for _, r := range s.Retries {
		j.Retries = append(j.Retries, plotRetryJSON{
			N: r.N, BaseMS: r.Base.Milliseconds(), MinMS: r.Least.Milliseconds(), MeanMS: r.Mean.Milliseconds(), MaxMS: bound(r), CV: sixDigits(r.CV),
		})
	}
	return j
}

// bound is the longest wait; nil where none keeps it below what every delay saturates at.
func bound(r plot.Retry) *int64 {
	if r.Unbounded {
		return nil
	}
	most := r.Most.Milliseconds()
	return &most
}

// sixDigits leaves out digits that say nothing.
func sixDigits(x float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		return x
	}
	return short
}
