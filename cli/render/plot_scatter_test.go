package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/plot"
)

// cloudOf is a diagram of 4 cells a row, for 8 s.
func cloudOf(colour bool, retries, tasks int, dots ...plot.Dot) sketch {
	return sketch{
		Screen: Screen{Color: colour}, width: gutter + 1 + 4, axes: plotAxes{time: plot.Axis{Most: 8 * time.Second}},
		study: plot.Study{Tasks: tasks, Drawn: tasks, Dots: dots, Retries: make([]plot.Retry, retries)},
	}
}

func dot(tk, retry, seconds int) plot.Dot {
	return plot.Dot{Task: tk, Retry: retry, At: time.Duration(seconds) * time.Second}
}

// In colour a cell has two times four dots, and the first task is below. Without, it has the sign of the retry that most of it is.
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
		{"the most of a cell", false, 4, []plot.Dot{dot(0, 1, 0), dot(1, 1, 0), dot(2, 3, 1), dot(0, 7, 7), dot(0, 8, 7)}, "     1│1  8"},
		{"beyond the end", false, 1, []plot.Dot{dot(0, 1, 99)}, "     1│   1"},
	} {
		lines := newCloud(cloudOf(tt.colour, 10, tt.tasks, tt.dots...)).rows()
		for i := range lines {
			lines[i] = strings.TrimRight(withoutStyles(lines[i]), " ")
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
			c := newCloud(cloudOf(true, 1, tasks, dot(tk, 1, 0)))
			row := c.height - 1 - tk*c.height/max(tasks, 1)
			if near := c.dots[max(row-1, 0)*c.width] | c.dots[row*c.width] | c.dots[min(row+1, c.height-1)*c.width]; near == 0 || c.height > scatterRows {
				t.Fatalf("task %d of %d is not near row %d of %d", tk, tasks, row, c.height)
			}
		}
	}
}

// So many tasks are drawn that dots do not cover each other, and the title says how many.
func TestScatterOfFew(t *testing.T) {
	for _, tt := range []struct{ tasks, retries, width, want int }{
		{100, 8, 80, 100}, {1000, 8, 80, 200}, {1000, 99, 80, 70}, {100, 999, 80, 24}, {10, 999, 80, 10}, {1, 1, 40, 1},
	} {
		k := cloudOf(false, tt.retries, tt.tasks, dot(tt.want-1, 1, 0), dot(tt.want, 2, 0))
		k.width = tt.width
		lines := k.scatter()
		title := lines[0]
		if want := fmt.Sprintf("Retries of the first %d of %d tasks", tt.want, tt.tasks); k.drawn() != tt.want || strings.HasPrefix(title, want) != (tt.want < tt.tasks) {
			t.Errorf("%d tasks of %d retries: %d drawn, %s", tt.tasks, tt.retries, k.drawn(), title)
		}
		if text := strings.Join(lines[2:], ""); !strings.Contains(text, "│1") || strings.Contains(text, "│2") {
			t.Errorf("%d tasks of %d retries: not the first %d", tt.tasks, tt.retries, tt.want)
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
		k := cloudOf(tt.colour, tt.retries, 1)
		k.width = tt.wide
		if got := withoutStyles(k.legendOfRetries()); got != tt.want {
			t.Errorf("%d retries: %s\nwant %s", tt.retries, got, tt.want)
		}
	}
}

// Neighbours never have the same colour, and no retry is without a sign.
func TestRetryColours(t *testing.T) {
	for _, retries := range []int{2, 35, 36, 999} {
		k := cloudOf(true, retries, 1)
		if k.group(1) != 0 || k.group(retries) >= len(signs) {
			t.Errorf("%d retries: signs %d to %d", retries, k.group(1), k.group(retries))
		}
		for n := 1; n+k.perSign() <= retries; n++ {
			if k.paintRetry(n, "x") == k.paintRetry(n+k.perSign(), "x") {
				t.Errorf("retries %d and %d of %d look the same", n, n+k.perSign(), retries)
			}
		}
	}
}
