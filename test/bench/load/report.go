package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Number is one figure of a row. A report has the median of all runs, or the worst of them.
type Number struct {
	Name  string    `json:"name,omitempty"`
	Unit  string    `json:"unit"`
	Value float64   `json:"value"`
	Runs  []float64 `json:"runs"`
	Worst int       `json:"-"` // 1: the report has the largest; -1: the smallest
}

// Result is a row of one system.
type Result struct {
	Row       string   `json:"row"`
	Title     string   `json:"title"`
	System    string   `json:"system"`
	Numbers   []Number `json:"numbers,omitempty"`
	Reach     string   `json:"reach,omitempty"`
	Handicaps string   `json:"handicaps,omitempty"`
	Error     string   `json:"error,omitempty"`
}

// Plan is what a report measures.
type Plan struct {
	Systems []System
	Rows    []Row
	Runs    int // of short rows; long ones have a third
	Sizes   Sizes
	// Leaves says which rows a system is left out of; nil is none.
	Leaves func(row string, s System) bool
	// Log takes a line for each run.
	Log io.Writer
}

// Measure runs each row on one system after the other, and that as often as the plan says: a busy moment of the machine
// affects all alike. What did not come within the patience is not waited for once more. A row that fails is told in its
// result, and the others go on. Only the end of the context ends all.
func (p Plan) Measure(ctx context.Context) ([]Result, error) {
	target, err := NewTarget()
	if err != nil {
		return nil, err
	}
	defer target.Close()
	var results []Result
	filled := map[System]bool{} // stores that have the million, which one row leaves to the next
	for _, row := range p.Rows {
		first := len(results)
		var systems []System
		for _, s := range p.Systems {
			if p.Leaves != nil && p.Leaves(row.Name, s) {
				continue
			}
			systems = append(systems, s)
			r := Result{Row: row.Name, Title: row.Title, System: s.Name(), Handicaps: s.Handicaps(row.Name)}
			if len(results) == first {
				r.Reach = row.Reach
			}
			results = append(results, r)
		}
		runs := p.Runs
		if row.long {
			runs /= 3
		}
		for run := range max(1, runs) {
			for i, s := range systems {
				if n := results[first+i].Numbers; len(n) > 0 && n[0].Name == moreThan {
					continue
				}
				fmt.Fprintf(p.Log, "%s, run %d: %s\n", row.Title, run+1, s.Name())
				numbers, err := p.once(ctx, row, s, target, filled)
				if ctx.Err() != nil {
					return results, ctx.Err()
				}
				if err != nil { // the table has its first line
					fmt.Fprintln(p.Log, err)
				}
				results[first+i].add(numbers, err)
			}
		}
	}
	return results, nil
}

// once measures a row of a system. Systems whose stores have the million are filled.
func (p Plan) once(ctx context.Context, row Row, s System, t *Target, filled map[System]bool) ([]Number, error) {
	switch {
	case !row.beside:
		delete(filled, s) // the row begins with another store
	case !filled[s]:
		if err := fillMillion(ctx, s, t, p.Sizes); err != nil {
			return nil, err
		}
		filled[s] = true
	}
	return row.measure(ctx, s, t, p.Sizes)
}

// add takes the numbers of one more run.
func (r *Result) add(numbers []Number, err error) {
	if err != nil {
		r.Error = cmp.Or(r.Error, err.Error())
		return
	}
	for _, n := range numbers {
		i := slices.IndexFunc(r.Numbers, func(m Number) bool { return m.Name == n.Name })
		if i < 0 {
			i, r.Numbers = len(r.Numbers), append(r.Numbers, n)
		}
		r.Numbers[i].Runs = append(r.Numbers[i].Runs, n.Value)
		all := r.Numbers[i].Runs
		switch n.Worst {
		case 1:
			r.Numbers[i].Value = slices.Max(all)
		case -1:
			r.Numbers[i].Value = slices.Min(all)
		default:
			r.Numbers[i].Value = Percentile(all, 50)
		}
	}
}

// Failed is an error that names the rows that have failed, or nil. It is for the exit code: the table has their errors.
func Failed(results []Result) error {
	var failed []string
	for _, r := range results {
		if r.Error != "" {
			failed = append(failed, r.Row+" of "+r.System)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d rows failed: %s", len(failed), strings.Join(failed, "; "))
}

// Markdown prints a table with a line for each row and a column for each system. The first system is compared with the
// others. What a system does less or more than the others is told below.
func Markdown(out io.Writer, results []Result) {
	var systems, rows []string
	for _, r := range results {
		if !slices.Contains(systems, r.System) {
			systems = append(systems, r.System)
		}
		if !slices.Contains(rows, r.Row) {
			rows = append(rows, r.Row)
		}
	}
	fmt.Fprintf(out, "| | %s | ratio | to reach |\n|---|%s---|---|\n", strings.Join(systems, " | "),
		strings.Repeat("---|", len(systems)))
	var notes strings.Builder
	for _, row := range rows {
		cells := make([]string, len(systems))
		var title, reach string
		for i, system := range systems {
			r := find(results, row, system)
			if r == nil {
				continue
			}
			cells[i], title, reach = r.cell(), r.Title, cmp.Or(reach, r.Reach)
			if r.Handicaps != "" {
				fmt.Fprintf(&notes, "- %s, %s: %s.\n", r.Title, r.System, r.Handicaps)
			}
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", title, strings.Join(cells, " | "),
			ratios(results, row, systems), reach)
	}
	if notes.Len() > 0 {
		fmt.Fprintf(out, "\n%s", &notes)
	}
}

func find(results []Result, row, system string) *Result {
	i := slices.IndexFunc(results, func(r Result) bool { return r.Row == row && r.System == system })
	if i < 0 {
		return nil
	}
	return &results[i]
}

// cell has all figures of a row of a system.
func (r *Result) cell() string {
	said := make([]string, 0, len(r.Numbers)+1)
	for _, n := range r.Numbers {
		said = append(said, n.String())
	}
	if r.Error != "" {
		text, _, _ := strings.Cut(r.Error, "\n")
		said = append(said, "**failed**: "+strings.ReplaceAll(text, "|", "\\|"))
	}
	return strings.Join(said, ", ")
}

// ratios compares the first system's rate and processor time with those of the others, and with its own where no
// million waits.
func ratios(results []Result, row string, systems []string) string {
	var said []string
	ours := find(results, row, systems[0])
	compare := func(to *Result, what string) {
		for _, name := range []string{"", processorTime} {
			a, b := ours.value(name), to.value(name)
			if a > 0 && b > 0 {
				said = append(said, strings.TrimPrefix(name+" ", " ")+fmt.Sprintf("%.2f × %s", a/b, what))
			}
		}
	}
	if row == "million-attempts" {
		compare(find(results, "attempts", systems[0]), "with none")
	}
	for _, system := range systems[1:] {
		compare(find(results, row, system), system)
	}
	return strings.Join(said, ", ")
}

// value is the figure of that name; 0 where there is none. A rate has no name.
func (r *Result) value(name string) float64 {
	if r == nil {
		return 0
	}
	for _, n := range r.Numbers {
		if n.Name == name {
			return n.Value
		}
	}
	return 0
}

// String is a number with three significant digits and its unit, such as "p99 2.31 ms" and "28,900/s".
func (n Number) String() string {
	value := fmt.Sprintf("%.3g", n.Value)
	switch {
	case n.Value >= 100 || n.Value <= -100:
		value = thousands(fmt.Sprintf("%.0f", n.Value))
	case n.Value == float64(int(n.Value)):
		value = fmt.Sprintf("%d", int(n.Value))
	}
	unit := " " + n.Unit
	if strings.HasPrefix(n.Unit, "/") {
		unit = n.Unit
	}
	return strings.TrimPrefix(n.Name+" ", " ") + value + unit
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// JSON writes all results with the figures of each run.
func JSON(out io.Writer, results []Result) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(results)
}

// Percentile is the smallest figure that at least p percent of all do not exceed. Of none it is 0.
func Percentile(all []float64, p int) float64 {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[max((len(all)*p+99)/100, 1)-1]
}

// Choose returns the rows of the given names, separated by commas; "" are all.
func Choose(names string) ([]Row, error) {
	rows := Rows()
	if names == "" {
		return rows, nil
	}
	var chosen []Row
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown row %q", name)
		}
		chosen = append(chosen, rows[i])
	}
	return chosen, nil
}
