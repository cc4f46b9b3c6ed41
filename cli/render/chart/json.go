package chart

import (
	"io"
	"strconv"
	"time"

	"github.com/10f93571/retry/cli/render"
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
	MaxMS  *int64  `json:"max_ms"` // null where nothing but the limit of all delays bounds it
	CV     float64 `json:"cv"`
}

// PlotJSON prints studies as JSON; docs/json.md describes it.
func PlotJSON(w io.Writer, studies []plot.Study, o plot.Options) error {
	j := plotJSON{Tasks: o.Tasks, Seed: o.Seed, Specs: []plotSpecJSON{}}
	for _, s := range studies {
		spec := s.Subject.Policy.Backoff
		jSpec := plotSpecJSON{
			Label: s.Subject.Label, Backoff: spec.Curve(), Jitter: spec.Jitter(),
			Window:  windowJSON{s.Window.Least.Milliseconds(), s.Window.Mean.Milliseconds(), s.Window.Most.Milliseconds()},
			Load:    loadJSON{sixDigits(s.Load.Peak), sixDigits(s.Load.Mean), sixDigits(s.Load.Idle), sixDigits(s.Load.Local)},
			Retries: []plotRetryJSON{},
		}
		for _, r := range s.Retries {
			retry := plotRetryJSON{
				N: r.N, BaseMS: r.Base.Milliseconds(), MinMS: r.Least.Milliseconds(), MeanMS: r.Mean.Milliseconds(),
				CV: sixDigits(r.CV),
			}
			if !r.Unbounded {
				retry.MaxMS = new(r.Most.Milliseconds())
			}
			jSpec.Retries = append(jSpec.Retries, retry)
		}
		j.Specs = append(j.Specs, jSpec)
	}
	return render.WriteJSON(w, j)
}

// sixDigits rounds to six significant digits.
func sixDigits(x float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // it has just been written
	return short
}

// simulationJSON is of a lock (hold, spin) or of an outage (down, capacity).
type simulationJSON struct {
	Clients  int         `json:"clients"`
	HoldMS   *int64      `json:"hold_ms,omitempty"`
	SpinMS   *int64      `json:"spin_ms,omitempty"`
	DownMS   *int64      `json:"down_ms,omitempty"`
	Capacity int         `json:"capacity,omitempty"`
	Seed     uint64      `json:"seed"`
	IdealMS  int64       `json:"ideal_ms"`
	Specs    []trialJSON `json:"specs"`
}

type trialJSON struct {
	Label             string   `json:"label"`
	Backoff           string   `json:"backoff"`
	Jitter            string   `json:"jitter"`
	Calls             int      `json:"calls"`
	Rejected          *int     `json:"rejected"`
	Collisions        *int     `json:"collisions"`
	CollisionsPerWave []int    `json:"collisions_per_wave"`
	Wait              waitJSON `json:"wait_ms"`
	Done              doneJSON `json:"done_ms"`
	Unfinished        int      `json:"unfinished"`
}

type waitJSON struct {
	P50 *int64 `json:"p50"`
	P95 *int64 `json:"p95"`
	P99 *int64 `json:"p99"`
}

type doneJSON struct {
	P99 *int64 `json:"p99"`
	All *int64 `json:"all"`
}

// SimulationJSON writes the trials of a lock or an outage; docs/json.md describes them.
func SimulationJSON(w io.Writer, simulation plot.Simulation, trials []plot.Trial) error {
	j := simulationJSON{IdealMS: simulation.Ideal().Milliseconds()}
	for _, t := range trials {
		j.Specs = append(j.Specs, trialToJSON(t))
	}
	switch of := simulation.(type) {
	case plot.Lock:
		j.Clients, j.Seed, j.HoldMS, j.SpinMS = of.Clients, of.Seed, new(of.Hold.Milliseconds()), new(of.Spin.Milliseconds())
		for i := range trials {
			j.Specs[i].Collisions, j.Specs[i].CollisionsPerWave = &trials[i].Refused, trials[i].ByWave
		}
	case plot.Outage:
		j.Clients, j.Seed, j.DownMS, j.Capacity = of.Clients, of.Seed, new(of.Down.Milliseconds()), of.Capacity
		for i := range trials {
			j.Specs[i].Rejected = &trials[i].Refused
		}
	}
	return render.WriteJSON(w, j)
}

func trialToJSON(t plot.Trial) trialJSON {
	spec := t.Subject.Policy.Backoff
	return trialJSON{
		Label: t.Subject.Label, Backoff: spec.Curve(), Jitter: spec.Jitter(), Calls: t.Calls,
		Wait:       waitJSON{nullIfNever(t.Wait.P50), nullIfNever(t.Wait.P95), nullIfNever(t.Wait.P99)},
		Done:       doneJSON{nullIfNever(t.Done.P99), nullIfNever(t.Done.All)},
		Unfinished: t.Left,
	}
}

// nullIfNever makes plot.Never null in JSON.
func nullIfNever(d time.Duration) *int64 {
	if d == plot.Never {
		return nil
	}
	return new(d.Milliseconds())
}
