package render

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"pgregory.net/rapid"

	"github.com/10f93571/retry/task"
)

func timelineOf(t *testing.T, screen Screen, v TaskView, attempts ...task.Attempt) []string {
	t.Helper()
	return lines(t, func(b *strings.Builder) error { return screen.timeline(b, v, attempts, now.Add(time.Hour)) })
}

func TestTimeline(t *testing.T) {
	won := task.Decision{Verdict: task.VerdictSucceeded}
	v := madeNow(task.Succeeded, 20*s)
	attempts := []task.Attempt{tried(9, 0, 5*s, again(5*s)), tried(10, 10*s, 10*s, won)}
	tests := []struct {
		name   string
		screen Screen
		want   []string
	}{
		{"into a pipe", Screen{}, []string{
			"",
			"Timeline of 20s",
			"9 exit 1 ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒",
			"10 ok                     ──────────────────" + strings.Repeat("█", 36),
			"         │0s              │5s               │10s              │15s",
			"█ ok  ▒ failed  ─ waited",
		}},
		{"in a narrow window", Screen{Width: 23}, []string{
			"",
			"Timeline of 20s",
			"9  ▒▒▒▒▒",
			"10      ─────██████████",
			"   │0s       │10s",
			"█ ok  ▒ failed  ─ wait…",
		}},
		{"where nothing fits", Screen{Width: 10}, []string{""}},
	}
	for _, tt := range tests {
		if got := timelineOf(t, tt.screen, v, attempts...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	if got := strings.Join(timelineOf(t, Screen{Width: 80, Color: true}, v, attempts...), "\n"); !strings.Contains(got, "\x1b[32m█████") {
		t.Errorf("no green in %q", got)
	}
}

// A bar alone, as long as the scale, tells nothing.
func TestTimelineOfNothing(t *testing.T) {
	for name, got := range map[string][]string{
		"no attempt":   timelineOf(t, Screen{}, madeNow(task.Pending, 0)),
		"one":          timelineOf(t, Screen{}, madeNow(task.Succeeded, s), tried(1, 0, s, task.Decision{Verdict: task.VerdictSucceeded})),
		"one that ran": timelineOf(t, Screen{}, madeNow(task.Succeeded, 9*s), tried(1, 8*s, s, task.Decision{Verdict: task.VerdictFailed})),
	} {
		if !slices.Equal(got, []string{""}) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// What is not as it looks is said.
func TestTimelineTitle(t *testing.T) {
	var many []task.Attempt
	for n := range 41 {
		many = append(many, tried(n+1, time.Duration(n)*s, 0, again(s)))
	}
	back := []task.Attempt{tried(1, 0, s, again(s)), tried(2, -time.Hour, s, again(s))}
	tests := []struct {
		attempts []task.Attempt
		want     string
	}{
		{many, "Timeline of 41s, 3 attempts a row (some may share a cell)"},
		{back, "Timeline of 3s; the clock went back: the waits there are the planned ones"},
	}
	for _, tt := range tests {
		v := madeNow(task.Cancelled, 41*s)
		if len(tt.attempts) == 2 {
			v.FinishedAt = now.Add(-time.Hour + s)
		}
		if got := timelineOf(t, Screen{Width: 100}, v, tt.attempts...); got[1] != tt.want {
			t.Errorf("got %s", strings.Join(got, "\n"))
		}
	}
}

// The scale's marks lie where their time is, do not touch each other and stay within the width.
func TestAxis(t *testing.T) {
	tests := []struct {
		length time.Duration
		width  int
		want   string
	}{
		{0, 20, "│0s"},
		{300 * time.Microsecond, 20, "│0s"},
		{3 * time.Millisecond, 30, "│0s       │1ms      │2ms"},
		{20 * s, 20, "│0s       │10s"},
		{90 * s, 60, "│0s       │15s      │30s      │45s      │1m       │1m15s"},
		{2 * time.Hour, 40, "│0s       │30m      │1h       │1h30m"},
		{72 * time.Hour, 40, "│0s          │1d          │2d"},
		{400 * 24 * time.Hour, 24, "│0s         │200d"},
	}
	for _, tt := range tests {
		if got := axis(tt.length, tt.width); got != tt.want {
			t.Errorf("%v in %d cells: got\n%s\nwant\n%s", tt.length, tt.width, got, tt.want)
		}
	}
}

// Marks that people could not tell from each other, or that would lie upon each other, are left out.
func TestAxisIsLegible(t *testing.T) {
	for _, length := range []time.Duration{12 * s, 90 * s, 100 * time.Hour, 100_000 * 24 * time.Hour} {
		for width := 8; width < 900; width += 7 {
			got := axis(length, width)
			labels := strings.Fields(strings.ReplaceAll(got, "│", " "))
			if len(slices.Compact(slices.Clone(labels))) < len(labels) || strings.Count(got, "│") != len(labels) || lipgloss.Width(got) > width {
				t.Fatalf("%v in %d cells: %s", length, width, got)
			}
		}
	}
}

// Whatever is drawn fits the screen: one line that wraps would tear the picture.
func TestTimelineFitsTheScreen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v, attempts, at := anyHistory(r)
		screen := Screen{Width: rapid.IntRange(1, 220).Draw(r, "width"), Height: rapid.SampledFrom([]int{0, 9, 24, 99}).Draw(r, "height")}
		got := lines(t, func(b *strings.Builder) error { return screen.timeline(b, v, attempts, at) })
		for _, line := range got {
			if lipgloss.Width(line) > screen.Width {
				r.Fatalf("wider than %d: %s", screen.Width, line)
			}
		}
		if len(got) > maxBars+5 {
			r.Fatalf("%d lines", len(got))
		}
	})
}
