package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// report is what a run of bench found.
type report struct {
	Facts  facts     `json:"facts"`
	Groups []figures `json:"groups"`
}

// figures are one group's rows.
type figures struct {
	Title string `json:"title"`
	Runs  int    `json:"runs"`
	Rows  []row  `json:"rows"`
}

// row is one command's figures; ratios are of medians, null where there is nothing to compare with.
type row struct {
	Command  string   `json:"command"`
	Median   float64  `json:"median_ms"`
	Min      float64  `json:"min_ms"`
	P90      float64  `json:"p90_ms"`
	CPU      float64  `json:"cpu_ms"`
	PeakKiB  int64    `json:"peak_rss_kib"`
	ToBare   *float64 `json:"ratio_to_bare"`
	ToDebian *float64 `json:"ratio_to_debian"`
}

// summarise makes the rows; samples and peaks are in the order of the commands.
func (g group) summarise(samples [][]sample, peaks []int64) figures {
	base := map[role]time.Duration{}
	for i, c := range g.commands {
		if c.role != ours {
			base[c.role] = median(walls(samples[i]))
		}
	}
	f := figures{Title: g.title, Runs: g.runs}
	for i, c := range g.commands {
		wall := walls(samples[i])
		f.Rows = append(f.Rows, row{
			Command:  c.label,
			Median:   ms(median(wall)),
			Min:      ms(percentile(wall, 0)),
			P90:      ms(percentile(wall, 90)),
			CPU:      ms(median(cpus(samples[i]))),
			ToBare:   ratio(median(wall), base[bare]),
			PeakKiB:  peaks[i],
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

// markdown writes the figures as tables for the README.
func (r report) markdown(w io.Writer) {
	fmt.Fprintln(w, r.Facts)
	if !slices.ContainsFunc(r.Groups, figures.comparesDebian) {
		fmt.Fprintln(w, "\nDebian's retry is not installed: its rows are left out.")
	}
	for _, g := range r.Groups {
		fmt.Fprintf(w, "\n| %s (%d runs) | median ms | min | p90 | CPU ms | peak MiB | to bare | to Debian's |\n", g.Title, g.Runs)
		fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|")
		for _, x := range g.Rows {
			fmt.Fprintf(w, "| `%s` | %.2f | %.2f | %.2f | %.2f | %s | %s | %s |\n",
				x.Command, x.Median, x.Min, x.P90, x.CPU, mebibytes(x.PeakKiB), times(x.ToBare), times(x.ToDebian))
		}
	}
}

func (f figures) comparesDebian() bool {
	return slices.ContainsFunc(f.Rows, func(r row) bool { return r.ToDebian != nil })
}

func mebibytes(kib int64) string {
	if kib == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", float64(kib)/1024)
}

func times(r *float64) string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f ×", *r)
}

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
