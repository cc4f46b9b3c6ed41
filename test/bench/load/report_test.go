package load

import (
	"strings"
	"testing"
)

func TestPercentile(t *testing.T) {
	ten := []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for _, test := range []struct {
		name string
		all  []float64
		p    int
		want float64
	}{
		{"none", nil, 50, 0},
		{"the only one", []float64{3}, 90, 3},
		{"the smallest", ten, 0, 1},
		{"exactly on a rank", ten, 90, 9},
		{"just past a rank", ten, 91, 10},
		{"the largest", ten, 100, 10},
		{"the median of an odd number", []float64{9, 1, 5}, 50, 5},
		{"the median of two", []float64{2, 1}, 50, 1},
	} {
		if got := Percentile(test.all, test.p); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
	if ten[0] != 10 {
		t.Error("got a sorted argument, want Percentile to leave it")
	}
}

func TestMarkdownHasALineARowAndAColumnASystem(t *testing.T) {
	theirs := Result{Row: "late", Title: "lateness", System: "theirs", Handicaps: "polls"}
	for _, v := range []float64{2000, 5123.4, 1000} {
		theirs.add([]Number{{Name: "p50", Unit: "ms", Value: v}, {Name: "earliest", Unit: "ms", Value: -v, Worst: -1},
			{Name: "max", Unit: "ms", Value: v, Worst: 1}}, nil)
	}
	result := func(row, system string, rate, micros float64) (r Result) {
		r = Result{Row: row, Title: row, System: system, Reach: "≥ 2 × theirs"}
		r.add([]Number{{Unit: "/s", Value: rate}, {Name: processorTime, Unit: "µs", Value: micros}}, nil)
		return r
	}
	ours := Result{Row: "late", Title: "lateness", System: "ours", Reach: "≤ 1 ms"}
	ours.add([]Number{{Name: "p50", Unit: "ms", Value: 0.31449}}, nil)
	var out strings.Builder
	Markdown(&out, []Result{result("attempts", "ours", 10_000, 50), result("attempts", "theirs", 4000, 100), ours, theirs,
		result("million-attempts", "ours", 9500, 55)})
	want := `| | ours | theirs | ratio | to reach |
|---|---|---|---|---|
| attempts | 10,000/s, processor time 50 µs | 4,000/s, processor time 100 µs | 2.50 × theirs, processor time 0.50 × theirs | ≥ 2 × theirs |
| lateness | p50 0.314 ms | p50 2,000 ms, earliest -5,123 ms, max 5,123 ms |  | ≤ 1 ms |
| million-attempts | 9,500/s, processor time 55 µs |  | 0.95 × with none, processor time 1.10 × with none | ≥ 2 × theirs |

- lateness, theirs: polls.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
	var figures strings.Builder
	if err := JSON(&figures, []Result{theirs}); err != nil || !strings.Contains(figures.String(), "5123.4") {
		t.Errorf("got %s, error %v, want the figure of each run", &figures, err)
	}
}

func TestChoose(t *testing.T) {
	if rows, err := Choose("kill,late"); err != nil || len(rows) != 2 || rows[0].Name != "kill" {
		t.Errorf("got %v, error %v, want kill and late", rows, err)
	}
	if _, err := Choose("late,latest"); err == nil || !strings.Contains(err.Error(), `"latest"`) {
		t.Errorf("got error %v, want one with the unknown name", err)
	}
}
