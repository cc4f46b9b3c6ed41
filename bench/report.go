package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// report is what a run of bench found. docs/speed.md tells of its JSON.
type report struct {
	Facts   facts     `json:"facts"`
	Missing []string  `json:"missing"` // whose rows were left out
	Targets []target  `json:"targets"`
	Groups  []figures `json:"groups"`
	Waiting []waiting `json:"waiting"`
	Start   *start    `json:"start"`
}

// figures are one group's rows.
type figures struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Runs  int    `json:"runs"`
	Bytes int64  `json:"bytes"` // that each run passes on, or 0
	Rows  []row  `json:"rows"`
}

// row is one command's figures; ratios are of medians, null where there is nothing to compare with.
type row struct {
	Name     string   `json:"name"`
	Command  string   `json:"command"`
	Median   float64  `json:"median_ms"`
	P10      float64  `json:"p10_ms"`
	P90      float64  `json:"p90_ms"`
	CPU      float64  `json:"cpu_ms"`
	PeakKiB  int64    `json:"peak_rss_kib"` // 0 where it was not watched
	ToBare   *float64 `json:"ratio_to_bare"`
	ToDebian *float64 `json:"ratio_to_debian"`
}

// summarise makes the rows; samples and peaks are in the order of the commands.
func (g group) summarise(samples [][]sample, peaks []int64) figures {
	base := map[string]time.Duration{}
	for i, c := range g.commands {
		base[c.name] = median(walls(samples[i]))
	}
	f := figures{Name: g.name, Title: g.title, Runs: g.runs, Bytes: g.bytes}
	for i, c := range g.commands {
		wall := walls(samples[i])
		f.Rows = append(f.Rows, row{
			Name:     c.name,
			Command:  c.label,
			Median:   ms(median(wall)),
			P10:      ms(percentile(wall, 10)),
			P90:      ms(percentile(wall, 90)),
			CPU:      ms(median(cpus(samples[i]))),
			PeakKiB:  peaks[i],
			ToBare:   ratio(median(wall), base[bare]),
			ToDebian: ratio(median(wall), base[debian]),
		})
	}
	return f
}

func walls(samples []sample) []time.Duration {
	var all []time.Duration
	for _, s := range samples {
		all = append(all, s.wall)
	}
	return all
}

func cpus(samples []sample) []time.Duration {
	var all []time.Duration
	for _, s := range samples {
		all = append(all, s.cpu)
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// writeJSON writes the report to a file, nowhere for "".
func (r report) writeJSON(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
