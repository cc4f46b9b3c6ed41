package main

// target is one line of what is to be reached, with what was found. P10 is the same from 10th percentiles, and CPU from the medians of
// processor time, which other work on the machine disturbs less; null where there is but one figure.
type target struct {
	What    string   `json:"what"`
	Unit    string   `json:"unit"`
	AtMost  float64  `json:"at_most"`
	Median  float64  `json:"median"`
	P10     *float64 `json:"p10"`
	CPU     *float64 `json:"cpu"`
	Reached bool     `json:"reached"` // by the median
}

// of picks one statistic of a row.
type of func(*row) float64

func medians(r *row) float64 { return r.Median }
func tenths(r *row) float64  { return r.P10 }
func ofCPU(r *row) float64   { return r.CPU }

// finding is a figure of a report by one statistic; false where the rows were left out.
type finding func(r report, s of) (float64, bool)

// aims are those of issue 7 and of SPEC section 9, as far as this program measures them.
var aims = []struct {
	what, unit string
	atMost     float64
	find       finding
}{
	{"`retry -- true` to Debian's", "×", 1.9, quotient("success", "retry", debian)},
	{"`retry -- true` to a loop in Go that remembers nothing", "×", 1.0, quotient("success", "retry", "loop")},
	{"`retry -- true` to recur", "×", 1.0, quotient("success", "retry", "recur")},
	{"`retry -- true` over a Go program that runs true", "ms", 0.5, difference("success", "retry", "fork", 1)},
	{"100 attempts of false to Debian's", "×", 1.0, quotient("hundred", "retry", debian)},
	{"the journal's share of an attempt", "ms", 0.1, difference("hundred", "retry", "no-state", 100)},
	{"64 at once, to as many with `--no-state`", "×", 1.3, quotient("together", "retry", "no-state")},
	{"a journal of a million attempts, to an empty one", "×", 1.1, quotient("million", "million", bare)},
	{"`retry status` with a million attempts", "ms", 30, value("million", "status")},
}

// quotient is one row's figure by another's of its group.
func quotient(group, a, b string) finding {
	return func(r report, s of) (float64, bool) {
		x, y := r.row(group, a), r.row(group, b)
		if x == nil || y == nil || s(y) == 0 {
			return 0, false
		}
		return s(x) / s(y), true
	}
}

// difference is what one row's figure is above another's, for each of so many attempts.
func difference(group, a, b string, attempts float64) finding {
	return func(r report, s of) (float64, bool) {
		x, y := r.row(group, a), r.row(group, b)
		if x == nil || y == nil {
			return 0, false
		}
		return (s(x) - s(y)) / attempts, true
	}
}

func value(group, name string) finding {
	return func(r report, s of) (float64, bool) {
		x := r.row(group, name)
		if x == nil {
			return 0, false
		}
		return s(x), true
	}
}

// row finds a row by its names, nil where there is none.
func (r report) row(group, name string) *row {
	for _, g := range r.Groups {
		for i := range g.Rows {
			if g.Name == group && g.Rows[i].Name == name {
				return &g.Rows[i]
			}
		}
	}
	return nil
}

// reached holds a report against what is to be reached, as far as it goes.
func reached(r report) (all []target) {
	for _, a := range aims {
		m, ok := a.find(r, medians)
		if !ok {
			continue
		}
		p10, _ := a.find(r, tenths)
		cpu, _ := a.find(r, ofCPU)
		all = append(all, target{a.what, a.unit, a.atMost, m, &p10, &cpu, m <= a.atMost})
	}
	if r.Start != nil {
		all = append(all, target{"packages initialise", "ms", 0.5, r.Start.Median, &r.Start.P10, nil, r.Start.Median <= 0.5})
	}
	for _, w := range r.Waiting {
		if w.Name != debian {
			mib := float64(w.Resident) / 1024
			all = append(all, target{"resident while waiting: `" + w.Command + "`", "MiB", 12, mib, nil, nil, mib <= 12})
		}
	}
	return all
}
