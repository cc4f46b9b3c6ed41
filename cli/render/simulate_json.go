package render

import (
	"io"
	"time"

	"github.com/10f93571/retry/plot"
)

type lockJSON struct {
	Clients int         `json:"clients"`
	HoldMS  int64       `json:"hold_ms"`
	SpinMS  int64       `json:"spin_ms"`
	Seed    uint64      `json:"seed"`
	IdealMS int64       `json:"ideal_ms"`
	Specs   []trialJSON `json:"specs"`
}

type outageJSON struct {
	Clients  int         `json:"clients"`
	DownMS   int64       `json:"down_ms"`
	Capacity int         `json:"capacity"`
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

// LockJSON writes the trials of a lock; docs/json.md describes them.
func LockJSON(w io.Writer, l plot.Lock, trials []plot.Trial) error {
	j := lockJSON{Clients: l.Clients, HoldMS: l.Hold.Milliseconds(), SpinMS: l.Spin.Milliseconds(), Seed: l.Seed, IdealMS: l.Ideal().Milliseconds()}
	for _, t := range trials {
		spec := trialToJSON(t)
		spec.Collisions, spec.CollisionsPerWave = &t.Refused, t.ByWave
		j.Specs = append(j.Specs, spec)
	}
	return writeJSON(w, j)
}

// OutageJSON writes the trials of an outage; docs/json.md describes them.
func OutageJSON(w io.Writer, o plot.Outage, trials []plot.Trial) error {
	j := outageJSON{Clients: o.Clients, DownMS: o.Down.Milliseconds(), Capacity: o.Capacity, Seed: o.Seed, IdealMS: o.Ideal().Milliseconds()}
	for _, t := range trials {
		spec := trialToJSON(t)
		spec.Rejected = &t.Refused
		j.Specs = append(j.Specs, spec)
	}
	return writeJSON(w, j)
}

func trialToJSON(t plot.Trial) trialJSON {
	spec := t.Subject.Policy.Backoff
	return trialJSON{
		Label: t.Subject.Label, Backoff: spec.Curve(), Jitter: spec.Jitter(), Calls: t.Calls,
		Wait:       waitJSON{whenever(t.Wait.P50), whenever(t.Wait.P95), whenever(t.Wait.P99)},
		Done:       doneJSON{whenever(t.Done.P99), whenever(t.Done.All)},
		Unfinished: t.Left,
	}
}

// whenever is null for never.
func whenever(d time.Duration) *int64 {
	if d == plot.Never {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
