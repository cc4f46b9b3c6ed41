package main

import "testing"

// found is a report with the rows that two targets need: 4 ms over 2 at the median, 3 over 2 at the 10th percentile.
func found() report {
	return report{Groups: []figures{
		{Name: "other", Rows: []row{{Name: "retry", Median: 99}}},
		{Name: "success", Rows: []row{{Name: debian, Median: 2, P10: 2, CPU: 1}, {Name: "fork", Median: 3.6, P10: 2, CPU: 1}, {Name: "retry", Median: 4, P10: 3, CPU: 6}}},
	}}
}

func TestReached(t *testing.T) {
	r := found()
	r.Start = &start{Median: 0.6, P10: 0.4}
	r.Waiting = []waiting{{Name: debian, Resident: 1 << 20}, {Name: "retry", Command: "waits", Resident: 12 * 1024}}
	for i, want := range []struct {
		what             string
		median, p10, cpu float64
		reached          bool
	}{
		{"`retry -- true` to Debian's", 2, 1.5, 6, false},
		{"`retry -- true` over a Go program that runs true", 0.4, 1, 5, true},
		{"packages initialise", 0.6, 0.4, 0, false},
		{"resident while waiting: `waits`", 12, 0, 0, true},
	} {
		all := reached(r)
		if len(all) != 4 {
			t.Fatalf("%d targets: %+v", len(all), all)
		}
		got := all[i]
		if got.What != want.what || !near(got.Median, want.median) || got.Reached != want.reached {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if (got.P10 == nil) != (want.p10 == 0) || got.P10 != nil && !near(*got.P10, want.p10) {
			t.Errorf("%s: by 10th percentiles %v, want %v", got.What, got.P10, want.p10)
		}
		if (got.CPU == nil) != (want.cpu == 0) || got.CPU != nil && !near(*got.CPU, want.cpu) {
			t.Errorf("%s: by CPU %v, want %v", got.What, got.CPU, want.cpu)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestFindings(t *testing.T) {
	for name, test := range map[string]struct {
		find finding
		want float64
		ok   bool
	}{
		"a quotient":              {quotient("success", "retry", debian), 2, true},
		"a quotient, no group":    {quotient("none", "retry", debian), 0, false},
		"a quotient, no row":      {quotient("success", "retry", "recur"), 0, false},
		"a quotient of nothing":   {quotient("other", "retry", "zero"), 0, false},
		"a difference":            {difference("success", "retry", debian, 4), 0.5, true},
		"a difference, no row":    {difference("success", "recur", debian, 1), 0, false},
		"a value":                 {value("success", "fork"), 3.6, true},
		"a value that is nowhere": {value("success", "status"), 0, false},
	} {
		r := found()
		r.Groups[0].Rows = append(r.Groups[0].Rows, row{Name: "zero"})
		if got, ok := test.find(r, medians); !near(got, test.want) || ok != test.ok {
			t.Errorf("%s: %v, %t; want %v, %t", name, got, ok, test.want, test.ok)
		}
	}
}
