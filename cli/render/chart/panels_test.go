package chart

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/chart"
)

func TestDelayBar(t *testing.T) {
	for _, tt := range []struct {
		name  string
		point chart.Point
		want  string
	}{
		{"a range with its base", chart.Point{Least: 0.2, Base: 0.4, Most: 0.6}, "  ░░┃░░   "},
		{"the whole width", chart.Point{Base: 1, Most: 1}, "░░░░░░░░░┃"},
		{"no range", chart.Point{Least: 0.5, Base: 0.5, Most: 0.5}, "     ┃    "},
		{"nothing", chart.Point{}, "┃         "},
		{"beyond the axis", chart.Point{Least: 0.5, Base: 0.6, Most: 1, Clipped: true}, "     ░┃░░→"},
		{"the base at the end", chart.Point{Least: 0.5, Base: 1, Most: 1, Clipped: true}, "     ░░░░┃"},
	} {
		tt.point.Retry.N = 1
		v := chartView{Chart: chart.Chart{Study: plot.Study{Retries: make([]plot.Retry, 8)}}}
		if got := v.delayBar(tt.point, 10); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// All retries have a row, or evenly spaced ones, and the last one always.
func TestCurveRows(t *testing.T) {
	for n, want := range map[int]string{
		1: "[1]", 4: "[1 2 3 4]", 13: "[1 3 5 7 9 11 13]", 14: "[1 3 5 7 9 11 13 14]",
		999: "[1 85 169 253 337 421 505 589 673 757 841 925 999]",
	} {
		v := chartView{}
		for i := range n {
			v.Curve = append(v.Curve, chart.Point{Retry: plot.Retry{N: i + 1}})
		}
		var got []int
		for _, p := range v.curveRows() {
			got = append(got, p.Retry.N)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d retries: got rows %v, want %s", n, got, want)
		}
	}
}

func TestRangeText(t *testing.T) {
	for want, r := range map[string]plot.Retry{
		"0s–1s": {Most: time.Second}, "1s": {Least: time.Second, Most: time.Second},
		"1d5h":    {Least: 29*time.Hour + 1, Most: 29*time.Hour + 9},
		"from 1s": {Least: time.Second, Most: backoff.Max, Unbounded: true},
	} {
		if got := formatRange(r); got != want {
			t.Errorf("%s to %s: %s, want %s", r.Least, r.Most, got, want)
		}
	}
}

// Numbers leave the ranges their room: what the picture shows, too, gives way first.
func TestCurveNumbers(t *testing.T) {
	retry := plot.Retry{N: 1, Base: 90 * time.Second, Least: time.Second, Most: 2 * time.Hour, CV: 1.234}
	for width, want := range map[int][2]string{
		80:                                 {"   BASE  RANGE    CV", "  1m30s  1s–2h  1.23"},
		yLabelWidth + 1 + 20 + minBarWidth: {"   BASE  RANGE    CV", "  1m30s  1s–2h  1.23"},
		yLabelWidth + 1 + 19 + minBarWidth: {"   BASE    CV", "  1m30s  1.23"}, 40: {"   BASE    CV", "  1m30s  1.23"},
	} {
		if got := (chartView{width: width}).curveNumbers([]chart.Point{{Retry: retry}}); got[0] != want[0] ||
			got[1] != want[1] {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

// scatterOf is a diagram of 4 cells a row, for 8 s.
func scatterOf(colour bool, retries, tasks int, dots ...plot.Dot) chartView {
	return chartView{
		screen: render.Screen{Color: colour}, width: yLabelWidth + 1 + 4,
		Chart: chart.Chart{
			Time:  chart.Axis{Most: float64(8 * time.Second)},
			Study: plot.Study{Tasks: tasks, Drawn: tasks, Dots: dots, Retries: make([]plot.Retry, retries)},
		},
	}
}

func dot(tk, retry, seconds int) plot.Dot {
	return plot.Dot{Task: tk, Retry: retry, At: time.Duration(seconds) * time.Second}
}

// In colour a cell has two times four dots, and the first task is below. Without, it has the sign of the retry that
// most of it is.
func TestScatter(t *testing.T) {
	dots := []plot.Dot{dot(0, 1, 0), dot(0, 2, 3), dot(1, 1, 1), dot(1, 2, 8), dot(4, 1, 2), dot(4, 2, 3)}
	for _, tt := range []struct {
		name   string
		colour bool
		tasks  int
		dots   []plot.Dot
		want   string
	}{
		{"signs", false, 5, dots, "     5│ 2\n     1│12 2"},
		{"dots", true, 5, dots, "     5│ ⣀\n     1│⡠⢀ ⠠"},
		{"one task", false, 1, []plot.Dot{dot(0, 1, 1), dot(0, 9, 4), dot(0, 10, 6)}, "     1│1 9a"},
		{"one task in colour", true, 1, []plot.Dot{dot(0, 1, 1), dot(0, 9, 4), dot(0, 10, 6)}, "     1│⢀ ⡀⡀"},
		{"the most of a cell", false, 4, []plot.Dot{dot(0, 1, 0), dot(1, 1, 0), dot(2, 3, 1), dot(0, 7, 7), dot(0, 8, 7)},
			"     1│1  8"},
		{"beyond the end", false, 1, []plot.Dot{dot(0, 1, 99)}, "     1│   1"},
	} {
		lines := scatterOf(tt.colour, 10, tt.tasks, tt.dots...).scatter()[2:]
		for i := range lines {
			lines[i] = strings.TrimRight(ansi.Strip(lines[i]), " ")
		}
		if got := strings.Join(lines, "\n"); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// Many tasks have no more rows than a few, and every one has its place.
func TestScatterOfMany(t *testing.T) {
	for _, tasks := range []int{1, 4, 5, 48, 49, 100, 200} {
		for tk := range tasks {
			v := scatterOf(true, 1, tasks, dot(tk, 1, 0))
			cells, rows := v.scatterCells()
			row := rows - 1 - tk*rows/max(tasks, 1)
			near := cells[max(row-1, 0)*v.cells()] + cells[row*v.cells()] + cells[min(row+1, rows-1)*v.cells()]
			if strings.TrimSpace(near) == "" || rows > scatterRows {
				t.Fatalf("task %d of %d: got nothing near row %d of %d", tk, tasks, row, rows)
			}
		}
	}
}

// So many tasks are drawn that dots do not cover each other, and the title says how many.
func TestScatterOfFew(t *testing.T) {
	for _, tt := range []struct{ tasks, retries, width, want int }{
		{100, 8, 80, 100}, {1000, 8, 80, 200}, {1000, 99, 80, 70}, {100, 999, 80, 24}, {10, 999, 80, 10}, {1, 1, 40, 1},
	} {
		k := scatterOf(false, tt.retries, tt.tasks, dot(tt.want-1, 1, 0), dot(tt.want, 2, 0))
		k.width = tt.width
		lines := k.scatter()
		title := lines[0]
		if want := fmt.Sprintf("Retries of the first %d of %d tasks", tt.want, tt.tasks); k.tasksDrawn() != tt.want ||
			strings.HasPrefix(title, want) != (tt.want < tt.tasks) {
			t.Errorf("%d tasks of %d retries: got %d drawn, %s", tt.tasks, tt.retries, k.tasksDrawn(), title)
		}
		if text := strings.Join(lines[2:], ""); !strings.Contains(text, "│1") || strings.Contains(text, "│2") {
			t.Errorf("%d tasks of %d retries: want the first %d", tt.tasks, tt.retries, tt.want)
		}
	}
}

func TestLegendOfRetries(t *testing.T) {
	for _, tt := range []struct {
		colour        bool
		retries, wide int
		want          string
	}{
		{false, 9, 80, "a sign is the number of the retry"},
		{false, 10, 80, "a sign is the number of the retry, a is 10"},
		{false, 25, 80, "a sign is the number of the retry, a is 10, p is 25"},
		{false, 35, 80, "a sign is the number of the retry, a is 10, z is 35"},
		{false, 36, 80, "signs 1-9, a-z stand for 2 retries each"},
		{true, 3, 80, "retry 1 2 3"},
		{true, 25, 40, "retry 1 2 3 4 5 6 7 8 9 10 11 12 13 14 …"},
		{true, 72, 40, "retry 1–3 4–6 7–9 10–12 13–15 16–18 …"},
		{true, 36, 200, "retry 1–2 3–4 5–6 7–8 9–10 11–12 13–14 15–16 17–18 19–20 21–22 23–24 25–26 27–28 29–30 31–32 33–34 35–36"},
	} {
		k := scatterOf(tt.colour, tt.retries, 1)
		k.width = tt.wide
		if got := ansi.Strip(k.retryLegend()); got != tt.want {
			t.Errorf("%d retries: %s\nwant %s", tt.retries, got, tt.want)
		}
	}
}

// Neighbours never have the same colour, and no retry is without a sign.
func TestRetryColours(t *testing.T) {
	for _, retries := range []int{2, 35, 36, 999} {
		k := scatterOf(true, retries, 1)
		if k.signOf(1) != 0 || k.signOf(retries) >= len(retrySigns) {
			t.Errorf("%d retries: got signs %d to %d", retries, k.signOf(1), k.signOf(retries))
		}
		for n := 1; n+k.retriesPerSign() <= retries; n++ {
			if k.paintRetry(n, "x") == k.paintRetry(n+k.retriesPerSign(), "x") {
				t.Errorf("retries %d and %d of %d: got the same sign", n, n+k.retriesPerSign(), retries)
			}
		}
	}
}

func TestLoadBlock(t *testing.T) {
	linear, logarithmic := chart.Axis{Most: 32}, chart.Axis{Least: 0.1, Most: 1000, Log: true}
	for _, tt := range []struct {
		axis chart.Axis
		rate float64
		want string // from below
	}{
		{linear, 32, "████"}, {linear, 16, "██  "}, {linear, 9, "█▁  "}, {linear, 0.001, "▁   "}, {linear, 0, "    "},
		{logarithmic, 1000, "████"}, {logarithmic, 10, "██  "}, {logarithmic, 1, "█   "}, {chart.Axis{}, 0, "    "},
	} {
		var got strings.Builder
		for row := range loadRows {
			got.WriteRune(loadBlock(tt.axis, tt.rate, row))
		}
		if got.String() != tt.want {
			t.Errorf("%v on %+v: got %q, want %q", tt.rate, tt.axis, got.String(), tt.want)
		}
	}
}

// A column shorter than a second shows the load of a second, not of itself.
func TestLoadColumns(t *testing.T) {
	s := studyOf(t, subject(t, "constant:10s", "none"), plot.Options{Tasks: 10, Retries: 2, Seed: 1})
	v := chartView{Chart: chart.New([]plot.Study{s}, 80)[0], width: 80 + yLabelWidth + 1}
	got := []rune(v.load()[loadRows])[yLabelWidth+1:]
	for i, r := range got {
		if high, want := r == '█', i/4 == 10 || i/4 == 19; high != want {
			t.Errorf("column %d: got %q, want a full block: %v", i, r, want)
		}
	}
}
