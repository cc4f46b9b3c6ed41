package main

import (
	"fmt"
	"io"
)

// markdown writes the figures as tables for docs/speed.md.
func (r report) markdown(w io.Writer) {
	fmt.Fprintln(w, r.Facts)
	for _, line := range r.Missing {
		fmt.Fprintf(w, "\n%s\n", line)
	}
	r.targetTable(w)
	for _, f := range r.Groups {
		if f.Bytes > 0 {
			f.byteTable(w)
		} else {
			f.table(w)
		}
	}
	r.waitingTable(w)
	if r.Start != nil {
		fmt.Fprintf(w, "\nPackages initialise in %.2f ms (median; 10th percentile %.2f), with %d bytes in %d allocations.\n",
			r.Start.Median, r.Start.P10, r.Start.Bytes, r.Start.Allocs)
	}
}

func (r report) targetTable(w io.Writer) {
	if len(r.Targets) == 0 {
		return
	}
	fmt.Fprint(w, "\n| what | to reach | by medians | by 10th percentiles | by CPU | |\n|---|--:|--:|--:|--:|---|\n")
	for _, t := range r.Targets {
		word := "missed"
		if t.Reached {
			word = "reached"
		}
		fmt.Fprintf(w, "| %s | ≤ %g %s | %.2f | %s | %s | %s |\n", t.What, t.AtMost, t.Unit, t.Median, figure(t.P10), figure(t.CPU), word)
	}
}

func (f figures) table(w io.Writer) {
	fmt.Fprintf(w, "\n| %s (%d runs) | median ms | p10 | p90 | CPU ms | peak MiB | to bare | to Debian's |\n", f.Title, f.Runs)
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|")
	for _, x := range f.Rows {
		fmt.Fprintf(w, "| `%s` | %.2f | %.2f | %.2f | %.2f | %s | %s | %s |\n",
			x.Command, x.Median, x.P10, x.P90, x.CPU, mebibytes(x.PeakKiB), times(x.ToBare), times(x.ToDebian))
	}
}

// byteTable gives the speed in place of the memory: a pipeline has many processes.
func (f figures) byteTable(w io.Writer) {
	fmt.Fprintf(w, "\n| %s (%d runs) | MiB/s | median ms | p10 | CPU ms | to cat |\n", f.Title, f.Runs)
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|")
	for _, x := range f.Rows {
		fmt.Fprintf(w, "| `%s` | %.0f | %.0f | %.0f | %.0f | %s |\n", x.Command, f.speed(x), x.Median, x.P10, x.CPU, times(x.ToBare))
	}
}

// speed is in MiB a second, by the median.
func (f figures) speed(x row) float64 { return float64(f.Bytes) / (1 << 20) / (x.Median / 1000) }

func (r report) waitingTable(w io.Writer) {
	if len(r.Waiting) == 0 {
		return
	}
	fmt.Fprint(w, "\n| Memory while waiting, MiB | peak | resident | of which its own |\n|---|--:|--:|--:|\n")
	for _, x := range r.Waiting {
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", x.Command, mebibytes(x.Peak), mebibytes(x.Resident), mebibytes(x.Own))
	}
}

func figure(f *float64) string {
	if f == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *f)
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
